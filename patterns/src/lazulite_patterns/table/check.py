"""What the auditor looks at in any table: each row is an entity of one of its classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.effects.effect import Protocol, immediately
from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.entities.bags import Bags
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.entities.registry import Schemas
from lazulite_patterns.filters import Filter
from lazulite_patterns.outcomes.grace import age_seconds
from lazulite_patterns.table.inbox import is_inbox

UNREADABLE = "row that no class of the table can read"


@dataclass(frozen=True)
class RowCheck:
    """Decodes rows. No repair is proposed: another program, or a later version of this one, may know the row."""

    table: str
    kinds: Schemas[Any] | Bags
    hidden: tuple[Filter, ...] = ()

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding if the row cannot be read."""
        findings = []
        if not is_inbox(row.key.row_key) and all(each.matches(row.properties) for each in self.hidden):
            try:
                self.kinds.decode(row)
            except EntityFormatError as error:
                findings = [Finding(UNREADABLE, table, row.key, age_seconds(row, now), detail=str(error))]
        return immediately(findings)
