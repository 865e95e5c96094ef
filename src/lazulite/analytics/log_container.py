"""The container `$logs` of each account: small blobs that are written once, and deleted when they are old.

Invariants:
- a blob is there as a whole, or not at all, and is never changed. Its name is claimed by the commit that writes it, so
  no two processes have one name;
- the number of a name is greater than that of each blob of its hour that is there;
- it needs the store alone, and not that blobs are served.

Source: reference §18.1.
"""

from collections.abc import Collection
from contextlib import aclosing, suppress
from typing import Final

from lazulite.blob.model.blob import INLINE_BYTES_MAX, Blob, BlobType, ContentHeaders
from lazulite.blob.model.retention import Retention, delete_current, replace_blob
from lazulite.blob.model.rows import CURRENT
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Context
from lazulite.blob.resource import LOGS
from lazulite.blob.storage.catalog import Container
from lazulite.engine.content.contract import Owner
from lazulite.engine.contract import KeyRange, SpaceDroppedError
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import pieces
from lazulite.protocol.metadata import Metadata
from lazulite.table.model.edm import format_datetime

TICKS_PER_HOUR: Final = 3600 * TICKS_PER_SECOND
_HEADERS: Final = ContentHeaders("application/octet-stream")
_DELETED_MAX: Final = 1000
"""Blobs that are deleted in one go."""


class NameTakenError(Exception):
    """Another process has written a blob of the name."""


def folder_of(service: str, hour: int) -> str:
    """Return what the names of the blobs of an hour begin with: `table/2011/07/31/1800/`.

    Args:
        service: whose requests they have.
        hour: the hours since 1601.
    """
    day, _, time = format_datetime(hour * TICKS_PER_HOUR).partition("T")
    return f"{service}/{day.replace('-', '/')}/{time[:2]}00/"


class LogContainer:
    """The blobs of logs of all accounts.

    Args:
        blobs: the context of the Blob service, served or not.
    """

    def __init__(self, blobs: Context) -> None:
        self._blobs = blobs
        self._next: dict[tuple[str, str], int] = {}
        """The number after the last one that this process knows, by account and folder."""

    async def require(self, account: str) -> Container:
        """Return the container, made if need be. Raises `EngineError`."""
        catalog = self._blobs.catalog
        found = await catalog.read(account, LOGS)
        if found is None:
            with suppress(ServiceError):  # Another process was faster.
                return await catalog.create(account, Container(LOGS, 0, self._blobs.clock()))
            found = await catalog.read(account, LOGS)
        if found is None:
            raise SpaceDroppedError
        return found

    async def put(self, account: str, folder: str, content: bytes, metadata: Metadata) -> str:
        """Write a blob under the next name of a folder; return the name.

        Raises:
            EngineError: it is not there, or its outcome is unknown.
        """
        container = await self.require(account)
        place = account, folder
        number = self._next.get(place)
        if number is None:
            self._forget(folder)
            number = await self._after_last(container, folder)
        while True:
            name = f"{folder}{number:06d}.log"
            number += 1
            if await self._blobs.partitions.get(container.space, name) is not None:
                continue
            try:
                await self._write(container, name, content, metadata)
            except NameTakenError:
                continue
            self._next[place] = number
            return name

    async def delete_before(self, account: str, service: str, hour: int) -> int:
        """Delete the blobs of a service whose hours are before one; return how many. Raises `EngineError`."""
        container = await self._blobs.catalog.read(account, LOGS)
        if container is None:
            return 0
        names = await self._names(container, f"{service}/", folder_of(service, hour), _DELETED_MAX)
        for name in names:
            with suppress(ServiceError):
                await self._blobs.changes.commit((container.space, name), _delete)
        return len(names)

    def _forget(self, folder: str) -> None:
        """Forget the numbers of other hours."""
        hour = folder.partition("/")[2]
        self._next = {place: number for place, number in self._next.items() if place[1].partition("/")[2] == hour}

    async def _after_last(self, container: Container, folder: str) -> int:
        names = await self._names(container, folder, f"{folder}~", None)
        numbers = [int(name[len(folder) : -4]) for name in names if name[len(folder) : -4].isdecimal()]
        return max(numbers, default=-1) + 1

    async def _names(self, container: Container, start: str, end: str, most: int | None) -> Collection[str]:
        found: dict[str, None] = {}
        within = KeyRange((start, ""), (end, ""))
        async with aclosing(self._blobs.engine.scan(container.space, [within], most, keys_only=True)) as parts:
            async for part in parts:
                for index in range(len(part.values)):
                    name, row = part.key(index)
                    if row == CURRENT:
                        found[name] = None
        return found

    async def _write(self, container: Container, name: str, content: bytes, metadata: Metadata) -> None:
        """Write a blob. Raises `NameTakenError`, `EngineError`."""
        contents = self._blobs.contents
        if len(content) <= INLINE_BYTES_MAX:
            await self._commit(container, name, Blob(BlobType.BLOCK, 0, 0, len(content), inline=content), metadata)
            return
        writer = await contents.create(Owner(container.space, name))
        try:
            for piece in pieces(content):
                await writer.write(piece)
            sealed = await writer.seal()
        except BaseException:
            await writer.discard()
            raise
        blob = Blob(BlobType.BLOCK, 0, 0, len(content), content=sealed.number)
        try:
            await self._commit(container, name, blob, metadata)
        except (NameTakenError, SpaceDroppedError):
            await contents.delete([sealed])
            raise
        contents.keep(sealed)

    async def _commit(self, container: Container, name: str, blob: Blob, metadata: Metadata) -> None:
        def decide(transaction: Transaction) -> None:
            if transaction.found is not None:
                raise ServiceError("BlobAlreadyExists")
            now = transaction.modified
            whole = blob._replace(modified=now, created=now, headers=_HEADERS, metadata=metadata)
            replace_blob(transaction, whole, Retention())

        try:
            await self._blobs.changes.commit((container.space, name), decide)
        except ServiceError:
            raise NameTakenError from None


def _delete(transaction: Transaction) -> None:
    transaction.require_blob()
    delete_current(transaction, Retention())
