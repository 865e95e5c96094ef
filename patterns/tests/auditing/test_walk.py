"""The auditor reads each table once, confirms what is found, and goes on at a checkpoint."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lazulite_patterns import EntityFormatError, Finding, Unavailable
from lazulite_patterns.auditing import correction, deletion
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.auditing.walk import Walk, WalkPosition
from lazulite_patterns.effects.effect import Effect, Protocol, immediately
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored, Write
from lazulite_patterns.outcomes import Policy, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns_simulation import Simulation, World
from lazulite_patterns_simulation.world import Request

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Dated(World):
    """Rows are as old as their property `Age` says."""

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple[World, object]:
        after, answer = super().perform(effect, now_seconds)
        return Dated(after._rows), answer

    def entity(self, table: str, key: EntityKey) -> Stored | None:
        return self._dated(super().entity(table, key))

    def entities(self, table: str) -> list[Stored]:
        return [found for each in super().entities(table) if (found := self._dated(each)) is not None]

    def _dated(self, stored: Stored | None) -> Stored | None:
        age = 0 if stored is None else int(str(stored.properties.get("Age", 0)))
        return None if stored is None else stored._replace(timestamp=NOW - timedelta(seconds=age))


class Bad:
    """Rows with the property `Bad` are superfluous."""

    tables = ("a", "b")
    while_examined: Callable[[Stored], None] | None = None

    def __init__(self) -> None:
        self.examined: list[tuple[str, str]] = []

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        self.examined.append((table, row.key.row_key))
        if self.while_examined is not None:
            self.while_examined(row)
        return immediately([deletion("bad", table, row, now)] if "Bad" in row.properties else [])


class Audited:
    def __init__(self, driver: Simulation, *checks: Bad) -> None:
        self.driver, self._checks, self.policy = driver, checks, Policy(deadline_seconds=3)

    def checks(self) -> Sequence[Bad]:
        return self._checks


class NoAnswers:
    """Failpoints: no request arrives."""

    def before(self, effect: Effect[object]) -> None:
        raise ResultUnknown("no connection")

    def after(self, effect: Effect[object]) -> None: ...


class Kept:
    def __init__(self) -> None:
        self.texts: list[str | None] = []

    def load(self) -> str | None:
        return self.texts[-1] if self.texts else None

    def save(self, text: str | None) -> None:
        self.texts.append(text)


def put(simulation: Simulation, table: str, row: int, **properties: object) -> None:
    key = EntityKey("p", f"{row:04d}")
    simulation.world, _ = simulation.world.perform(Write(table, Operation(Kind.PUT, key, properties)))


@pytest.fixture
def simulation() -> Simulation:
    made = Simulation()
    made.runtime.utc_now = lambda: NOW
    made.world = Dated()
    return made


def run(simulation: Simulation, *checks: Bad, repair: bool = False, checkpoint: Kept | None = None) -> list[Finding]:
    return list(audit(Audited(simulation, *checks), repair=repair, checkpoint=checkpoint))  # type: ignore[arg-type]


def test_each_table_is_read_once_and_old_rows_are_repaired(simulation: Simulation) -> None:
    for row in range(1500):
        put(simulation, "a", row, **({"Bad": 1, "Age": 601} if row % 500 == 0 else {}))
    put(simulation, "b", 7, Bad=1, Age=600)
    check = Bad()
    found = run(simulation, check)
    assert [(each.table, each.key.row_key, each.age_seconds) for each in found] == [
        *(("a", f"{row:04d}", 601.0) for row in (0, 500, 1000)),
        ("b", "0007", 600.0),
    ]
    assert len(check.examined) == len(set(check.examined)) == 1501
    repaired = run(simulation, check, repair=True)
    assert [each.repaired for each in repaired] == [True, True, True, False], "one is not older than the grace"
    assert [each.key.row_key for each in run(simulation, check)] == ["0007"]
    assert "repaired: delete the row" in str(repaired[0])


def test_what_changes_meanwhile_is_examined_again(simulation: Simulation) -> None:
    put(simulation, "a", 1, Bad=1, Age=601)
    check = Bad()
    check.while_examined = lambda row: put(simulation, "a", 1) if "Bad" in row.properties else None
    assert run(simulation, check, repair=True) == []
    assert len(simulation.world.entities("a")) == 1
    check.while_examined = lambda row: put(simulation, "a", 1, Bad=2, Age=601)
    put(simulation, "a", 1, Bad=1, Age=601)
    assert run(simulation, check, repair=True) == [], "it is never the same at two looks"


def test_a_repair_is_of_the_row_that_was_confirmed(simulation: Simulation) -> None:
    put(simulation, "a", 1, Bad=1, Age=601)
    walk = Walk([Bad()])
    (finding,) = simulation.run(walk.step(WalkPosition())).findings
    put(simulation, "a", 1, Good=1)
    assert finding.repair is not None
    assert simulation.run(finding.repair(Policy())) is False
    assert len(simulation.world.entities("a")) == 1


class Odd(Bad):
    """Findings whose repairs meet a row that no class can read."""

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        findings = yield from super().examine(table, row, now)
        return [replace(each, detail="first", repair=self._unreadable) for each in findings]

    def _unreadable(self, policy: Policy) -> Protocol[bool]:
        raise EntityFormatError("no class of the table")


def test_a_repair_that_meets_an_unreadable_row_ends_no_audit(simulation: Simulation) -> None:
    for row in (1, 2):
        put(simulation, "a", row, Bad=1, Age=601)
    found = run(simulation, Odd(), repair=True)
    assert [(each.repaired, each.detail) for each in found] == [(False, "first; no class of the table")] * 2


def test_an_audit_goes_on_at_its_checkpoint(simulation: Simulation) -> None:
    for row in range(2500):
        put(simulation, "a", row)
    put(simulation, "b", 1, Bad=1)
    check, kept = Bad(), Kept()

    class Full(Exception):  # noqa: N818 - it is an interruption
        pass

    def stop(row: Stored) -> None:
        if row.key.row_key == "1200":
            raise Full

    check.while_examined = stop
    with pytest.raises(Full):
        run(simulation, check, checkpoint=kept)
    assert len(kept.texts) == 1
    check.while_examined = None
    check.examined.clear()
    assert len(run(simulation, check, checkpoint=kept)) == 1
    assert len(check.examined) == 1501
    assert kept.load() is None, "the next audit begins at the start"
    kept.save(WalkPosition(1).text())
    assert run(simulation, check, checkpoint=kept) == [], "this audit was at its end"


def test_a_correction_is_conditional(simulation: Simulation) -> None:
    put(simulation, "a", 1, Count=1)
    (row,) = simulation.world.entities("a")
    finding = correction("wrong", "a", row, NOW, "count again", {"Count": 2})
    assert finding.repair is not None
    put(simulation, "a", 1, Count=3)
    assert simulation.run(finding.repair(Policy())) is False
    unconditional = Planned(Operation(Kind.PUT, row.key, {}), WriteIds())
    with pytest.raises(AssertionError):
        correction("wrong", "a", row, NOW, "put", ("a", unconditional))


@pytest.mark.parametrize(("policy", "seconds"), [(None, 3), (Policy(deadline_seconds=9), 9)])
def test_an_audit_ends_at_the_deadline_of_what_is_audited_or_its_own(
    simulation: Simulation, policy: Policy | None, seconds: float
) -> None:
    simulation.runtime.failpoints = NoAnswers()
    with pytest.raises(Unavailable):
        list(audit(Audited(simulation, Bad()), policy=policy))  # type: ignore[arg-type]
    assert seconds / 3 < simulation.now_seconds <= seconds
