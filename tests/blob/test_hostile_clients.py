"""What hostile names and clients without credentials leave: nothing outside the directory of contents, and nothing."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lazulite.engine.content.files import ContentFiles
from lazulite.protocol.message import Request, response_of

from .world import ACCOUNT, CONTAINER, VERSION, opened

LARGE = b"x" * 20_000
NAMES = [
    "/".join("a" * 254),
    "...a",
    "b/../../docs/outside",
    "/etc/passwd",
    "a//b",
    "a/./b",
    "a\\..\\b",
    "..%2F..%2Foutside",
    "con",
    " ",
]


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
async def test_no_name_leads_out_of_the_directory_of_contents(tmp_path: Path, name: str) -> None:
    async with opened() as world:
        contents = ContentFiles(tmp_path / "a" / "content")
        vars(world)["contents"] = contents
        world.restart()
        try:
            path = f"{CONTAINER}/{name}"
            put = await world.ask("PUT", path, "", LARGE, x_ms_blob_type="BlockBlob")
            assert put.status == 201, put
            found = await world.ask("GET", path)
            assert (found.status, found.body) == (200, LARGE)
            [file] = [each for each in files(tmp_path) if not each.endswith(".process")]
            assert re.fullmatch(r"a/content/\d+/\d+(\.open)?/\w+", file)
        finally:
            await contents.close()


@pytest.mark.parametrize("name", ["a" * 1025, "a\0b", "a\nb", "..", "../../../outside", "/".join("a" * 255)])
async def test_names_that_no_blob_has_change_nothing(name: str) -> None:
    async with opened() as world:
        put = await world.ask("PUT", f"{CONTAINER}/{name}", "", LARGE, x_ms_blob_type="BlockBlob")
        assert (put.status, put.code) in {
            (400, "OutOfRangeInput"),
            (400, "InvalidResourceName"),
            (400, "InvalidUri"),
            (400, "InvalidQueryParameterValue"),
            (404, "ContainerNotFound"),
        }
        assert await world.rows() == []
        assert await world.kept() == set()


class _RefusedBody:
    length = 1 << 32
    is_whole = False

    async def read(self, bytes_max: int) -> bytes:
        raise AssertionError(bytes_max)

    def chunks(self) -> AsyncIterator[bytes]:
        raise AssertionError


@pytest.mark.parametrize(
    "query", ["", "comp=block&blockid=YQ%3D%3D", "comp=blocklist", "comp=appendblock", "comp=page"]
)
@pytest.mark.parametrize("authorization", ["", "SharedKey devstoreaccount1:AAAA", "Bearer x"])
async def test_a_body_without_credentials_is_not_accepted_and_nothing_is_written(
    query: str, authorization: str
) -> None:
    async with opened() as world:
        headers = {"x-ms-version": VERSION, "x-ms-blob-type": "BlockBlob", "content-length": str(1 << 32)}
        if authorization:
            headers["authorization"] = authorization
        body = _RefusedBody()
        path = f"/{ACCOUNT}/{CONTAINER}/blob"
        response = await response_of(world.service, Request("PUT", path, query, headers, body_to_come=body))
        assert response.status in (401, 403)
        assert await world.rows() == []
        assert await world.kept() == set()
