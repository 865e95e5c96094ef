"""Requests that name no version: those of the account's default version, if it has one."""

from lazulite.protocol.version import RequestVersion
from tests.blob.world import VERSION, opened

PROPERTIES = "restype=service&comp=properties"


async def test_the_default_version_governs_requests_without_one() -> None:
    async with opened() as world:
        await world.ask("PUT", "public", "restype=container", b"", VERSION, x_ms_blob_public_access="blob")
        await world.ask("PUT", "public/blob", "", b"x", VERSION, x_ms_blob_type="BlockBlob")
        assert (await world.anonymous("GET", "public/blob")).headers["x-ms-version"] == "2009-09-19"
        body = b"<DefaultServiceVersion>2019-12-12</DefaultServiceVersion>"
        body = b"<StorageServiceProperties>%b</StorageServiceProperties>" % body
        assert (await world.ask("PUT", "", PROPERTIES, body)).status == 202
        assert (await world.anonymous("GET", "public/blob")).headers["x-ms-version"] == "2019-12-12"


def test_a_stated_version_counts_before_the_default() -> None:
    stated = RequestVersion("2021-12-02", "2021-12-02")
    assert stated.or_default("2019-12-12") == stated
    assert RequestVersion("", "2009-09-19").or_default("") == RequestVersion("", "2009-09-19")
