"""Access tiers: how a blob comes back from the tier Archive (reference §45, §36)."""

import pytest

from .resources import Resource

REHYDRATED = "This operation is not permitted because the blob is being rehydrated."
_FACTS = ("x-ms-access-tier", "x-ms-archive-status", "x-ms-rehydrate-priority")


def set_tier(blob: Resource, tier: str, priority: str = "", *, version: str = "2025-05-05", query: str = "") -> int:
    """Set a tier; return the status. A rejection fails, unless it is `BlobBeingRehydrated`."""
    headers = {"x-ms-access-tier": tier} | ({"x-ms-rehydrate-priority": priority} if priority else {})
    answer = blob.send("PUT", f"comp=tier{query}", headers, version=version)
    if answer.status == 409:
        assert answer.rejection == (409, "BlobBeingRehydrated", REHYDRATED)
    else:
        assert answer.status in (200, 202), answer
    return answer.status


def facts(blob: Resource, query: str = "") -> tuple[str | None, ...]:
    """Return tier, archive status and priority."""
    answer = blob.send("HEAD", query, version="2025-05-05").expect(200)
    return tuple(answer.header(name) for name in _FACTS)


@pytest.mark.parametrize(
    ("tier", "priority", "shown"),
    [
        ("Hot", "", ("hot", "Standard")),
        ("Hot", "High", ("hot", "High")),
        ("Cool", "high", ("cool", "High")),
        ("cold", "STANDARD", ("cold", "Standard")),
    ],
)
def test_a_blob_that_leaves_archive_is_pending(
    archived: Resource, tier: str, priority: str, shown: tuple[str, str]
) -> None:
    before = archived.facts()
    assert set_tier(archived, tier, priority) == 202
    status, kept = shown
    assert facts(archived) == ("Archive", f"rehydrate-pending-to-{status}", kept)
    after = archived.facts()
    for name in ("ETag", "Last-Modified", "x-ms-access-tier-change-time"):
        assert after.header(name) == before.header(name)


def test_a_pending_smart_tier(archived: Resource) -> None:
    assert set_tier(archived, "Smart", version="2026-06-06") == 202
    assert facts(archived)[1] == "rehydrate-pending-to-smart"


def test_another_tier_is_rejected_while_one_is_pending(archived: Resource) -> None:
    assert set_tier(archived, "Hot") == 202
    assert [set_tier(archived, tier) for tier in ("Cool", "Cold", "Archive", "Hot")] == [409, 409, 409, 202]
    assert facts(archived) == ("Archive", "rehydrate-pending-to-hot", "Standard")


def test_the_priority_can_only_rise(archived: Resource) -> None:
    set_tier(archived, "Hot", "Standard")
    assert set_tier(archived, "Hot", "High") == 202
    assert set_tier(archived, "Hot", "Standard") == set_tier(archived, "Hot") == 202
    assert facts(archived)[2] == "High"


@pytest.mark.parametrize(
    ("version", "first", "second"), [("2020-06-12", "High", "High"), ("2020-04-08", "High", "Standard")]
)
def test_the_priority_by_version(archived: Resource, version: str, first: str, second: str) -> None:
    set_tier(archived, "Hot", "Standard", version=version)
    set_tier(archived, "Hot", first, version=version)
    assert facts(archived)[2] == second


def test_a_priority_before_there_was_one(archived: Resource) -> None:
    assert set_tier(archived, "Hot", "Urgent", version="2018-11-09") == 202
    assert facts(archived)[2] == "Standard"


def test_an_unknown_priority(archived: Resource) -> None:
    answer = archived.send("PUT", "comp=tier", {"x-ms-access-tier": "Hot", "x-ms-rehydrate-priority": "Urgent"})
    assert answer.code == (400, "InvalidHeaderValue")
    assert facts(archived) == ("Archive", None, None)


