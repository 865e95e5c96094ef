"""The container `$logs`: what it has, and what clients may do with it (reference §18.1)."""

import time
from collections.abc import Iterator
from urllib.parse import quote
from uuid import uuid4
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.answers import xml_text
from tests.conformance.service_properties import LOGGING_OFF, QUERY, document

from .blobs import Blobs, Container, names_of

SECONDS_MAX = 300
"""How long a line may take; the cloud takes up to an hour."""
LIST = "restype=container&comp=list"
WRITES = {
    "put": ("PUT", "/$logs/blob/x", "", {"x-ms-blob-type": "BlockBlob"}),
    "put block": ("PUT", "/$logs/blob/x", "comp=block&blockid=MDAw", {}),
    "metadata of a blob": ("PUT", "/$logs/blob/x", "comp=metadata", {"x-ms-meta-a": "b"}),
    "lease of a blob": ("PUT", "/$logs/blob/x", "comp=lease", {"x-ms-lease-action": "break"}),
    "snapshot": ("PUT", "/$logs/blob/x", "comp=snapshot", {}),
    "creation": ("PUT", "/$logs", "restype=container", {}),
    "metadata": ("PUT", "/$logs", "restype=container&comp=metadata", {"x-ms-meta-a": "b"}),
    "access": ("PUT", "/$logs", "restype=container&comp=acl", {"x-ms-blob-public-access": "blob"}),
    "deletion": ("DELETE", "/$logs", "restype=container", {}),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_are_refused(blobs: Blobs, write: tuple[str, str, str, dict[str, str]]) -> None:
    method, path, query, headers = write
    answer = blobs.send(method, path, query, headers=headers, body=b"" if method == "PUT" else None)
    assert answer.code == (403, "InsufficientAccountPermissions")


@pytest.fixture
def logged(blobs: Blobs) -> Iterator[None]:
    """Logs of the Blob service."""
    on = LOGGING_OFF.replace("<Read>false</Read><Write>false</Write>", "<Read>true</Read><Write>true</Write>")
    blobs.send("PUT", "/", QUERY, body=document(on)).expect(202)
    yield
    blobs.send("PUT", "/", QUERY, body=document(LOGGING_OFF)).expect(202)


@pytest.mark.usefixtures("logged")
def test_a_request_is_logged_and_its_blob_can_be_read_and_deleted(blobs: Blobs, container: Container) -> None:
    agent = f'{uuid4()};"<&'
    container.send("PUT", "a b", body=b"x", headers={"x-ms-blob-type": "BlockBlob", "User-Agent": agent}).expect(201)
    name, line = _found(blobs, agent.partition(";")[0])
    fields = line.split(";")
    assert fields[0] == "1.0"
    assert fields[2:5] == ["PutBlob", "Success", "201"]
    assert f'/{container.name}/{quote("a b")}"' in line
    assert line.count('"', 0, line.index("&quot;&lt;&amp;")) % 2 == 1
    listed = blobs.send("GET", "/", "comp=list&prefix=%24logs").expect(200)
    assert "<Name>$logs</Name>" not in xml_text(listed.body)
    head = blobs.send("HEAD", f"/$logs/{name}").expect(200)
    assert {"read", "write"} >= set(head.required("x-ms-meta-LogType").split(","))
    assert head.required("x-ms-meta-LogVersion") == "1.0"
    assert head.required("x-ms-meta-StartTime") <= head.required("x-ms-meta-EndTime")
    blobs.send("DELETE", f"/$logs/{name}").expect(202)
    blobs.send("GET", f"/$logs/{name}").expect(404)


def _found(blobs: Blobs, text: str) -> tuple[str, str]:
    """The name of the blob that has a line with a text, and the line, once it is there."""
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        page = blobs.send("GET", "/$logs", f"{LIST}&prefix=blob/")
        if page.status == 200:
            for name in reversed(names_of(ET.fromstring(xml_text(page.body)))):
                body = blobs.send("GET", f"/$logs/{name}").expect(200).body.decode()
                for line in body.splitlines():
                    if text in line:
                        return name, line
        time.sleep(0.2)
    raise AssertionError("no line")
