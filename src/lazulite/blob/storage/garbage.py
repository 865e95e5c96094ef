"""Commits changes of partitions (`Changes`), and deletes what no row refers to any more: contents, lists, uploads.

The commit that takes the last reference away notes the garbage in the ledger of its partition. A task then deletes it,
and removes it from the ledger. Each step can be repeated, so a crash only delays it. The rows of a list go before its
contents, which are noted in the ledger by the same commit: so no row ever refers to a content that was deleted.

The space `UNTIDY_CONTAINERS` has a row for each container that may have garbage, with the time when it was written. A
process writes it before the first commit that makes garbage there, and relies on it for a day. After a start, those
containers are searched in the background. A search that finds nothing removes a row on which no process relies.
Processes that share a database search again and again, for what others left. One search runs at a time, and the pause
after it is `SEARCH_PAUSE` times as long as it took: it reads something of each blob.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing, suppress
from time import monotonic
from typing import TypeVar

from lazulite.blob.model.blob import read_blob
from lazulite.blob.model.ledger import read_ledger
from lazulite.blob.model.references import contents_of_row
from lazulite.blob.model.rows import LEDGER, UPLOAD, list_rows, upload_rows
from lazulite.blob.model.transaction import Decide, Transaction
from lazulite.blob.storage.partitions import Partitions
from lazulite.blob.storage.readers import Partition, Readers
from lazulite.blob.storage.tag_index import FIRST_NAME
from lazulite.blob.storage.walk import Walk
from lazulite.engine.commit import compare_and_swap, put_rows
from lazulite.engine.content.contract import ContentId, ContentStore, Owner
from lazulite.engine.contract import Clock, Engine, EngineError, KeyRange, Unknown, Waiter
from lazulite.protocol.clock import TICKS_PER_DAY
from lazulite.records.spaces import UNTIDY_CONTAINERS, Space

UNTIDY_SPACE = Space(number=UNTIDY_CONTAINERS, owner="blob", title="the containers that may have garbage")
ANNOUNCED_TICKS = TICKS_PER_DAY
"""How long a commit may rely on the row of its container. After twice this time, a search may remove the row."""
SEARCH_PAUSE = 20
"""The pause after a search, in times of its length: searches take a twentieth of the time at most."""
CONTENT = "c"
"""How a ledger names a content."""
_ROWS_OF_COMMIT, _CONTENTS_OF_COMMIT = 500, 1000
_ROWS_OF_STEP = 100
_BYTES = 8
_PARTITION = ""
_SEARCH: Partition = (0, "")
"""Stands for the search among the tasks; no container has this space."""
T = TypeVar("T")


class Garbage:
    """The garbage of all containers.

    Args:
        engine: holds the rows.
        contents: holds the contents.
        partitions: of the blobs.
        clock: the time, for the rows of containers.
    """

    def __init__(self, engine: Engine, contents: ContentStore, partitions: Partitions, clock: Clock) -> None:
        self._engine = engine
        self._contents = contents
        self._partitions = partitions
        self._clock = clock
        self.readers = Readers(self._reader_ended)
        self._announced: dict[int, int] = {}
        """The containers whose rows this process has written, and when."""
        self._waiting: set[Partition] = set()
        self._tasks: dict[Partition, asyncio.Task[None]] = {}
        self._searches_from_s = 0.0
        """When the next search may begin."""

    def is_announced(self, space: int) -> bool:
        """Tell whether a commit may make garbage in a container."""
        written = self._announced.get(space)
        return written is not None and self._clock() < written + ANNOUNCED_TICKS

    async def announce(self, space: int) -> None:
        """Note durably that a container may have garbage."""
        now, row = self._clock(), str(space)
        value = now.to_bytes(_BYTES, "big")
        await self._engine.commit(UNTIDY_CONTAINERS, _PARTITION, put_rows({row: value}))
        self._announced[space] = now

    def begin(self, partition: Partition) -> None:
        """Delete the garbage of a partition in the background, as soon as it has no reader."""
        if self.readers.has(partition) or partition in self._tasks:
            self._waiting.add(partition)
            return
        task = asyncio.get_running_loop().create_task(self._delete_quietly(partition))
        self._tasks[partition] = task
        task.add_done_callback(lambda _: self._task_ended(partition))

    async def wait_until_idle(self) -> None:
        """Wait until what was begun has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def begin_search(self) -> None:
        """Search in the background for what earlier processes left, unless one runs or its pause is not over."""
        if _SEARCH in self._tasks or monotonic() < self._searches_from_s:
            return
        task = asyncio.get_running_loop().create_task(self._search_quietly())
        self._tasks[_SEARCH] = task
        task.add_done_callback(lambda _: self._task_ended(_SEARCH))

    async def search(self) -> None:
        """Delete what earlier processes left. Raises `EngineError`."""
        for row, value in await self._untidy_containers():
            is_old = self._clock() >= int.from_bytes(value, "big") + 2 * ANNOUNCED_TICKS
            if await self._search_container(int(row)) == 0 and is_old:
                await self._engine.commit(UNTIDY_CONTAINERS, _PARTITION, compare_and_swap({row: value}, {row: None}))

    async def _search_container(self, space: int) -> int:
        """Delete the garbage of a container, partition by partition; return how many had some. Rows are jumped over."""
        found = steps = 0
        async with aclosing(Walk(self._engine, space, None, _ROWS_OF_STEP)) as walk:
            await walk.begin((FIRST_NAME, ""))
            while walk.key is not None:
                name, row = walk.key
                if row == LEDGER and read_ledger(walk.value).garbage:
                    found += 1
                    self.begin((space, name))
                    if (space, name) in self._tasks:
                        await asyncio.wait([self._tasks[space, name]])
                await walk.jump((name + "\0", ""))
                steps += 1
                if steps % _ROWS_OF_STEP == 0:
                    await asyncio.sleep(0)
        return found

    async def delete(self, partition: Partition) -> None:
        """Delete the garbage of a partition.

        Raises:
            EngineError: some is left.
        """
        space, name = partition
        value = await self._engine.get(space, name, LEDGER)
        garbage = read_ledger(value).garbage
        if not garbage:
            return
        await self._delete_contents(partition, [each for each in garbage if each[0] == CONTENT])
        if references := tuple(each for each in garbage if each[0] != CONTENT):
            live = await self._live(space, name, references)
            async with aclosing(self._steps(partition, references)) as steps:
                async for rows in steps:
                    await self._delete_contents(partition, await self._delete_rows(partition, rows, live))
            await self._sweep(partition, references)

    async def _steps(self, partition: Partition, references: Iterable[str]) -> AsyncGenerator[list[str], None]:
        """Yield the rows of lists and uploads, as many as one commit deletes."""
        rows: list[str] = []
        contents = 0
        for each in references:
            async with aclosing(self._partitions.slices(*partition, _rows_of(each))) as parts:
                async for part in parts:
                    for index, stored in enumerate(part.values):
                        rows.append(part.key(index)[1])
                        contents += len(contents_of_row(partition[0], rows[-1], stored))
                        if len(rows) >= _ROWS_OF_COMMIT or contents >= _CONTENTS_OF_COMMIT:
                            yield rows
                            rows, contents = [], 0
        if rows:
            yield rows

    async def _delete_rows(
        self, partition: Partition, rows: Sequence[str], live: AbstractSet[ContentId]
    ) -> Collection[str]:
        """Delete rows. Their contents become garbage by themselves, except live ones; return them."""

        def delete(transaction: Transaction) -> Collection[str]:
            deleted: dict[str, None] = {}
            for row in rows:
                value = transaction.value(row)
                if value is None:
                    continue  # Another process was here.
                transaction.put(row, None)
                alone = [each for each in contents_of_row(partition[0], row, value) if each not in live]
                deleted.update((f"{CONTENT}{each.number}", None) for each in alone)
            for content in deleted:
                transaction.ledger = transaction.ledger.discard(content)
            return deleted

        return (await self._partitions.commit(*partition, delete, rows))[1]

    async def _delete_contents(self, partition: Partition, contents: Collection[str]) -> None:
        """Delete contents that are garbage by themselves."""
        if contents:
            await self._contents.delete({ContentId(partition[0], int(each[1:])) for each in contents})
            await self._sweep(partition, tuple(contents))

    async def _sweep(self, partition: Partition, deleted: tuple[str, ...]) -> None:
        """Remove from the ledger what was deleted."""

        def sweep(transaction: Transaction) -> None:
            transaction.ledger = transaction.ledger.swept(deleted)

        await self._partitions.commit(*partition, sweep)

    async def _live(self, space: int, name: str, references: Collection[str]) -> AbstractSet[ContentId]:
        """Return the contents of the lists and of the upload that are in use, or became garbage after `references`."""
        prefixes: set[str] = set()
        found: set[ContentId] = set()
        ranges = [KeyRange((name, LEDGER), (name, UPLOAD))]
        async with aclosing(self._engine.scan(space, ranges)) as parts:
            async for part in parts:
                for index, value in enumerate(part.values):
                    if part.key(index)[1] == LEDGER:
                        ledger = read_ledger(value)
                        later = [each for each in ledger.garbage if each not in references and each[0] != CONTENT]
                        prefixes.update(map(_rows_of, later))
                        if ledger.upload:
                            prefixes.add(upload_rows(ledger.upload))
                        continue
                    blob = read_blob(value)
                    if blob.list:
                        prefixes.add(list_rows(blob.list))
        for prefix in prefixes:
            async with aclosing(self._partitions.slices(space, name, prefix)) as slices:
                async for part in slices:
                    for index, value in enumerate(part.values):
                        found.update(contents_of_row(space, part.key(index)[1], value))
        return found

    async def _untidy_containers(self) -> list[tuple[str, bytes]]:
        """Return the rows of the containers that may have garbage, with their values."""
        found: list[tuple[str, bytes]] = []
        async with aclosing(self._engine.scan(UNTIDY_CONTAINERS, [KeyRange((_PARTITION, ""), None)])) as parts:
            async for part in parts:
                found += [(part.key(index)[1], value) for index, value in enumerate(part.values)]
        return found

    async def _search_quietly(self) -> None:
        began_s = monotonic()
        with suppress(EngineError):
            await self.search()
        self._searches_from_s = monotonic() + SEARCH_PAUSE * (monotonic() - began_s)

    async def _delete_quietly(self, partition: Partition) -> None:
        with suppress(EngineError):  # The next commit of the partition, or the next start, tries again.
            await self.delete(partition)

    def _task_ended(self, partition: Partition) -> None:
        del self._tasks[partition]
        self._begin_waiting(partition)

    def _reader_ended(self, partition: Partition) -> None:
        self._begin_waiting(partition)

    def _begin_waiting(self, partition: Partition) -> None:
        if partition in self._waiting:
            self._waiting.discard(partition)
            self.begin(partition)


