"""The data of all accounts as they were at one moment, and the return to it: what a test begins with again.

Only a server of a test has this, in memory or in a location of its own. The state is held in memory, contents included.

Invariants: a resource returns with a new space, as one that was deleted and created again does. So nothing that a
process knows of the old space, such as claimed messages or rows read ahead, is taken for the new one. Rows and
contents are the same bytes, so ETags and Timestamps return, too. All rows return in one commit.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from lazulite.app.account_data import Invalidated
from lazulite.app.commands import KEEP_STATE, RESET_STATE
from lazulite.app.registry import SPACES
from lazulite.blob.storage.catalog import Catalog as Containers
from lazulite.blob.storage.catalog import Container
from lazulite.control.channel import Channel
from lazulite.control.command import ControlError, Json, NoArguments, single
from lazulite.engine.commit import CompanionWrite, compare_and_swap
from lazulite.engine.content.contract import Claim, ContentId, ContentStore, Owner
from lazulite.engine.contract import Engine, Key
from lazulite.migration.contents import references_of
from lazulite.migration.parts import StorePart, rows_of
from lazulite.protocol.clock import system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.queue.catalog import Catalog as Queues
from lazulite.queue.catalog import Queue
from lazulite.records.catalog import NamedResource, is_marker
from lazulite.records.spaces import DELEGATIONS, EXPIRATIONS, SERVICE_PROPERTIES, SpaceAllocator
from lazulite.table.catalog import Catalog as Tables
from lazulite.table.catalog import Table

_OWN = (SERVICE_PROPERTIES, DELEGATIONS)
"""The spaces of accounts that name no other spaces."""
_SPACE_AT, _SPACE_END = 16, 32
"""Where the row of an expiration has the space of its queue, in hexadecimal digits."""

Rows: TypeAlias = Mapping[Key, bytes]


class _KeptResource(NamedTuple):
    """A table, a queue or a container with all that it has."""

    catalog: "_Catalog"
    account: str
    row: str
    resource: NamedResource
    rows: Rows
    contents: Mapping[tuple[str, int], bytes]
    """By the partition of the rows, and the number of the content."""


class _Catalog(NamedTuple):
    catalog: Tables | Queues | Containers
    read: Callable[[bytes], NamedResource]
    spaces: SpaceAllocator


@dataclass(slots=True)
class _State:
    resources: list[_KeptResource] = field(default_factory=list)
    own: dict[int, Rows] = field(default_factory=dict)
    expirations: Rows = field(default_factory=dict)


class KeptState:
    """Keeps the state of a store, and returns to it. Nothing may write meanwhile.

    Args:
        engine: holds the rows.
        contents: of the blobs.
        invalidated: keeps rows out of the caches of the process while they change.
    """

    def __init__(self, engine: Engine, contents: ContentStore, invalidated: Invalidated) -> None:
        self._engine = engine
        self._contents = contents
        self._invalidated = invalidated
        self._kept = _State()
        containers = Containers(engine, system_clock, contents)
        self._catalogs = (
            _Catalog(Tables(engine), Table.from_bytes, SpaceAllocator(engine)),
            _Catalog(Queues(engine), Queue.from_bytes, SpaceAllocator(engine)),
            _Catalog(containers, Container.from_bytes, SpaceAllocator(engine, listed=True)),
        )

    def register(self, channel: Channel) -> None:
        """Have commands keep the state, and return to it."""

        def keep(_: NoArguments) -> AsyncGenerator[Json, None]:
            return single(self.keep())

        def reset(_: NoArguments) -> AsyncGenerator[Json, None]:
            return single(self.reset())

        channel.register(KEEP_STATE, keep)
        channel.register(RESET_STATE, reset)

    async def keep(self) -> None:
        """Keep the state of now; before that, an empty one is kept.

        Raises:
            ControlError: a table has indexes, which cannot be kept.
        """
        state = _State(own={space: await self._rows(space) for space in _OWN})
        state.expirations = await self._rows(EXPIRATIONS)
        for catalog in self._catalogs:
            for (account, row), value in (await self._rows(catalog.catalog.space)).items():
                if not is_marker(row):
                    state.resources.append(await self._keep(catalog, account, row, catalog.read(value)))
        self._kept = state

    async def _keep(self, catalog: _Catalog, account: str, row: str, resource: NamedResource) -> _KeptResource:
        if len(resource.spaces) > 1:
            raise ControlError("has-indexes", f"the table {resource.name} has indexes, which cannot be reset")
        space = SPACES.get(catalog.catalog.space)
        assert space is not None
        part = StorePart(resource.space, resource.name, space.catalog)
        contents = {}
        async with aclosing(references_of(self._engine, part)) as references:
            async for content, claim in references:
                contents[claim.partition, content.number] = await self._content(content, claim)
        return _KeptResource(catalog, account, row, resource, await self._rows(resource.space), contents)

    async def _content(self, content: ContentId, claim: Claim) -> bytes:
        data = bytearray()
        length = await self._contents.length(content, claim)
        async with aclosing(self._contents.read(content, 0, length, claim)) as pieces:
            async for piece in pieces:
                data += piece
        return bytes(data)

    async def _rows(self, space: int) -> Rows:
        found: dict[Key, bytes] = {}
        async with aclosing(rows_of(self._engine, StorePart(space, ""))) as runs:
            async for run in runs:
                found |= {(each.partition, each.row): each.value for each in run}
        return found

    async def reset(self) -> None:
        """Return to the state that was kept last: an empty store, if none was."""
        await asyncio.gather(*(self._delete(each.catalog) for each in self._catalogs))
        writes = [write for space in _OWN for write in await self._own_writes(space)]
        spaces: dict[int, int] = {}
        for kept in self._kept.resources:
            spaces[kept.resource.space] = space = await kept.catalog.spaces.allocate()
            await self._write_contents(kept, space)
            named = replace(kept.resource, space=space).to_bytes()
            writes.append(CompanionWrite(kept.catalog.catalog.space, (kept.account, kept.row), named))
            writes += [CompanionWrite(space, key, value) for key, value in kept.rows.items()]
        for (partition, row), value in self._kept.expirations.items():
            new = spaces.get(int(row[_SPACE_AT:_SPACE_END], 16))
            if new is not None:
                moved = f"{row[:_SPACE_AT]}{new:016x}{row[_SPACE_END:]}"
                writes.append(CompanionWrite(EXPIRATIONS, (partition, moved), value))
        async with AsyncExitStack() as stack:
            for number in (*_OWN, *(catalog.catalog.space for catalog in self._catalogs)):
                keys = [write.key for write in writes if write.space == number]
                await stack.enter_async_context(self._invalidated(number, keys))
            await self._engine.commit(SERVICE_PROPERTIES, "", compare_and_swap({}, {}, writes))

    async def _delete(self, catalog: Tables | Queues | Containers) -> None:
        keys = [key for key in await self._rows(catalog.space) if not is_marker(key[1])]
        async with self._invalidated(catalog.space, keys):
            # At once, so that they share the flushes of the store.
            await asyncio.gather(*(self._delete_one(catalog, *key) for key in keys))

    @staticmethod
    async def _delete_one(catalog: Tables | Queues | Containers, account: str, row: str) -> None:
        with suppress(ServiceError):  # A request has deleted it meanwhile.
            await catalog.delete(account, row)

    async def _own_writes(self, space: int) -> list[CompanionWrite]:
        """Return the writes that make a space what it was."""
        found, kept = await self._rows(space), self._kept.own.get(space, {})
        different = {key: kept.get(key) for key in [*found, *kept] if found.get(key) != kept.get(key)}
        return [CompanionWrite(space, key, value) for key, value in different.items()]

    async def _write_contents(self, kept: _KeptResource, space: int) -> None:
        for (partition, number), data in kept.contents.items():
            writer = await self._contents.create(Owner(space, partition), number)
            await writer.write(data)
            self._contents.keep(await writer.seal())
