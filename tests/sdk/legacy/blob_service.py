"""The services of blobs of the SDKs between 2016 and 2019: azure-storage 0.36 and azure-storage-blob 2.1."""

import os
import random
import sys
import tempfile
from datetime import UTC, datetime, timedelta

from azure.storage.blob import (
    AppendBlobService,
    BlobBlock,
    BlobPermissions,
    BlockBlobService,
    ContainerPermissions,
    ContentSettings,
    Include,
    PageBlobService,
)
from cases import CONNECTION_STRING, fields, run, unique_name
from rejections import rejected, without_retries

try:
    from azure.storage.common import models

    READS_TWICE = True
except ImportError:
    from azure.storage import models

    READS_TWICE = False
    """The second request of a download, for the next part or an empty blob, lacks the account in its path."""

SOON = datetime.now(UTC).replace(tzinfo=None, microsecond=0) + timedelta(hours=1)
ENDPOINT = fields()["BlobEndpoint"].rstrip("/")
PART = 64 * 1024
LARGE = random.Random(0).randbytes(10 * PART + 512)


def connect(kind=BlockBlobService, connection_string=CONNECTION_STRING):
    """A service that never retries, and that divides small uploads."""
    service = without_retries(kind(connection_string=connection_string))
    service.MAX_SINGLE_PUT_SIZE = service.MAX_BLOCK_SIZE = PART
    if READS_TWICE:
        service.MAX_SINGLE_GET_SIZE = service.MAX_CHUNK_GET_SIZE = PART
    return service


def grant(sas):
    """A service that holds nothing but a SAS."""
    return connect(connection_string=f"BlobEndpoint={ENDPOINT};SharedAccessSignature={sas}")


SERVICE, APPENDS, PAGES = connect(), connect(AppendBlobService), connect(PageBlobService)


class Container:
    """A container of its own for one case."""

    def __enter__(self):
        self.name = unique_name()
        assert SERVICE.create_container(self.name, fail_on_exist=True) is True
        return self.name

    def __exit__(self, *failure):
        assert SERVICE.delete_container(self.name, fail_not_exist=True) is True


def content(container, name):
    return SERVICE.get_blob_to_bytes(container, name).content


def test_containers_are_created_listed_and_deleted():
    prefix = unique_name()[:20]
    names = [f"{prefix}-{letter}" for letter in "abc"]
    for name in names:
        assert SERVICE.create_container(name, metadata={"key": name}) is True
    assert SERVICE.create_container(names[0]) is False
    rejected(409, "", SERVICE.create_container, names[0], fail_on_exist=True)
    listed = list(SERVICE.list_containers(prefix, include_metadata=True, num_results=10))
    assert [(each.name, each.metadata) for each in listed] == [(name, {"key": name}) for name in names]
    page = SERVICE.list_containers(prefix, num_results=2)
    assert page.next_marker
    SERVICE.set_container_metadata(names[0], {"a": "1"})
    assert SERVICE.get_container_metadata(names[0]) == {"a": "1"}
    assert SERVICE.get_container_properties(names[0]).properties.lease.state == "available"
    for name in names:
        assert SERVICE.exists(name) is True
        assert SERVICE.delete_container(name) is True
    assert SERVICE.delete_container(names[0]) is False
    assert SERVICE.exists(names[0]) is False


def test_content_goes_up_and_down_in_parallel():
    with Container() as container, tempfile.TemporaryDirectory() as directory:
        SERVICE.create_blob_from_bytes(container, "large", LARGE, max_connections=4, metadata={"a": "1"})
        assert SERVICE.get_blob_to_bytes(container, "large", max_connections=4).content == LARGE
        path = os.path.join(directory, "file")
        SERVICE.get_blob_to_path(container, "large", path, max_connections=2)
        SERVICE.create_blob_from_path(container, "copy", path, validate_content=True)
        assert content(container, "copy") == LARGE
        found = SERVICE.get_blob_to_bytes(container, "copy", start_range=5, end_range=PART + 5, validate_content=True)
        assert found.content == LARGE[5 : PART + 6]
        blocks = SERVICE.get_block_list(container, "large", block_list_type="all")
        assert sum(block.size for block in blocks.committed_blocks) == len(LARGE)
        SERVICE.create_blob_from_bytes(container, "empty", b"")
        if READS_TWICE:
            assert content(container, "empty") == b""
        SERVICE.create_blob_from_text(container, "ü/ö b?.txt", "Grüße")
        assert SERVICE.get_blob_to_text(container, "ü/ö b?.txt").content == "Grüße"


def test_blocks():
    with Container() as container:
        for name in ("a", "b"):
            SERVICE.put_block(container, "blob", name.encode(), name)
        SERVICE.put_block_list(container, "blob", [BlobBlock("b"), BlobBlock("a")])
        assert content(container, "blob") == b"ba"
        rejected(400, "", SERVICE.put_block_list, container, "blob", [BlobBlock("c")])


def test_lists():
    names = ["a", "b/1", "b/2", "c"]
    with Container() as container:
        for name in names:
            SERVICE.create_blob_from_bytes(container, name, b"x", metadata={"k": name})
        SERVICE.snapshot_blob(container, "a")
        assert [each.name for each in SERVICE.list_blobs(container)] == names
        assert {each.name for each in SERVICE.list_blobs(container, delimiter="/")} == {"a", "b/", "c"}
        assert [each.name for each in SERVICE.list_blobs(container, prefix="b/", num_results=1)] == ["b/1"]
        both = list(SERVICE.list_blobs(container, prefix="a", include=Include(snapshots=True, metadata=True)))
        assert [bool(each.snapshot) for each in both] == [True, False]
        assert both[1].metadata == {"k": "a"}


