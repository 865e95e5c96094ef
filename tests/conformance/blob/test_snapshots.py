"""Snapshots: what they keep, and how they are deleted. Source: reference §42."""

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from .blobs import Blobs
from .resources import Resource

LARGE = bytes(20_000)
_PROPERTIES = "restype=service&comp=properties"
_POLICY = (
    "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>{}</Enabled>{}</DeleteRetentionPolicy>"
    "</StorageServiceProperties>"
)
Keep = Callable[[str], None]
"""Has deleted blobs kept for a day, given whether they may be deleted permanently."""


@pytest.fixture
def keep(blobs: Blobs) -> Iterator[Keep]:
    """Sets what the account keeps; in the end it keeps nothing."""

    def set_policy(permanent: str) -> None:
        days = f"<Days>1</Days><AllowPermanentDelete>{permanent}</AllowPermanentDelete>"
        blobs.send("PUT", "/", _PROPERTIES, body=_POLICY.format("true", days)).expect(202)

    yield set_policy
    blobs.send("PUT", "/", _PROPERTIES, body=_POLICY.format("false", "")).expect(202)


def snapshot(blob: Resource, **headers: str) -> str:
    """Take a snapshot; return the parameter that names it."""
    answer = blob.send("PUT", "comp=snapshot", headers).expect(201)
    return f"snapshot={quote(answer.required('x-ms-snapshot'))}"


def test_a_snapshot_stays_as_it_was(blob: Resource) -> None:
    blob.put(LARGE + b"1").expect(201)
    first = snapshot(blob)
    blob.put(LARGE + b"2").expect(201)
    second = snapshot(blob, **{"x-ms-meta-a": "b"})
    blob.put(b"3").expect(201)
    assert [blob.send("GET", query).body for query in (first, second, "")] == [LARGE + b"1", LARGE + b"2", b"3"]
    assert blob.send("HEAD", second).header("x-ms-meta-a") == "b"
    assert blob.send("PUT", f"comp=lease&{first}", {"x-ms-lease-action": "break"}).status == 400


def test_one_snapshot_is_deleted_alone(blob: Resource) -> None:
    query = snapshot(blob)
    both = blob.send("DELETE", query, {"x-ms-delete-snapshots": "include"})
    assert both.code == (400, "InvalidQueryParameterValue")
    blob.send("DELETE", query).expect(202)
    assert blob.send("DELETE", query).code == (404, "BlobNotFound")
    blob.send("DELETE").expect(202)


@pytest.mark.parametrize(("allowed", "status"), [("true", 202), ("false", 409)])
def test_permanent_deletion(blob: Resource, keep: Keep, allowed: str, status: int) -> None:
    keep(allowed)
    query = snapshot(blob)
    assert blob.send("DELETE", f"{query}&deletetype=permanent").status == 409, "it is not deleted"
    blob.send("DELETE", query).expect(202)
    assert blob.send("DELETE", f"{query}&deletetype=permanent").status == status
    blob.send("PUT", "comp=undelete").expect(200)
    assert blob.send("GET", query).status == (404 if status == 202 else 200)


@pytest.mark.parametrize("query", ["snapshot=yesterday", "versionid=2", "snapshot=2021-13-01T00:00:00.0000000Z"])
def test_a_time_that_is_none(blob: Resource, query: str) -> None:
    assert blob.send("GET", query).code == (400, "InvalidQueryParameterValue")
