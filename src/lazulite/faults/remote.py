"""The rules of the primary, as a worker sees them: it asks about each request while there are rules.

Invariant: a worker that believes that there are none has heard so from the primary, and no rule was added since. The
primary announces each change as one of a cached row, and waits until all workers have acknowledged it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lazulite.engine.contract import EngineUnavailableError, Key, KeyRange, Snapshot
from lazulite.engine.remote.messages import Primary, Procedure
from lazulite.faults.rule import Subject
from lazulite.faults.rules import FaultRules
from lazulite.protocol.fault import Effect, Fault, Moment
from lazulite.protocol.secret_headers import SECRET_HEADERS

SPACE = 1023
"""The number of a space without rows. Its one key stands for the rules, which workers cache: that there are none."""
KEY: Key = ("rules", "")
_DECIDE, _KEYS, _VALUES = "faults.decide", "faults.keys", "faults.values"


def fault_procedures(rules: FaultRules) -> Mapping[str, Procedure]:
    """Return the procedures that workers call at the process that has the rules."""

    async def decide(sent: Any) -> Any:
        """Return None if there are no rules, else the fault as a list, which is empty for none."""
        if not rules.active:
            return None
        fault = None if sent is None else rules.decide_now(Subject(*sent))
        return [] if fault is None else [fault.rule, fault.effect.value, fault.value, fault.moment.value, fault.shown]

    def before(rule: str) -> Snapshot:
        rows = rules.rows_before(rule)
        if rows is None:
            raise EngineUnavailableError("the rule has gone meanwhile")
        return rows

    async def keys(rule: str, space: int, lower: Key, upper: Key | None, limit: int) -> Any:
        return await before(rule).keys(space, KeyRange(lower, upper), limit)

    async def values(rule: str, space: int, asked: Sequence[Key]) -> Any:
        return await before(rule).values(space, asked)

    return {_DECIDE: decide, _KEYS: keys, _VALUES: values}


class _EarlierRows:
    """The rows from before a rule, which the primary has. Implements `Snapshot`."""

    def __init__(self, primary: Primary, rule: str) -> None:
        self._primary = primary
        self._rule = rule

    async def keys(self, space: int, key_range: KeyRange, limit: int) -> list[Key]:
        """See `Snapshot`."""
        lower, upper = key_range
        bounds = tuple(lower), None if upper is None else tuple(upper)
        found = await self._primary.call(_KEYS, self._rule, space, *bounds, limit)
        return [(partition, row) for partition, row in found]

    async def values(self, space: int, keys: Sequence[Key]) -> list[bytes | None]:
        """See `Snapshot`."""
        found: list[bytes | None] = await self._primary.call(_VALUES, self._rule, space, list(keys))
        return found


class RemoteFaults:
    """Implements `FaultSource` in a worker, and `CacheInvalidation`.

    Args:
        primary: has the rules.

    Attributes:
        active: whether there may be rules.
        on_change: called when that may have changed.
    """

    def __init__(self, primary: Primary) -> None:
        self._primary = primary
        self._changes = 0
        self.active = True
        self.on_change: list[Callable[[], None]] = []

    async def learn(self) -> None:
        """Ask whether there are rules."""
        await self._ask(None)

    async def decide(self, subject: Subject) -> Fault | None:
        """See `FaultSource`."""
        headers = {name: text for name, text in subject.headers.items() if name not in SECRET_HEADERS}
        return await self._ask(list(subject._replace(headers=headers)))

    def clock_fault(self, _: str) -> Fault | None:
        """See `FaultSource`: workers have no rules for clocks."""
        return None

    def rows_before(self, rule: str) -> Snapshot:
        """See `FaultSource`."""
        return _EarlierRows(self._primary, rule)

    def begin_invalidation(self, _: Key) -> None:
        """Note that rules may be added now."""
        self._changes += 1
        self._set(active=True)

    def end_invalidation(self, _: Key) -> None:
        """See `CacheInvalidation`: the next request asks."""

    async def _ask(self, sent: Any) -> Fault | None:
        changes = self._changes
        found: Any = await self._primary.call(_DECIDE, sent)
        if found is None and changes == self._changes:
            self._set(active=False)
        if not found:
            return None
        rule, effect, value, moment, shown = found
        return Fault(rule, Effect(effect), value, Moment(moment), shown)

    def _set(self, *, active: bool) -> None:
        if active is not self.active:
            self.active = active
            for call in self.on_change:
                call()
