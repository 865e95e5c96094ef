"""Pages of containers."""

import pytest

from lazulite.blob.lists.list_containers import ListedContainer, write_containers
from lazulite.blob.versions import CONTAINER_ELEMENTS
from lazulite.protocol.steps import finish
from tests.blob.steps import steps_of
from tests.blob.test_versions import day_before
from tests.blob.world import opened

BASE = "http://127.0.0.1:10000/acc/"
PLAIN = {
    "PublicAccess": "blob",
    "Last-Modified": "Mon, 17 Jun 2019 23:55:48 GMT",
    "Etag": '"0x8D6"',
    "LeaseStatus": "unlocked",
    "LeaseState": "available",
}
START = '<?xml version="1.0" encoding="utf-8"?><EnumerationResults '


def page(*rows: ListedContainer, version: str = "2021-12-02", marker: str = "") -> str:
    return b"".join(finish(write_containers(BASE, version, [("Prefix", "a")], rows, marker=marker))).decode("utf-8-sig")


def test_a_page_to_the_byte() -> None:
    row = ListedContainer("c", PLAIN, metadata=[("K", "v")])
    assert page(row, version="2019-02-02", marker="/acc/d") == (
        f'{START}ServiceEndpoint="{BASE}"><Prefix>a</Prefix><Containers><Container><Name>c</Name><Properties>'
        '<Last-Modified>Mon, 17 Jun 2019 23:55:48 GMT</Last-Modified><Etag>"0x8D6"</Etag>'
        "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><PublicAccess>blob</PublicAccess>"
        "<DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>"
        "<DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>"
        "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold></Properties>"
        "<Metadata><K>v</K></Metadata></Container></Containers><NextMarker>/acc/d</NextMarker></EnumerationResults>"
    )


def test_encryption_scopes_stand_before_immutability() -> None:
    assert (
        "<PublicAccess>blob</PublicAccess><DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>"
        "<DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>"
        "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold>"
        "<ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled></Properties>"
    ) in page(ListedContainer("c", PLAIN))


def test_a_deleted_container() -> None:
    deleted = {**PLAIN, "DeletedTime": "Tue, 18 Jun 2019 00:00:00 GMT", "RemainingRetentionDays": "6"}
    written = page(ListedContainer("c", deleted, deleted_version="01D6EFFE3CFFC228"))
    assert "<Name>c</Name><Deleted>true</Deleted><Version>01D6EFFE3CFFC228</Version><Properties>" in written
    end = "<DeletedTime>Tue, 18 Jun 2019 00:00:00 GMT</DeletedTime><RemainingRetentionDays>6</RemainingRetentionDays>"
    assert f"{end}</Properties>" in written


def test_an_empty_page() -> None:
    assert page().endswith("<Prefix>a</Prefix><Containers /><NextMarker /></EnumerationResults>")


def test_old_lists_have_urls() -> None:
    old = page(ListedContainer("c", PLAIN), version="2012-02-12")
    assert f'{START}AccountName="{BASE}">' in old
    assert f"<Name>c</Name><Url>{BASE}c</Url><Properties>" in old
    assert "HasLegalHold" not in old


FULL = PLAIN | {"LeaseDuration": "fixed", "DeletedTime": "Tue", "RemainingRetentionDays": "6"}


@pytest.mark.parametrize(("element", "since"), CONTAINER_ELEMENTS.items())
def test_elements_that_a_version_knows(element: str, since: str) -> None:
    row = ListedContainer("c", FULL, deleted_version="01D6EFFE3CFFC228")
    assert f"<{element}>" in page(row, version=since)
    assert f"<{element}>" not in page(row, version=day_before(since))


def test_a_long_page_is_written_in_steps() -> None:
    assert steps_of(write_containers(BASE, "", [], [ListedContainer("c", PLAIN)] * 5_000, marker="")) >= 100


async def test_a_full_page_leaves_no_scan_open() -> None:
    async with opened() as world:
        for name in ("one", "two"):
            await world.ask("PUT", name, "restype=container")
        assert b"<NextMarker>/" in (await world.ask("GET", "", "comp=list&maxresults=1")).body
        assert not world.engine._cursors
