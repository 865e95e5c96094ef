"""Names of files and of entries of an archive, and the length that an archive announces."""

import asyncio
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from zipfile import ZipFile

import pytest

from lazulite.ui.blobs import archive
from lazulite.ui.blobs.archive import archive_of, attachment
from lazulite.ui.blobs.listing import BlobRow
from lazulite.ui.calls import PageError


class StubClient:
    """Has blobs in memory, in pages of one list."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.contents = list(contents.values())

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, parameters: object, headers: Mapping[str, str]
    ) -> AsyncIterator[Any]:
        content = self.contents[int(headers["If-Match"].strip('"'))]

        class Answer:
            async def chunks(self) -> AsyncIterator[bytes]:
                yield content[:1]
                yield content[1:]

        yield Answer()


def unpacked(monkeypatch: pytest.MonkeyPatch, contents: Mapping[str, bytes], prefix: str) -> Mapping[str, bytes]:
    async def pages(*_: object) -> AsyncIterator[Sequence[BlobRow]]:
        for number, (name, content) in enumerate(contents.items()):
            properties = {"Content-Length": str(len(content)), "Etag": str(number)}
            properties["Last-Modified"] = "Sat, 28 Nov 2026 10:00:00 GMT"
            yield [BlobRow(name=name, properties=properties, metadata={}, tags={})]

    async def run() -> bytes:
        client: Any = StubClient(contents)
        made = await archive_of(client, "box", prefix)
        data = b"".join([chunk async for chunk in made.chunks()])
        assert len(data) == made.length
        return data

    monkeypatch.setattr(archive, "all_blobs", pages)
    with ZipFile(io.BytesIO(asyncio.run(run()))) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


def test_an_archive_has_the_announced_length_and_all_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {"a/b/1.txt": b"one", "a/b/ü.bin": bytes(range(256)) * 100, "a/b/empty": b""}
    found = unpacked(monkeypatch, contents, "a/b/")
    assert found == {"1.txt": b"one", "ü.bin": contents["a/b/ü.bin"], "empty": b""}


def test_no_entry_leaves_its_folder_or_replaces_another(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {"../../etc/x": b"1", "/abs": b"2", "C:\\y": b"3", "abs": b"4", "//": b"5"}
    assert list(unpacked(monkeypatch, contents, "")) == ["_/_/etc/x", "abs", "C_/y", "abs (2)", "_"]


def test_an_archive_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "ENTRIES_MAX", 1)
    with pytest.raises(PageError, match="at most 1 blobs"):
        unpacked(monkeypatch, {"a": b"", "b": b""}, "")
    with pytest.raises(PageError, match="no blob"):
        unpacked(monkeypatch, {}, "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/b.txt", "attachment; filename=\"b.txt\"; filename*=UTF-8''b.txt"),
        ('a"\r\nX: ü', "attachment; filename=\"a___X_ _\"; filename*=UTF-8''a%22%0D%0AX%3A%20%C3%BC"),
        ("folder/", "attachment; filename=\"folder\"; filename*=UTF-8''folder"),
    ],
)
def test_the_name_of_a_file_cannot_add_a_field(name: str, expected: str) -> None:
    fields = dict(attachment(name))
    assert fields["Content-Disposition"] == expected
    assert "sandbox" in fields["Content-Security-Policy"]
