"""What protocols assume of time: how late a request arrives, and when what a crash left behind is safe to remove.

Ages are those by the service's time. No clock of a host counts.
"""

from datetime import datetime

from lazulite_patterns.effects.blobs import BlobFacts
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import ServiceNow, UtcNow
from lazulite_patterns.effects.tables import Stored

GRACE_SECONDS = 600
"""The age from which a row without its counterpart is taken for left behind by a crash."""
ARRIVAL_SECONDS = 30
"""The longest that a request takes to arrive: an assumption."""


def now() -> Protocol[datetime]:
    """Return the service's time, for a protocol that had an answer; the host's where answers have no time."""
    return (yield from perform(ServiceNow())) or (yield from perform(UtcNow()))


def age_seconds(row: Stored, now: datetime) -> float:
    """Return the age of a row by its Timestamp; 0 if it was read without one, so that it is not taken for old."""
    return 0.0 if row.timestamp is None else max(0.0, (now - row.timestamp).total_seconds())


def blob_age_seconds(facts: BlobFacts, now: datetime) -> float:
    """Return the age of a blob; 0 if it was listed without a time, so that it is not taken for old."""
    return 0.0 if facts.last_modified is None else max(0.0, (now - facts.last_modified).total_seconds())