def test_a_list_shows_what_is_pending(archived: Resource) -> None:
    set_tier(archived, "Cool", "High")
    properties = archived.container.list().find("Blobs/Blob/Properties")
    assert properties is not None
    shown = [properties.findtext(name) for name in ("AccessTier", "ArchiveStatus", "RehydratePriority")]
    assert shown == ["Archive", "rehydrate-pending-to-cool", "High"]


def test_what_a_pending_blob_does_not_permit(archived: Resource) -> None:
    set_tier(archived, "Hot")
    assert archived.send("GET").rejection == (409, "BlobBeingRehydrated", REHYDRATED)
    for query in ("comp=block&blockid=YQ%3D%3D", "comp=blocklist", "comp=metadata", "comp=properties", "comp=snapshot"):
        body = "<BlockList />" if "list" in query else "x"
        assert archived.send("PUT", query, body=body).code == (409, "BlobBeingRehydrated"), query


def test_what_a_pending_blob_permits(archived: Resource) -> None:
    set_tier(archived, "Hot")
    archived.send("GET", "comp=metadata").expect(200)
    archived.send("PUT", "comp=tags", body="<Tags><TagSet /></Tags>").expect(204)
    lease = archived.lease("acquire", duration=15).expect(201).required("x-ms-lease-id")
    archived.lease("release", id=lease).expect(200)
    archived.send("DELETE").expect(202)
    archived.send("HEAD").expect(404)


def test_a_pending_blob_is_overwritten(archived: Resource) -> None:
    set_tier(archived, "Hot")
    archived.put(b"new").expect(201)
    assert facts(archived) == ("Hot", None, None)
    assert archived.send("GET").body == b"new"


def url_of(blob: Resource) -> str:
    """The URL of a blob."""
    return f"{blob.container.blobs.client.endpoint.base}{blob.container.name}/{blob.name}"


def test_a_copy_of_an_archived_blob_is_pending(archived: Resource) -> None:
    copy = Resource(archived.container, "copy")
    headers = {"x-ms-copy-source": url_of(archived), "x-ms-access-tier": "Hot", "x-ms-rehydrate-priority": "high"}
    assert copy.send("PUT", headers=headers).expect(202).header("x-ms-copy-status") == "success"
    assert facts(copy) == ("Archive", "rehydrate-pending-to-hot", "High")
    assert facts(archived) == ("Archive", None, None)
    assert copy.send("GET").code == (409, "BlobBeingRehydrated")
    assert copy.send("HEAD").expect(200).header("Content-Length") == "10"
    assert copy.send("PUT", headers=headers).code == (409, "BlobBeingRehydrated")


@pytest.mark.parametrize("tier", [{}, {"x-ms-access-tier": "Archive"}, {"x-ms-access-tier": "archive"}])
def test_a_copy_of_an_archived_blob_needs_an_online_tier(archived: Resource, tier: dict[str, str]) -> None:
    copy = Resource(archived.container, "copy")
    answer = copy.send("PUT", headers={"x-ms-copy-source": url_of(archived), **tier})
    assert answer.code == (409, "CannotVerifyCopySource")


def test_a_snapshot_is_pending_alone(archived: Resource) -> None:
    blob = Resource(archived.container, "with-snapshot")
    blob.put(b"0123456789").expect(201)
    time = blob.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    assert set_tier(blob, "Archive", query=f"&snapshot={time}") == 200
    assert set_tier(blob, "Hot", query=f"&snapshot={time}") == 202
    assert facts(blob, f"snapshot={time}") == ("Archive", "rehydrate-pending-to-hot", "Standard")
    assert facts(blob) == ("Hot", None, None)


def test_an_account_that_rehydrates_at_once(blob: Resource) -> None:
    assert set_tier(blob, "Archive") == 200
    assert set_tier(blob, "Cool", "HIGH") == 202
    assert facts(blob) == ("Cool", None, None)
    assert blob.send("GET").body == b"0123456789"
