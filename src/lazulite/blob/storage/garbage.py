"""Deletes contents, lists and uploads to which no row refers any more.

The commit that takes the last reference away notes the garbage in the ledger of its partition. A task then deletes it,
and removes it from the ledger. Each step can be repeated, so a crash only delays it.

The space `UNTIDY_CONTAINERS` has a row for each container that may have garbage. It is written once by each process,
before the first commit that makes garbage there. After a start, those containers are searched in the background.
"""

import asyncio
from collections.abc import AsyncGenerator
from collections.abc import Set as AbstractSet
from contextlib import aclosing, suppress

from lazulite.blob.model.blob import read_blob
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.ledger import read_ledger
from lazulite.blob.model.references import contents_of_row
from lazulite.blob.model.rows import LEDGER, UPLOAD, list_rows, upload_rows
from lazulite.blob.storage.partitions import Partitions
from lazulite.blob.storage.readers import Partition, Readers
from lazulite.engine.compare_and_swap import CompareAndSwapRows, RowChangedError, update_row
from lazulite.engine.content.contract import ContentId, ContentStore
from lazulite.engine.contract import Engine, EngineError, Key, KeyRange
from lazulite.records.spaces import UNTIDY_CONTAINERS, Space

UNTIDY_SPACE = Space(number=UNTIDY_CONTAINERS, owner="blob", title="the containers that may have garbage")
_ROWS_OF_COMMIT = 500
_PARTITION = ""
_SEARCH: Partition = (0, "")
"""Stands for the search among the tasks; no container has this space."""


class Garbage:
    """The garbage of all containers.

    Args:
        engine: holds the rows.
        contents: holds the contents.
        partitions: of the blobs.
    """

    def __init__(self, engine: Engine, contents: ContentStore, partitions: Partitions) -> None:
        self._engine = engine
        self._contents = contents
        self._partitions = partitions
        self.readers = Readers(self._reader_ended)
        self._untidy: set[int] = set()
        self._waiting: set[Partition] = set()
        self._tasks: dict[Partition, asyncio.Task[None]] = {}

    def is_announced(self, space: int) -> bool:
        """Tell whether a container is known to have garbage, perhaps."""
        return space in self._untidy

    async def announce(self, space: int) -> None:
        """Note durably that a container may have garbage."""
        await update_row(self._engine, UNTIDY_CONTAINERS, _PARTITION, str(space), lambda _: {str(space): b""})
        self._untidy.add(space)

    def begin(self, partition: Partition) -> None:
        """Delete the garbage of a partition in the background, as soon as it has no reader."""
        if self.readers.has(partition):
            self._waiting.add(partition)
            return
        if partition in self._tasks:
            self._waiting.add(partition)
            return
        task = asyncio.get_running_loop().create_task(self._delete_quietly(partition))
        self._tasks[partition] = task
        task.add_done_callback(lambda _: self._task_ended(partition))

    async def settle(self) -> None:
        """Wait until what was begun has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def begin_search(self) -> None:
        """Search in the background for what earlier processes left."""
        task = asyncio.get_running_loop().create_task(self._search_quietly())
        self._tasks[_SEARCH] = task
        task.add_done_callback(lambda _: self._task_ended(_SEARCH))

    async def search(self) -> None:
        """Delete what earlier processes left."""
        for space in await self._untidy_spaces():
            ranges = [KeyRange(("", ""), None)]
            async with aclosing(self._engine.scan(space, ranges)) as parts:
                async for part in parts:
                    for index, value in enumerate(part.values):
                        name, row = part.key(index)
                        if row == LEDGER and read_ledger(value).garbage:
                            self.begin((space, name))
            await self._others()

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
        alone = {ContentId(space, int(each[1:])) for each in garbage if each[0] == "c"}
        prefixes = [
            upload_rows(int(each[1:])) if each[0] == UPLOAD else list_rows(int(each[1:]))
            for each in garbage
            if each[0] != "c"
        ]
        rows: list[str] = []
        for prefix in prefixes:
            async with aclosing(self._rows(space, name, prefix)) as found:
                async for row, stored in found:
                    rows.append(row)
                    alone.update(contents_of_row(space, row, stored))
        if prefixes:
            alone -= await self._live(space, name)
        await self._contents.delete(alone)
        for start in range(0, len(rows), _ROWS_OF_COMMIT):
            await self._delete_rows(space, name, rows[start : start + _ROWS_OF_COMMIT])

        def sweep(draft: Draft) -> None:
            draft.ledger = draft.ledger.swept(garbage)

        await self._partitions.commit(space, name, sweep)

    async def _live(self, space: int, name: str) -> AbstractSet[ContentId]:
        """Return the contents of the lists and of the upload that are in use."""
        prefixes: set[str] = set()
        found: set[ContentId] = set()
        ranges = [KeyRange((name, LEDGER), (name, UPLOAD))]
        async with aclosing(self._engine.scan(space, ranges)) as parts:
            async for part in parts:
                for index, value in enumerate(part.values):
                    if part.key(index)[1] == LEDGER:
                        upload = read_ledger(value).upload
                        if upload:
                            prefixes.add(upload_rows(upload))
                        continue
                    blob = read_blob(value)
                    if blob.list:
                        prefixes.add(list_rows(blob.list))
        for prefix in prefixes:
            async with aclosing(self._rows(space, name, prefix)) as rows:
                async for row, value in rows:
                    found.update(contents_of_row(space, row, value))
        return found

    async def _rows(self, space: int, name: str, prefix: str) -> AsyncGenerator[tuple[str, bytes], None]:
        ranges = [KeyRange((name, prefix), (name, prefix[:-1] + chr(ord(prefix[-1]) + 1)))]
        async with aclosing(self._engine.scan(space, ranges)) as parts:
            async for part in parts:
                for index, value in enumerate(part.values):
                    yield part.key(index)[1], value

    async def _delete_rows(self, space: int, name: str, rows: list[str]) -> None:
        values = [await self._engine.get(space, name, row) for row in rows]
        with suppress(RowChangedError):
            await self._engine.commit(space, name, rows, CompareAndSwapRows(values, dict.fromkeys(rows)))

    async def _untidy_spaces(self) -> list[int]:
        ranges = [KeyRange((_PARTITION, ""), None)]
        keys: list[Key] = []
        async with aclosing(self._engine.scan(UNTIDY_CONTAINERS, ranges)) as parts:
            async for part in parts:
                keys += [part.key(index) for index in range(len(part.values))]
        return [int(row) for _, row in keys]

    async def _others(self) -> None:
        while tasks := [task for partition, task in self._tasks.items() if partition != _SEARCH]:
            await asyncio.wait(tasks)

    async def _search_quietly(self) -> None:
        with suppress(EngineError):
            await self.search()

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
