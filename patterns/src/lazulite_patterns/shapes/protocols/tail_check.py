"""What an audit finds in logs: rows among the entries that no read shows, such as rows of another program's log."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.effects.effect import Protocol, immediately
from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.keys.characters import KeyFormatError
from lazulite_patterns.outcomes.grace import age_seconds
from lazulite_patterns.shapes.protocols.tail import TailKey

NO_ENTRY = "row of a log that is no entry"
_TIME = re.compile("[0-9]{19}")
"""Ticks, with which the RowKey of another program's log begins, too."""


@dataclass(frozen=True)
class TailCheck:
    """Each row whose key begins with ticks is an entry. No repair is proposed: the other program may know it."""

    table: str

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for a row that reads of the log meet and leave out."""
        if _TIME.match(row.key.row_key) is None:
            return immediately([])
        try:
            TailKey.decode(row.key.row_key)
        except KeyFormatError as error:
            return immediately([Finding(NO_ENTRY, table, row.key, age_seconds(row, now), detail=str(error))])
        return immediately([])