def test_properties_and_conditions():
    with Container() as container:
        settings = ContentSettings("text/plain", cache_control="no-store")
        SERVICE.create_blob_from_bytes(container, "a", b"x", content_settings=settings)
        blob = SERVICE.get_blob_properties(container, "a")
        assert blob.properties.content_settings.content_type == "text/plain"
        assert blob.properties.content_settings.cache_control == "no-store"
        etag = blob.properties.etag
        SERVICE.set_blob_metadata(container, "a", {"k": "v"}, if_match=etag)
        assert SERVICE.get_blob_metadata(container, "a") == {"k": "v"}
        rejected(412, "", SERVICE.set_blob_metadata, container, "a", {}, if_match=etag)
        rejected(409, "", SERVICE.create_blob_from_bytes, container, "a", b"y", if_none_match="*")
        rejected(404, "", SERVICE.get_blob_properties, container, "b")


def test_leases_and_snapshots():
    with Container() as container:
        SERVICE.create_blob_from_bytes(container, "a", b"1")
        lease = SERVICE.acquire_blob_lease(container, "a", lease_duration=15)
        rejected(412, "", SERVICE.create_blob_from_bytes, container, "a", b"2")
        SERVICE.create_blob_from_bytes(container, "a", b"2", lease_id=lease)
        assert SERVICE.break_blob_lease(container, "a", lease_break_period=0) == 0
        time = SERVICE.snapshot_blob(container, "a").snapshot
        SERVICE.create_blob_from_bytes(container, "a", b"3")
        assert SERVICE.get_blob_to_bytes(container, "a", snapshot=time).content == b"2"
        rejected(409, "", SERVICE.delete_blob, container, "a")
        SERVICE.delete_blob(container, "a", delete_snapshots="include")


def test_append_blobs():
    with Container() as container:
        APPENDS.create_blob(container, "log")
        assert APPENDS.append_block(container, "log", b"ab").append_offset == 0
        APPENDS.append_blob_from_bytes(container, "log", LARGE)
        assert APPENDS.get_blob_to_bytes(container, "log").content == b"ab" + LARGE
        rejected(412, "", APPENDS.append_block, container, "log", b"x", appendpos_condition=1)


def test_page_blobs():
    with Container() as container:
        PAGES.create_blob_from_bytes(container, "disk", LARGE)
        assert PAGES.get_blob_to_bytes(container, "disk").content == LARGE
        before = PAGES.snapshot_blob(container, "disk").snapshot
        PAGES.clear_page(container, "disk", 0, 511)
        assert [(each.start, each.end) for each in PAGES.get_page_ranges(container, "disk")] == [(512, len(LARGE) - 1)]
        [change] = PAGES.get_page_ranges_diff(container, "disk", before)
        assert (change.start, change.end, change.is_cleared) == (0, 511, True)
        PAGES.resize_blob(container, "disk", 1024)
        PAGES.set_sequence_number(container, "disk", "update", "5")
        assert PAGES.get_blob_properties(container, "disk").properties.page_blob_sequence_number == 5
        PAGES.delete_blob(container, "disk", delete_snapshots="include")


def test_copies():
    with Container() as container:
        SERVICE.create_blob_from_bytes(container, "a", b"x")
        copied = SERVICE.copy_blob(container, "b", SERVICE.make_blob_url(container, "a"))
        assert copied.status == "success"
        assert content(container, "b") == b"x"
        rejected(409, "", SERVICE.abort_copy_blob, container, "b", copied.id)


def test_signatures():
    with Container() as container:
        SERVICE.create_blob_from_bytes(container, "a b", b"x")
        terms = {"permission": BlobPermissions.READ, "expiry": SOON}
        reader = grant(SERVICE.generate_blob_shared_access_signature(container, "a b", **terms))
        assert reader.get_blob_to_bytes(container, "a b").content == b"x"
        rejected(403, "", reader.delete_blob, container, "a b")
        policy = models.AccessPolicy(ContainerPermissions.LIST, SOON)
        SERVICE.set_container_acl(container, {"list": policy})
        assert SERVICE.get_container_acl(container)["list"].permission == "l"
        lister = grant(SERVICE.generate_container_shared_access_signature(container, id="list"))
        assert [each.name for each in lister.list_blobs(container)] == ["a b"]
        rejected(403, "", lister.get_blob_to_bytes, container, "a b")
        account = SERVICE.generate_account_shared_access_signature(
            models.ResourceTypes(container=True, object=True), models.AccountPermissions(read=True, list=True), SOON
        )
        assert grant(account).get_blob_to_bytes(container, "a b").content == b"x"


def test_service_properties():
    found = SERVICE.get_blob_service_properties()
    assert found.cors == []
    rule = models.CorsRule(["http://a.example"], ["GET"], max_age_in_seconds=5)
    SERVICE.set_blob_service_properties(cors=[rule])
    assert [each.allowed_methods for each in SERVICE.get_blob_service_properties().cors] == [["GET"]]
    SERVICE.set_blob_service_properties(cors=[])


if __name__ == "__main__":
    run(sys.modules["__main__"])
