"""What commits need before they can decide: work on their rows, or more rows.

A commit decides in one step of the event loop. If its work on the rows would take too long for that, or if it depends
on rows that it did not name, it returns `Needs`, and nothing is written. `commit_prepared` does the work in steps,
other tasks having the loop between two of them, or names the rows, and commits again.

A decision names the same rows whenever it is shown the same values. One that names other rows each time, such as rows
with the commit timestamp in their keys, would be tried forever, so the tries are bounded.

In one process, one commit of a partition that works in steps runs at a time: the steps of two would undo each other's.
"""

import asyncio
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from lazulite.engine.commit import Commit, Decision, Needs, Values
from lazulite.engine.contract import Engine, EngineError, EngineUnavailableError

T = TypeVar("T")

_TRIES_MAX = 16
"""A try fails only if another kind of commit, or another process, changed one of the rows meanwhile."""

_NAMINGS_MAX = 64
"""More rows than the decision of any service names one after the other."""

_locks: WeakValueDictionary[tuple[int, int, str], asyncio.Lock] = WeakValueDictionary()
"""By engine, space and partition."""


class _NeedsResult(NamedTuple, Generic[T]):
    """The result of a trial that needs something, apart from needs that an engine has to meet."""

    needs: Needs[T]


async def commit_prepared(engine: Engine, space: int, partition: str, commit: Commit[T], needs: Needs[T]) -> T:
    """Commit as `Engine.commit` does, with what the commit has said that it needs.

    Raises:
        EngineUnavailableError: other commits changed the rows each time.
        EngineError: the decision named other rows each time, although it was shown those that it had named before.
    """
    namings = 0
    while needs.instead is not None:
        if namings == _NAMINGS_MAX:
            raise EngineError(f"the decision of a commit named other rows in each of {namings} tries")
        namings += 1
        commit = needs.instead
        outcome = await engine.commit(space, partition, _trial(commit))
        if not isinstance(outcome, _NeedsResult):
            return outcome
        [needs] = outcome
        del outcome
    del needs  # It may hold the rows.
    await asyncio.sleep(0)
    lock = _locks.setdefault((id(engine), space, partition), asyncio.Lock())
    async with lock:
        for _ in range(_TRIES_MAX):
            outcome = await engine.commit(space, partition, _trial(commit))
            if not isinstance(outcome, _NeedsResult):
                return outcome
            commit, steps = outcome.needs.instead or commit, outcome.needs.steps or ()
            del outcome
            await asyncio.sleep(0)
            for _ in steps:
                await asyncio.sleep(0)
            del steps
    raise EngineUnavailableError("other commits changed the rows of this one each time")


def _trial(commit: Commit[T]) -> Commit[T | _NeedsResult[T]]:
    """Return a commit that writes nothing, and has what is needed as its result, if anything is."""

    def decide(values: Values, timestamp: int) -> Decision[T | _NeedsResult[T]]:
        decision = commit.decide(values, timestamp)
        if not isinstance(decision, Needs):
            if decision.changes.keys() <= set(commit.rows):
                return Decision(*decision)
            decision = commit.naming(decision.changes)
        return Decision({}, _NeedsResult(decision))

    return Commit(commit.rows, decide, commit.preconditions, commit.kept)
