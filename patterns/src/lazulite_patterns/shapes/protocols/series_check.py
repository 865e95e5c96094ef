"""What an audit finds in series: slots that are no numbers, and rows that reads do not count.

A series of one row that gets shards later keeps its numbers in a row without a shard's number. Reads of shards do not
count it. The repair adds its numbers to the first shard and deletes it, in one transaction. A row of which no shard is
there may be a series without shards, in the same table: it is not repaired.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from azure.data.tables import EntityProperty

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.grace import age_seconds
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.protocols.series import SeriesProtocol

NO_NUMBER = "slot of a series that is no number of its kind"
BEYOND = "slot beyond those of its series"
NOT_COUNTED = "row of a series that no shard counts"
_SHARD = re.compile(r".*![0-9]{2}", re.DOTALL)


@dataclass(frozen=True)
class SeriesCheck:
    """Each slot is a number that reads count."""

    protocol: SeriesProtocol[Any]

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.protocol.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return what is wrong with a row that has slots of the series."""
        age = age_seconds(row, now)
        slots = {name: slot for name in row.properties if (slot := self.protocol.slot(name)) is not None}
        beyond = sorted(name for name, slot in slots.items() if slot >= self.protocol.slots)
        wrong = sorted(name for name in slots.keys() - set(beyond) if not self._is_number(row.properties[name]))
        findings = []
        if wrong:
            findings.append(Finding(NO_NUMBER, table, row.key, age, detail=", ".join(wrong)))
        if beyond:
            findings.append(Finding(BEYOND, table, row.key, age, detail=", ".join(beyond)))
        if slots and self.protocol.shards > 1 and not _SHARD.fullmatch(row.key.row_key):
            found = Finding(NOT_COUNTED, table, row.key, age, detail="no shards: this may be a series without them")
            sharded = yield from self.protocol.get(row.key)
            if sharded is not None:
                found = replace(found, detail="")
            if sharded is not None and not findings:
                proposal = "add its numbers to the first shard, and delete it"
                found = replace(found.waiting(age), proposal=proposal, repair=lambda policy: self._counted(row, policy))
            findings.append(found)
        return findings

    def _is_number(self, value: object) -> bool:
        plain = value.value if isinstance(value, EntityProperty) else value
        return isinstance(plain, int | float if self.protocol.kind is float else int) and not isinstance(plain, bool)

    def _counted(self, row: Stored, policy: Policy) -> Protocol[bool]:
        try:
            yield from replace(self.protocol, policy=policy).absorb(row)
        except Conflict:
            return False
        return True
