"""Contents that are streamed to the browser: one blob, and a zip archive of many.

Invariant: the length is known before the first byte. Entries of an archive are stored as they are, under the ETags of
the list; one that changes meanwhile breaks the download off, so that no part is taken for the whole.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple
from urllib.parse import quote
from zipfile import ZipFile, ZipInfo

from lazulite.ui.backend import AnswerStream, ServiceClient
from lazulite.ui.blobs.listing import BlobRow, address_of, all_blobs
from lazulite.ui.calls import PageError

ENTRIES_MAX = 10_000
BYTES_MAX = 2_000_000_000
"""The most bytes of all contents together: what archives hold without extensions."""
_ENTRY_BYTES, _END_BYTES = 30 + 16 + 46, 22
"""An entry has a head, a descriptor behind the content and a place in the directory, and its name twice."""
_FIRST_YEAR = 1980
SANDBOX = ("Content-Security-Policy", "default-src 'none'; sandbox")
"""The field of a stored content, whatever it is."""


class StreamedBlob:
    """The content of a blob, as the service sends it. Implements `ResponseContent`.

    Args:
        stack: ends the request.
        answer: of the service.
    """

    held_bytes = 0

    def __init__(self, stack: AsyncExitStack, answer: AnswerStream) -> None:
        self._stack = stack
        self._answer = answer
        self.length = int(answer.headers.get("content-length", "0"))

    def chunks(self) -> AsyncIterator[bytes]:
        """See `ResponseContent`."""
        return self._answer.chunks()

    async def aclose(self) -> None:
        """See `ResponseContent`."""
        await self._stack.aclose()


async def open_blob(client: ServiceClient, container: str, name: str, snapshot: str, version: str) -> StreamedBlob:
    """Return the content of a blob, a snapshot or a version. Raises `BackendError`."""
    path, parameters = address_of(container, name, snapshot, version)
    async with AsyncExitStack() as stack:
        answer = await stack.enter_async_context(client.stream("GET", path, parameters))
        return StreamedBlob(stack.pop_all(), answer)
    raise AssertionError("the stack suppresses nothing")


class Entry(NamedTuple):
    """A blob in an archive."""

    blob: BlobRow
    name: str
    """In the archive: below the prefix, and never outside of the folder where it is unpacked."""


class Archive:
    """A zip archive of blobs. Implements `ResponseContent`.

    Args:
        client: of the Blob service.
        container: of the blobs.
        entries: what the archive has.
    """

    held_bytes = 0

    def __init__(self, client: ServiceClient, container: str, entries: Sequence[Entry]) -> None:
        self._client = client
        self._container = container
        self._entries = entries
        self.length = _END_BYTES + sum(
            _ENTRY_BYTES + 2 * len(each.name.encode()) + each.blob.length for each in entries
        )

    async def chunks(self) -> AsyncIterator[bytes]:
        """See `ResponseContent`."""
        sink = _Sink()
        with ZipFile(sink, "w") as archive:  # type: ignore[call-overload] # it needs nothing but `write` and `flush`
            for entry in self._entries:
                path, parameters = address_of(self._container, entry.blob.name)
                with archive.open(_info(entry), "w") as target:
                    async with self._client.stream("GET", path, parameters, {"If-Match": entry.blob.etag}) as answer:
                        async for chunk in answer.chunks():
                            target.write(chunk)
                            yield sink.take()
        yield sink.take()

    async def aclose(self) -> None:
        """See `ResponseContent`."""


async def archive_of(client: ServiceClient, container: str, prefix: str) -> Archive:
    """Return an archive of the blobs below a prefix.

    Raises:
        PageError: there are none, or too many.
        BackendError: the service rejects a request.
    """
    entries: list[Entry] = []
    size = 0
    names: set[str] = set()
    async for blobs in all_blobs(client, container, prefix):
        for blob in blobs:
            entries.append(Entry(blob, _unused(_safe(blob.name[_folder_end(prefix) :]), names)))
            size += blob.length
        if len(entries) > ENTRIES_MAX or size > BYTES_MAX:
            raise PageError(
                400,
                f"an archive has at most {ENTRIES_MAX:,} blobs and {BYTES_MAX:,} bytes: choose a longer prefix",
            )
    if not entries:
        raise PageError(404, "no blob is below this prefix")
    return Archive(client, container, entries)


def attachment(name: str) -> list[tuple[str, str]]:
    """Return the header fields of a file that is saved and that nothing runs.

    Args:
        name: of the file, or of a blob, whose last part counts.
    """
    file = name.rstrip("/").rpartition("/")[2] or "blob"
    plain = "".join(each if each.isascii() and (each.isalnum() or each in " ._-()+") else "_" for each in file)
    return [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file, safe='')}"),
        SANDBOX,
    ]


class _Sink:
    """Takes what an archive writes, without positions."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


def _info(entry: Entry) -> ZipInfo:
    modified = entry.blob.modified
    date, _, clock = modified.partition(" ")
    year, month, day = (int(each) for each in date.split("-"))
    hour, minute, second = (int(each) for each in clock.split(":"))
    info = ZipInfo(entry.name, (max(year, _FIRST_YEAR), month, day, hour, minute, second))
    info.file_size = entry.blob.length
    return info


def _folder_end(prefix: str) -> int:
    return prefix.rfind("/") + 1


def _safe(name: str) -> str:
    """Return a name that stays inside of the folder where an archive is unpacked."""
    parts = name.replace("\\", "/").replace("\0", "_").split("/")
    kept = ["_" if each in (".", "..") else each for each in parts if each]
    return "/".join(kept).replace(":", "_") or "_"


def _unused(name: str, names: set[str]) -> str:
    """Return a name that no other entry has."""
    found, number = name, 1
    while found in names:
        number += 1
        found = f"{name} ({number})"
    names.add(found)
    return found
