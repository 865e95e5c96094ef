"""The rules of the primary as a worker sees them: it misses none, and asks for nothing when there are none."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lazulite.app.registry import OPERATIONS
from lazulite.engine.commit import put_rows
from lazulite.engine.contract import EngineUnavailableError, KeyRange
from lazulite.engine.frozen import HeldSnapshot
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.faults.remote import KEY, RemoteFaults, fault_procedures
from lazulite.faults.rule import Subject
from lazulite.faults.rules import FaultRules
from lazulite.faults.rules_file import parse_rules
from lazulite.protocol.clock import system_clock
from lazulite.protocol.fault import Effect, Fault, Moment

SUBJECT = Subject("table", "InsertEntity", "acct", "orders", "p/r", {"authorization": "SECRET", "x-tag": "a"})
RULE = 'header = true\n[[rule]]\nname = "r"\nerror = "ServerBusy"\nwhen = "after"\nheader = { x-tag = "a" }'


class Primary:
    """Has rules, and notes what workers send. `meanwhile` runs after a call was made, before its answer arrives."""

    def __init__(self) -> None:
        self.rules = FaultRules()
        self.sent: list[Any] = []
        self.meanwhile: Callable[[], None] = lambda: None

    async def call(self, procedure: str, *arguments: Any) -> Any:
        self.sent += arguments
        found = await fault_procedures(self.rules)[procedure](*arguments)
        self.meanwhile()
        return found


async def test_a_worker_learns_that_there_are_no_rules() -> None:
    faults = RemoteFaults(Primary())
    changes = []
    faults.on_change.append(lambda: changes.append(faults.active))
    assert faults.active
    await faults.learn()
    assert not faults.active
    faults.begin_invalidation(KEY)
    assert faults.active
    faults.end_invalidation(KEY)
    assert faults.active
    assert changes == [False, True]


async def test_a_worker_gets_the_fault_as_it_is() -> None:
    primary = Primary()
    primary.rules.add(parse_rules(RULE, OPERATIONS))
    faults = RemoteFaults(primary)
    assert await faults.decide(SUBJECT) == Fault("r", Effect.ERROR, "ServerBusy", Moment.AFTER, shown=True)
    assert faults.active
    assert "SECRET" not in str(primary.sent)
    assert await faults.decide(SUBJECT._replace(headers={})) is None
    assert faults.active
    assert faults.clock_fault("table") is None


async def test_a_worker_reads_the_rows_from_before_a_rule() -> None:
    store, primary = RocksEngine.open(None, system_clock), Primary()
    try:
        await store.commit(1, "p", put_rows({"a": b"1", "b": b"1"}))
        before = await HeldSnapshot.of(store)
        primary.rules.add(parse_rules('[[rule]]\nname = "r"\nstale = true', OPERATIONS), before)
        await store.commit(1, "p", put_rows({"a": b"2", "c": b"2"}))
        rows = RemoteFaults(primary).rows_before("r")
        assert await rows.keys(1, KeyRange(("", ""), None), 9) == [("p", "a"), ("p", "b")]
        assert await rows.keys(1, KeyRange(("p", "b"), ("p", "c")), 9) == [("p", "b")]
        assert await rows.values(1, [("p", "a"), ("p", "c")]) == [b"1", None]
        await before.close()
        primary.rules.clear()
        with pytest.raises(EngineUnavailableError, match="the rule has gone"):
            await rows.values(1, [("p", "a")])
    finally:
        await store.close()


async def test_learning_counts_nothing() -> None:
    primary = Primary()
    primary.rules.add(parse_rules(RULE, OPERATIONS))
    await RemoteFaults(primary).learn()
    listed: Any = primary.rules.listed()
    assert listed[0]["seen"] == 0


async def test_rules_that_come_while_a_worker_hears_of_none_are_not_missed() -> None:
    primary = Primary()
    faults = RemoteFaults(primary)
    primary.meanwhile = lambda: faults.begin_invalidation(KEY)
    await faults.learn()
    assert faults.active
    primary.meanwhile = lambda: None
    await asyncio.gather(*(faults.decide(SUBJECT) for _ in range(3)))
    assert not faults.active
