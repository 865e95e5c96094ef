"""What cannot be decrypted: properties that were changed, moved, or encrypted with a key that is gone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.effects.effect import Protocol, immediately
from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.encryption.ciphers import Ciphers
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.outcomes.grace import age_seconds

UNDECRYPTABLE = "property that cannot be decrypted"


@dataclass(frozen=True)
class UndecryptableCheck:
    """Each encrypted property can be decrypted."""

    table: str
    cipher: Ciphers

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for a row that cannot be decrypted; only a person can decide."""
        found: list[Finding] = []
        try:
            self.cipher.decrypt(row.key, row.properties)
        except EntityFormatError as error:
            found.append(Finding(UNDECRYPTABLE, table, row.key, age_seconds(row, now), detail=str(error)))
        return (yield from immediately(found))
