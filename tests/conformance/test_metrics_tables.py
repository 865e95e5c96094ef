"""Tables of metrics: open by name once they are asked for, and not to be written (reference §18.2)."""

import time
from collections.abc import Iterator

import pytest

from .answers import Answer
from .client import Client
from .service_properties import HOUR_OFF, MINUTE_OFF, QUERY, document

SECONDS_MAX = 300
"""How long a table may take to exist; the cloud takes some minutes."""
MINUTES = "$MetricsMinutePrimaryTransactionsTable"
AT = "(PartitionKey='20260101T0000',RowKey='user;All')"
REFUSED = (403, "InsufficientAccountPermissions")
ON = MINUTE_OFF.replace("<Enabled>false</Enabled>", "<Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>", 1)
WRITES = {
    "insert": ("POST", f"/{MINUTES}", {}),
    "replace": ("PUT", f"/{MINUTES}{AT}", {"If-Match": "*"}),
    "insert or replace": ("PUT", f"/{MINUTES}{AT}", {}),
    "merge": ("MERGE", f"/{MINUTES}{AT}", {"If-Match": "*"}),
    "insert or merge": ("MERGE", f"/{MINUTES}{AT}", {}),
    "delete": ("DELETE", f"/Tables('{MINUTES}')", {}),
}


@pytest.fixture
def metrics(client: Client) -> Iterator[None]:
    """Metrics by the minute."""
    client.send("PUT", "/", QUERY, body=document(ON)).expect(202)
    yield
    client.send("PUT", "/", QUERY, body=document(HOUR_OFF, MINUTE_OFF)).expect(202)


@pytest.mark.usefixtures("metrics")
def test_a_table_is_open_by_its_name_and_in_no_list(client: Client) -> None:
    assert _once_it_exists(client).json()["TableName"] == MINUTES
    client.send("GET", f"/{MINUTES}()", "$filter=RowKey%20eq%20'user%3BAll'").expect(200)
    client.send("DELETE", f"/{MINUTES}{AT}", headers={"If-Match": "*"}).expect(404)
    names = [each["TableName"] for each in client.send("GET", "/Tables").expect(200).json()["value"]]
    assert not [name for name in names if name.startswith("$")]


def _once_it_exists(client: Client) -> Answer:
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        answer = client.send("GET", f"/Tables('{MINUTES}')")
        if answer.status == 200:
            return answer
        time.sleep(0.2)
    raise AssertionError("no table")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_are_refused(client: Client, write: tuple[str, str, dict[str, str]]) -> None:
    method, path, headers = write
    body = None if method == "DELETE" else '{"PartitionKey":"p","RowKey":"r"}'
    assert client.send(method, path, headers=headers, body=body).rejection[:2] == REFUSED
