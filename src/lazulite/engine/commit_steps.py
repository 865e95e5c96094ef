"""Commits whose functions have much work to do on the rows that they are shown.

An engine calls a commit function in one step of the event loop. A function whose work would take too long for that
raises `StepsNeededError` with the work as a generator, and the engine writes nothing. `commit_in_steps` runs the
generator, other tasks having the loop between its steps, and commits again. The function keeps the result of the work
and uses it only if the rows are still the same.

In one process, one such commit of a partition runs at a time: the steps of two would undo each other's.
"""

import asyncio
from collections.abc import Generator, Sequence
from weakref import WeakValueDictionary

from lazulite.engine.contract import CommitFunction, Engine, EngineUnavailableError

_TRIES_MAX = 16
"""A try fails only if another kind of commit, or another process, changed one of the rows meanwhile."""

_locks: WeakValueDictionary[tuple[int, int, str], asyncio.Lock] = WeakValueDictionary()
"""By engine, space and partition."""


class StepsNeededError(Exception):
    """A commit function has work to do before it can decide. `steps` does that work, a short step at a time."""

    def __init__(self, steps: Generator[None, None, None]) -> None:
        super().__init__()
        self.steps = steps

    def release(self) -> None:
        """Release the frames that raised this error: they hold the rows, and this error, until a cycle collection."""
        self.__traceback__ = None


async def commit_in_steps(
    engine: Engine, space: int, partition: str, rows: Sequence[str], decide: CommitFunction
) -> int:
    """Commit as `Engine.commit` does, and do in steps the work that the function asks for.

    Raises:
        EngineUnavailableError: other commits changed the rows each time.
    """
    try:
        return await engine.commit(space, partition, rows, decide)
    except StepsNeededError as needed:
        needed.release()
    await asyncio.sleep(0)
    lock = _locks.setdefault((id(engine), space, partition), asyncio.Lock())
    async with lock:
        for _ in range(_TRIES_MAX):
            try:
                return await engine.commit(space, partition, rows, decide)
            except StepsNeededError as needed:
                needed.release()
                steps = needed.steps
            await asyncio.sleep(0)
            for _ in steps:
                await asyncio.sleep(0)
    raise EngineUnavailableError("other commits changed the rows of this one each time")
