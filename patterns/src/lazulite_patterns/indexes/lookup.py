"""Look-ups by an index: entries are read, then the entities that they name."""

from typing import NamedTuple

from lazulite_patterns.effects.ambient import Together
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.tables import Continuation, EntityKey, Page, Stored
from lazulite_patterns.filters import Filter, in_partition, in_range
from lazulite_patterns.indexes.entries import Entry
from lazulite_patterns.indexes.index import Place
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes.retries import begin, read


class Hits(NamedTuple):
    """Entities that a page of entries leads to, and where the next page begins; None after the last one."""

    entities: list[Stored]
    continuation: Continuation | None


def hits(pointers: PointerIndex, place: Place, *, unique: bool, go_on: Continuation | None) -> Protocol[Hits]:
    """Read a page of entries and their entities. Entries whose entity does not fit any more are left out."""
    if place.partition_key is not None and place.row_key is not None:
        entry = Entry(place.table, EntityKey(place.partition_key, place.row_key), unique)
        found = yield from pointers.find(entry)
        return Hits([] if found is None else [found], None)
    effect = Page(place.table, _filter(place), continuation=go_on)
    page = yield from read(effect, (yield from begin(pointers.policy)))
    follow = tuple(pointers.follow(Entry(place.table, each.key, unique), each) for each in page.entities)
    entities = (yield from perform(Together(follow))) if follow else []
    return Hits([each for each in entities if each is not None], page.continuation)


def _filter(place: Place) -> Filter:
    if place.partition_key is None:
        assert place.keys is not None, "a place without a partition is a range of PartitionKeys"
        return in_range("PartitionKey", place.keys)
    in_one = in_partition(place.partition_key)
    return in_one if place.keys is None else in_one & in_range("RowKey", place.keys)