def _rows_of(reference: str) -> str:
    """Return how the rows of a list or an upload begin, given its name in a ledger."""
    number = int(reference[1:])
    return upload_rows(number) if reference[0] == UPLOAD else list_rows(number)


async def referenced_contents(engine: Engine, owner: Owner) -> Collection[ContentId]:
    """Return the contents to which the rows of an owner refer, as of one snapshot.

    Raises:
        EngineError: they cannot be read.
    """
    space, name = owner
    found: set[ContentId] = set()
    async with aclosing(engine.scan(space, [KeyRange((name, ""), (name + "\0", ""))])) as parts:
        async for part in parts:
            for index, value in enumerate(part.values):
                found.update(contents_of_row(space, part.key(index)[1], value))
    return found


class Changes:
    """The changes of all partitions.

    Args:
        partitions: of the blobs.
        garbage: that changes make.
    """

    def __init__(self, partitions: Partitions, garbage: Garbage) -> None:
        self._partitions = partitions
        self._garbage = garbage

    async def commit(self, partition: Partition, decide: Decide[T], *rows: str) -> T:
        """Change a partition; return the result of `decide`. See `Partitions.commit`.

        Garbage that the change makes is deleted afterwards.
        """
        space, name = partition
        if self._garbage.is_announced(space):
            transaction, result = await self._partitions.commit(space, name, decide, rows)
        else:

            def cautious(transaction: Transaction) -> T:
                result = decide(transaction)
                if transaction.new_garbage:
                    raise _UnannouncedGarbageError
                return result

            try:
                transaction, result = await self._partitions.commit(space, name, cautious, rows)
            except _UnannouncedGarbageError:
                await self._garbage.announce(space)
                transaction, result = await self._partitions.commit(space, name, decide, rows)
        if transaction.ledger.garbage:
            self._garbage.begin(partition)
        return result

    def commit_now(self, partition: Partition, decide: Decide[T], waiter: Waiter, *rows: str) -> T | Unknown:
        """Decide a change in this step, see `Engine.commit_now`; return the result of `decide`, or `UNKNOWN`.

        A partition with garbage, or a change that makes some, is for `commit`.
        """

        def tidy(transaction: Transaction) -> T:
            result = decide(transaction)
            if transaction.ledger.garbage:
                raise _UnannouncedGarbageError
            return result

        return self._partitions.commit_now(*partition, tidy, waiter, rows)


class _UnannouncedGarbageError(EngineError):
    """A change makes garbage in a container of which no row tells it. Nothing was changed."""
