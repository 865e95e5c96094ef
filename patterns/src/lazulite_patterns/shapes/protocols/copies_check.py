"""What other programs leave of copies. A crash leaves nothing, as a write and its copies are one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lazulite_patterns.auditing.finding import Finding, correction
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.outcomes.grace import age_seconds
from lazulite_patterns.shapes.protocols.copies import CopiesProtocol, fill

DIFFERENT = "copies that differ from the entity"
DANGLING = "link to an absent entity"


@dataclass(frozen=True)
class CopiesCheck:
    """Each holder has the fields of its target."""

    protocol: CopiesProtocol[Any]

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.protocol.session.name]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for a holder whose copies differ, or whose target is absent."""
        session = self.protocol.session
        try:
            entity = session.decode(row)
        except EntityFormatError:
            return []
        findings = []
        properties = dict(session.replacing(entity, row).operation.properties)
        before = dict(properties)
        for each in self.protocol.copied:
            if type(entity) is not each.ref.holder or (place := each.ref.key(entity)) is None:
                continue
            target = yield from session.stored(place)
            if target is None:
                findings.append(Finding(DANGLING, table, row.key, age_seconds(row, now), detail=str(tuple(place))))
            else:
                fill(properties, each, target.properties)
        if properties != before:
            findings.append(correction(DIFFERENT, table, row, now, "copy from the entity", properties))
        return findings
