"""The rules of the primary as a worker sees them: it misses none, and asks for nothing when there are none."""

import asyncio
from collections.abc import Callable
from typing import Any

from lazulite.app.registry import OPERATIONS
from lazulite.faults.remote import KEY, RemoteFaults, fault_procedures
from lazulite.faults.rule import Subject
from lazulite.faults.rules import FaultRules
from lazulite.faults.rules_file import parse_rules
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
    assert (faults.clock_fault("table"), faults.engine_before("r")) == (None, None)


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
