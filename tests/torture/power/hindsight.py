"""An earlier cut than the one that came, chosen when all is over.

Any call may have been the last one. The records up to it, and what clients and readers had received by then, are a cut
of their own. A fault that shows for a moment of a long life is so found by one life, where cuts that come by chance
would need hundreds.
"""

import random
from collections.abc import Iterable, Sequence

from .disk import Disk
from .recorder import Record

LOG = ".log"
"""How the names of RocksDB's logs end."""

Answered = tuple[int, int]
"""How many calls had been made when a write was about to be sent, and when its answer had come."""


def riskiest(disk: Disk, records: Sequence[Record], answered: Iterable[Answered], chance: random.Random) -> int:
    """Return the moment of an answer whose write had the fewest durable writes to a log behind it; among equals, any.

    One at least there must be: the write is in a log after it was sent, and durable before it is answered.

    Args:
        disk: as it was before all records; it is of no use afterwards.
        records: all calls of a life.
        answered: the writes of all clients; one at least.
        chance: chooses among equals.
    """
    ending: dict[int, list[int]] = {}
    for sent, came in answered:
        ending.setdefault(came, []).append(sent)
    logged: set[int] = set()
    risks: list[tuple[int, int]] = []
    for moment in disk.steps(records):
        unsynced = disk.unsynced(LOG)
        logged |= unsynced
        durable = logged - unsynced if moment in ending else ()
        risks += [(sum(call >= sent for call in durable), moment) for sent in ending.get(moment, ())]
    fewest = min(durable for durable, _ in risks)
    return chance.choice([moment for durable, moment in risks if durable == fewest])
