"""Commits that must see their rows: a partition's are settled together, by one read and one change.

What waits for a partition is decided in the order it came, each decision on what the ones before it leave; all of it is
then written on condition that the head of the partition is the one that was read with the rows. If it is not, another
process has committed meanwhile, and everything is read and decided anew; this time with the head locked, since a
process that writes without reading, over and over, would always be faster.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from lazulite.engine.contract import Decide, EngineUnavailableError
from lazulite.engine.postgres.errors import again
from lazulite.engine.postgres.keys import encode_text, form, whole_if_long
from lazulite.engine.postgres.partition_io import Asked, Change, Changes, Reading
from lazulite.engine.postgres.single_writes import Partition, SingleWrites
from lazulite.engine.postgres.sql_scripts import Place, RowChange
from lazulite.engine.postgres.stamps import Stamps

_ROWS_MAX = 200
"""How many rows are settled together, unless one commit has more."""


@dataclass(slots=True, eq=False)
class _Commit:
    rows: Sequence[str]
    decide: Decide
    answer: "asyncio.Future[int]"
    keys: dict[str, bytes] = field(init=False)
    """By row, the form of its key."""

    def __post_init__(self) -> None:
        self.keys = {row: form(encode_text(row)) for row in self.rows}


class Partitions:
    """See above.

    Args:
        changes: how the database is told.
        stamps: of this process.
        single: the writes that do without all this; a partition is theirs or ours, not both at a time.
        seconds_max: how long a commit is tried while others get in between.
    """

    def __init__(self, changes: Changes, stamps: Stamps, single: SingleWrites, seconds_max: float) -> None:
        self._changes = changes
        self._stamps = stamps
        self._single = single
        self._seconds_max = seconds_max
        self._waiting: dict[Partition, list[_Commit]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def has(self, place: Place) -> bool:
        """Say whether commits of a partition are being settled."""
        return (place.space, place.partition_key) in self._waiting

    async def finished(self) -> None:
        """Return when nothing is on its way."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await self._changes.finished()

    async def commit(self, place: Place, rows: Sequence[str], decide: Decide) -> int:
        """See `Engine.commit`."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        commit = _Commit(rows, decide, answer)
        partition = place.space, place.partition_key
        waiting = self._waiting.get(partition)
        if waiting is not None:
            waiting.append(commit)
        else:
            self._waiting[partition] = [commit]
            task = asyncio.create_task(self._settle_all(place, partition))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            return await answer
        finally:
            del answer, commit  # An error's traceback has this frame, and would have itself by what is waited for.

    async def _settle_all(self, place: Place, partition: Partition) -> None:
        waiting = self._waiting[partition]
        while busy := self._single.busy.get(partition):
            await busy
        done = self._single.busy[partition] = asyncio.get_running_loop().create_future()
        self._single.give_up(partition)
        try:
            while waiting:
                commits = _together(waiting)
                del waiting[: len(commits)]
                await self._settle(place, commits)
        finally:
            del self._waiting[partition]
            del self._single.busy[partition]
            done.set_result(None)

    async def _settle(self, place: Place, commits: Sequence[_Commit]) -> None:
        outcomes: Sequence[int | BaseException]
        try:
            async with asyncio.timeout(self._seconds_max):
                outcomes = await self._settled(place, commits)
        except TimeoutError:
            outcomes = [EngineUnavailableError("too many others write to the partition")] * len(commits)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may wait for ever.
            outcomes = [error] * len(commits)
        for commit, outcome in zip(commits, outcomes, strict=True):
            if commit.answer.done():
                continue  # Somebody who does not wait any more.
            if isinstance(outcome, int):
                commit.answer.set_result(outcome)
            else:
                commit.answer.set_exception(again(outcome))

    async def _settled(self, place: Place, commits: Sequence[_Commit]) -> "Sequence[int | BaseException]":
        """Return what came of each: its stamp, or its refusal."""
        asked = Asked(place, list({key for commit in commits for key in commit.keys.values()}))
        outcomes: Sequence[int | BaseException] = ()

        def decide(reading: Reading) -> Change | None:
            nonlocal outcomes
            first = self._stamps.take(len(commits), above=reading.head)
            outcomes, changed = _decide(commits, reading.rows, first)
            return Change(place, reading.head, first + len(commits) - 1, changed) if changed else None

        change = decide(await self._changes.read(asked))
        done = change is None or await self._changes.apply(change)
        while not done:
            done = await self._changes.settle(asked, decide)
        return outcomes


def _together(waiting: Sequence[_Commit]) -> Sequence[_Commit]:
    """Return the first commits, as many as are settled together."""
    rows = 0
    for index, commit in enumerate(waiting):
        rows += len(commit.rows)
        if index and rows > _ROWS_MAX:
            return waiting[:index]
    return list(waiting)


def _decide(
    commits: Sequence[_Commit], current: dict[bytes, bytes | None], first: int
) -> "tuple[list[int | BaseException], list[RowChange]]":
    """Decide commits one after the other, each with a stamp of its own."""
    outcomes: list[int | BaseException] = []
    changes: dict[bytes, RowChange] = {}
    for stamp, commit in enumerate(commits, first):
        values = [current.get(commit.keys[row]) for row in commit.rows]
        try:
            decided = [(commit.keys[row], row, value) for row, value in commit.decide(values, stamp).items()]
        except BaseException as refusal:  # noqa: BLE001 - any refusal at all; it is handed to whoever asked.
            outcomes.append(refusal)
            continue
        for key, row, value in decided:
            current[key] = value
            changes[key] = RowChange(key, whole_if_long(encode_text(row)), stamp, value)
        outcomes.append(stamp)
    return outcomes, list(changes.values())
