"""The rules of a server: counts of what each has seen, and the decision about each request.

Invariants:
- the same requests in the same order get the same decisions: chance is a hash of the seed, the rule, the operation, the
  resource, and how often the rule saw that resource;
- a request suffers from one fault at most: that of the first rule that hits it. All rules count it;
- memory is bounded: `RULES_MAX` rules, and counts of `COUNTS_MAX` resources. A generation of these is forgotten when
  another one is full; a forgotten resource is counted from the beginning.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from lazulite.control.command import Json
from lazulite.engine.contract import Snapshot
from lazulite.faults.rule import Rule, Subject, hashed, resource_of
from lazulite.protocol.clock import TICKS_PER_SECOND, Clock
from lazulite.protocol.fault import DELIVERY, Effect, Fault

RULES_MAX = 100
COUNTS_MAX = 65_536
MOMENTS_MAX = 8
"""The moments whose rows are kept at a time, for rules that show them."""


class FaultSource(Protocol):
    """Tells what requests suffer from: the rules of this process, or of the primary."""

    @property
    def active(self) -> bool:
        """Whether there may be rules. If not, nothing else is asked."""
        ...

    async def decide(self, subject: Subject) -> Fault | None:
        """Count a request, and return what happens to it."""
        ...

    def clock_fault(self, service: str) -> Fault | None:
        """Return the fault of the clock of a service, and count it."""
        ...

    def rows_before(self, rule: str) -> Snapshot | None:
        """Return the rows from before a rule; None if it has gone meanwhile."""
        ...


class NoFaults:
    """No rules, ever."""

    active = False

    async def decide(self, _: Subject) -> Fault | None:
        """See `FaultSource`."""
        return None

    def clock_fault(self, _: str) -> Fault | None:
        """See `FaultSource`."""
        return None

    def rows_before(self, _: str) -> Snapshot | None:
        """See `FaultSource`."""
        return None


NO_FAULTS: FaultSource = NoFaults()


class RulesError(ValueError):
    """Rules cannot be added. The text is one line for people."""


@dataclass(slots=True)
class _CountedRule:
    rule: Rule
    added_s: float
    before: Snapshot | None
    """The rows from before a rule that shows them."""
    seen: int = 0
    hits: int = 0


class FaultRules:
    """The rules of one process. Implements `FaultSource`.

    Args:
        rules: to begin with.
        monotonic: seconds that never step back, for windows of time.
        counts_max: the resources that are counted at a time.
        may_change_clock: whether services ask `clock` for their time, which costs each request a moment.
        breaks_connections: whether rules may be for the connections of clients: an ASGI server has its own.

    Attributes:
        active: whether there are rules.
        on_change: called when rules were added or removed.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        monotonic: Callable[[], float] = time.monotonic,
        counts_max: int = COUNTS_MAX,
        *,
        may_change_clock: bool = True,
        breaks_connections: bool = True,
    ) -> None:
        self._monotonic = monotonic
        self.may_change_clock = may_change_clock
        self._breaks_connections = breaks_connections
        self._generation_max = max(1, counts_max // 2)
        self._rules: dict[str, _CountedRule] = {}
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self.active = False
        self.on_change: list[Callable[[], None]] = []
        self.add(rules)

    def add(self, rules: Iterable[Rule], before: Snapshot | None = None) -> None:
        """Add rules behind the others.

        Args:
            rules: all or none are added.
            before: the rows of now, for rules that show them; None: this server has none.

        Raises:
            RulesError: there is a rule of a name already, there are too many, or one is not for this server. None was
                added.
        """
        added: dict[str, _CountedRule] = {}
        now = self._monotonic()
        rules = tuple(rules)
        for rule in rules:
            self._check(rule, before)
        for rule in rules:
            if rule.name in self._rules or rule.name in added:
                raise RulesError(f"there is a rule {rule.name} already")
            added[rule.name] = _CountedRule(rule, now, before if rule.effect is Effect.STALE else None)
        if len(self._rules) + len(added) > RULES_MAX:
            raise RulesError(f"there are at most {RULES_MAX} rules")
        self._rules.update(added)
        self._changed()

    def remove(self, name: str) -> bool:
        """Remove a rule; return whether there was one of that name."""
        found = self._rules.pop(name, None)
        self._changed()
        return found is not None

    def clear(self) -> int:
        """Remove all rules, and forget what they counted; return how many there were."""
        count = len(self._rules)
        self._rules.clear()
        self._young, self._old = {}, {}
        self._changed()
        return count

    def __iter__(self) -> Iterator[Rule]:
        """Yield the rules, in the order in which they hit."""
        return (each.rule for each in self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)

    @property
    def all_rows_before(self) -> Collection[Snapshot]:
        """The rows from before rules."""
        return {each.before for each in self._rules.values() if each.before is not None}

    def listed(self) -> Sequence[Json]:
        """Return each rule as it was written, with what it has seen and hit."""
        return [
            {"rule": dict(each.rule.given), "seed": each.rule.seed, "seen": each.seen, "hits": each.hits}
            for each in self._rules.values()
        ]

    async def decide(self, subject: Subject) -> Fault | None:
        """See `FaultSource`."""
        return self.decide_now(subject)

    def decide_now(self, subject: Subject) -> Fault | None:
        """Count a request, and return what happens to it."""
        fault = None
        now = self._monotonic()
        for each in self._rules.values():
            rule = each.rule
            if not rule.condition.is_open(now - each.added_s) or not rule.is_for(subject):
                continue
            each.seen += 1
            seen_of_resource = self._count(hashed((rule.name, *resource_of(subject))))
            if fault is None and rule.hits(subject, each.seen, seen_of_resource):
                each.hits += 1
                fault = rule.fault(subject)
        return fault

    def clock_fault(self, service: str) -> Fault | None:
        """See `FaultSource`: of the first rule whose window is open."""
        found = self._clock_rule(service)
        if found is None:
            return None
        found.seen += 1
        found.hits += 1
        return Fault(found.rule.name, found.rule.effect, found.rule.value, shown=found.rule.shown)

    def rows_before(self, rule: str) -> Snapshot | None:
        """See `FaultSource`."""
        found = self._rules.get(rule)
        return None if found is None else found.before

    def clock(self, service: str, right: Clock) -> Clock:
        """Return the clock of a service, which is off while a rule says so."""

        def clock() -> int:
            found = self._clock_rule(service) if self.active else None
            return right() + (0 if found is None else int(float(found.rule.value) * TICKS_PER_SECOND))

        return clock

    def _clock_rule(self, service: str) -> _CountedRule | None:
        now = self._monotonic()
        for each in self._rules.values():
            condition = each.rule.condition
            if (
                each.rule.effect is Effect.CLOCK
                and (not condition.services or service in condition.services)
                and condition.is_open(now - each.added_s)
            ):
                return each
        return None

    def _check(self, rule: Rule, before: Snapshot | None) -> None:
        """Raise `RulesError` if this server cannot have a rule."""
        if rule.effect is Effect.CLOCK and not self.may_change_clock:
            raise RulesError(
                f"rule {rule.name}: {rule.effect} needs a server without workers that was started with --faults"
            )
        if rule.effect in DELIVERY and not self._breaks_connections:
            raise RulesError(
                f"rule {rule.name}: {rule.effect} needs lazulite serve: under ASGI, connections are the host's"
            )
        if rule.effect is Effect.STALE and before is None:
            raise RulesError(f"rule {rule.name}: {rule.effect} needs the rows of a store")

    def _changed(self) -> None:
        self.active = bool(self._rules)
        for call in self.on_change:
            call()

    def _count(self, resource: int) -> int:
        count = self._young.get(resource)
        if count is None:
            count = self._old.pop(resource, 0)
            if len(self._young) >= self._generation_max:
                self._old, self._young = self._young, {}
        self._young[resource] = count + 1
        return count + 1
