"""Rows of an outbox: each says that a side effect is due. `transactions.outbox` writes them; here are their names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.effects.effect import Protocol, immediately
from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes.grace import ARRIVAL_SECONDS, GRACE_SECONDS, age_seconds
from lazulite_patterns.outcomes.retries import Policy

OUTBOX = "_Outbox"
"""The first component of the RowKey of an outbox row, and its property `_Type`."""
OUTBOX_ROWS = KeyRange.starting_with(f"{OUTBOX}!")
OUTBOX_TASK = "Task"
"""The property that names the task of a row."""
LEFT = "side effect that did not run"


def delay_seconds(policy: Policy) -> int:
    """Return the time after which a transaction that begins within the deadline is committed, or never will be."""
    return math.ceil(2 * policy.deadline_seconds + ARRIVAL_SECONDS)


@dataclass(frozen=True)
class OutboxCheck:
    """Finds rows that are so old that their message is in the poison queue, or another program removed it."""

    table: str
    policy: Policy

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding if the row is of an outbox and old."""
        seconds = age_seconds(row, now)
        if row.properties.get(TYPE) != OUTBOX or seconds <= delay_seconds(self.policy) + GRACE_SECONDS:
            return immediately([])
        detail = f"task {row.properties.get(OUTBOX_TASK)}"
        return immediately([Finding(LEFT, table, row.key, seconds, "send its message again", detail)])
