"""The auditor's protocol: page by page through tables, each row by the checks of its table."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lazulite_patterns.auditing.finding import Check, Finding, Repair
from lazulite_patterns.auditing.source import Source, name_of, source_of
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import Gather
from lazulite_patterns.effects.tables import Continuation, Stored
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError
from lazulite_patterns.keys.characters import KeyFormatError, KeyValueError
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds, now
from lazulite_patterns.outcomes.retries import Policy

FOREIGN = "row that cannot be examined"
_FORMAT_ERRORS = (EntityFormatError, EntityValueError, KeyFormatError, KeyValueError)
"""What a row of another program leads to: it must not end the audit of the others."""
_LOOKS_MAX = 5
"""A row that changes at each look is examined by a later run."""


class WalkPosition(NamedTuple):
    """How far an audit is: the number of what is audited, the number of its table, and the next page of it."""

    audited: int = 0
    table: int = 0
    continuation: Continuation | None = None

    def text(self) -> str:
        """Return the place for a checkpoint."""
        return json.dumps(self)

    @classmethod
    def of(cls, text: str | None) -> "WalkPosition":
        """Return the place of a checkpoint; the first one for None.

        Raises:
            ValueError: it is the checkpoint of something else.
        """
        if text is None:
            return cls()
        audited, table, continuation = json.loads(text)
        return cls(int(audited), int(table), None if continuation is None else (continuation[0], continuation[1]))


class Step(NamedTuple):
    """What one page of a table led to, and where the next one is; None at the end."""

    findings: tuple[Finding, ...]
    following: WalkPosition | None


@dataclass(frozen=True)
class Walk:
    """An audit of some checks.

    Attributes:
        checks: of the rows.
        repair: whether findings are repaired.
        grace_seconds: how old a row must be that a repair deletes.
        policy: of each request.
        workers: rows that are examined at the same time.
    """

    checks: Sequence[Check]
    repair: bool = False
    grace_seconds: float = GRACE_SECONDS
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    workers: int = 8

    def step(self, place: WalkPosition) -> Protocol[Step]:
        """Examine one page of rows."""
        sources = {name_of(each): source_of(each) for check in self.checks for each in check.tables}
        if place.table >= len(sources):
            return Step((), None)
        source = sources[sorted(sources)[place.table]]
        page = yield from source.page(place.continuation, self.policy)
        checks = [each for each in self.checks if source.name in map(name_of, each.tables)]
        looks = tuple(self.look(check, source, row) for row in page.entities for check in checks)
        found = (yield from perform(Gather(looks, self.workers))) if looks else []
        following = place._replace(continuation=page.continuation)
        if page.continuation is None:
            following = WalkPosition(place.audited, place.table + 1)
        end = following.table >= len(sources)
        return Step(tuple(each for one in found for each in one), None if end else following)

    def look(self, check: Check, place: str | Source, row: Stored) -> Protocol[list[Finding]]:
        """Examine a row of a table or another place, confirm what is found, and repair it if that is wanted."""
        source = source_of(place)
        for _ in range(_LOOKS_MAX):
            time = yield from now()
            try:
                findings = yield from check.examine(source.name, row, time)
            except _FORMAT_ERRORS as error:
                findings = [Finding(FOREIGN, source.name, row.key, age_seconds(row, time), detail=str(error))]
            if not findings:
                return []
            again = yield from source.row(row.key, self.policy)
            if again is None:
                return []
            if again.etag == row.etag:
                return (yield from self._repaired(findings))
            row = again
        return []

    def _repaired(self, findings: Sequence[Finding]) -> Protocol[list[Finding]]:
        reported = []
        for each in findings:
            old = not each.deletes or each.age_seconds > self.grace_seconds
            if self.repair and each.repair is not None and old:
                reported.append((yield from self._after(each.repair, each)))
            else:
                reported.append(each)
        return reported

    def _after(self, repair: Repair, found: Finding) -> Protocol[Finding]:
        """Repair a finding; return it with what prevents that, if a row is not readable."""
        try:
            return replace(found, repaired=(yield from repair(self.policy)))
        except _FORMAT_ERRORS as error:
            return replace(found, detail="; ".join(filter(None, [found.detail, str(error)])))
