"""Rows of chunks that no head names, as crashes leave them: found by reading, removed after a second look."""

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import Continuation, EntityKey, Page, Read, Stored
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.filters import Compare, in_partition
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.retries import begin, read
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.shapes.protocols.chunks import FAT, Content, owner_of
from lazulite_patterns.shapes.protocols.fat import FatProtocol
from lazulite_patterns.shapes.protocols.groups import removal

_SELECT = ("PartitionKey", "RowKey", "Timestamp", TYPE)


def collect(protocol: FatProtocol, partition_key: str) -> Protocol[int]:
    """Remove the rests of a partition, and return their number."""
    place = in_partition(partition_key) & Compare(TYPE, "eq", FAT)
    go_on: Continuation | None = None
    count = 0
    while True:
        effect = Page(protocol.table, place, _SELECT, continuation=go_on)
        page = yield from read(effect, (yield from begin(protocol.policy)))
        live: dict[EntityKey, str | None] = {}
        for row in page.entities:
            count += yield from _removed(protocol, row, live)
        if (go_on := page.continuation) is None:
            return count


def _removed(protocol: FatProtocol, row: Stored, live: dict[EntityKey, str | None]) -> Protocol[bool]:
    """Remove a row if it is a rest. `live` keeps the generations of heads that were read after the page."""
    owner = owner_of(row.key)
    if owner is None or not (yield from protocol.abandoned(row)):
        return False
    head, generation = owner
    if head not in live:
        live[head] = yield from live_generation(protocol, head)
    if live[head] == generation:
        return False
    try:
        yield from write(protocol.table, [removal(row.key, row.etag)], protocol.policy)
    except Conflict:
        return False
    return True


def live_generation(protocol: FatProtocol, head: EntityKey) -> Protocol[str | None]:
    """Return the generation that a head names; None if there is none."""
    effect = Read(protocol.table, head, ("PartitionKey", "RowKey", FAT))
    found = yield from read(effect, (yield from begin(protocol.policy)))
    content = None if found is None else Content.of(found.properties)
    return None if content is None else content.generation
