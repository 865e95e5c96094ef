"""Reference §12.2: Get Table Service Stats."""

from email.utils import parsedate_to_datetime
from xml.etree import ElementTree as ET

import pytest

from .answers import xml_text
from .client import Client

QUERY = "restype=service&comp=stats"


def test_on_the_secondary(secondary: Client) -> None:
    answer = secondary.send("GET", "/", QUERY).expect(200)
    assert answer.header("Content-Type") == "application/xml"
    assert answer.body.startswith(b"\xef\xbb\xbf")
    root = ET.fromstring(xml_text(answer.body))
    assert root.tag == "StorageServiceStats"
    assert [child.tag for child in root] == ["GeoReplication"]
    assert [child.tag for child in root[0]] == ["Status", "LastSyncTime"]
    status, time = root[0][0].text, root[0][1].text
    assert status in {"live", "bootstrap", "unavailable"}
    if status == "live":
        assert time
        assert time.endswith(" GMT")
        parsedate_to_datetime(time)


@pytest.mark.unverified
def test_stats_on_the_primary(client: Client) -> None:
    """Legacy recordings reject; tools that expect an emulator accept an answer."""
    answer = client.send("GET", "/", QUERY)
    assert answer.status in {200, 400}
    if answer.status == 400:
        assert answer.rejection.code == "InvalidQueryParameterValue"


def test_stats_are_read_only(secondary: Client) -> None:
    answer = secondary.send("PUT", "/", QUERY, body="<x/>")
    assert 400 <= answer.status < 500
