"""Look-ups by an index: entries are read, then the entities that they name."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import Gather
from lazulite_patterns.effects.tables import Continuation, EntityKey, Found, Page, Stored
from lazulite_patterns.entities.indexes import Listing
from lazulite_patterns.filters import Filter, in_partition, in_range
from lazulite_patterns.indexes import list_blobs, lists
from lazulite_patterns.indexes.entries import PENDING, copied, target, targets
from lazulite_patterns.indexes.index import BoundIndex, IndexRange
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes.retries import begin, read


class LookupPage(NamedTuple):
    """Entities that a page of entries leads to, and where the next page begins; None after the last one."""

    entities: list[Stored]
    continuation: Continuation | None


class FieldCopies(NamedTuple):
    """The keys of an entity, and copies of some of its columns."""

    key: EntityKey
    fields: Mapping[str, object]


class Copies(NamedTuple):
    """Copies that a page of entries has, and where the next page begins; None after the last one."""

    copies: list[FieldCopies]
    continuation: Continuation | None


def hits(
    pointers: PointerIndex, index: BoundIndex, place: IndexRange, continuation: Continuation | None
) -> Protocol[LookupPage]:
    """Read a page of entries and their entities. Entries whose entity does not fit any more are left out."""
    if place.partition_key is not None and place.row_key is not None:
        found = yield from pointers.find(index.at(EntityKey(place.partition_key, place.row_key)))
        return LookupPage([] if found is None else [found], None)
    if index.index.container:
        keys = place.keys or KeyRange.of(str(place.partition_key), str(place.partition_key))
        page = yield from list_blobs.page(place.table, index.index.container, keys, continuation, pointers.policy)
    else:
        page = yield from _page(pointers, place, continuation)
    entries = page.entities
    if isinstance(index.index, Listing):
        entries = tuple({each.key: each for row in entries for each in lists.entries(row)}.values())
    entities = yield from _entities(pointers, index, entries)
    return LookupPage([each for each in entities if each is not None], page.continuation)


def copies(
    pointers: PointerIndex, index: BoundIndex, place: IndexRange, continuation: Continuation | None
) -> Protocol[Copies]:
    """Read a page of entries with copies. Only where a copy may be about to change, the entity is read."""
    page = yield from _page(pointers, place, continuation)
    pending = [each for each in page.entities if each.properties.get(PENDING)]
    entities = yield from _entities(pointers, index, pending)
    read_instead = {each.key: entity for each, entity in zip(pending, entities, strict=True)}
    found = []
    for each in page.entities:
        source = read_instead.get(each.key, each)
        if source is not None and targets(each):
            found.append(FieldCopies(target(each), index.values(copied(source))))
    return Copies(found, page.continuation)


def _page(pointers: PointerIndex, place: IndexRange, continuation: Continuation | None) -> Protocol[Found]:
    effect = Page(place.table, _filter(place), continuation=continuation)
    return (yield from read(effect, (yield from begin(pointers.policy))))


def _entities(pointers: PointerIndex, index: BoundIndex, entries: Sequence[Stored]) -> Protocol[list[Stored | None]]:
    follow = tuple(pointers.follow(index.at(each.key), each) for each in entries)
    return (yield from perform(Gather(follow))) if follow else []


def _filter(place: IndexRange) -> Filter:
    if place.partition_key is None:
        assert place.keys is not None, "a place without a partition is a range of PartitionKeys"
        return in_range("PartitionKey", place.keys)
    in_one = in_partition(place.partition_key)
    return in_one if place.keys is None else in_one & in_range("RowKey", place.keys)
