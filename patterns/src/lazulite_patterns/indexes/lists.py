"""Lists of entities in rows: the guide's index entities. A list that outgrows a row goes on in another, numbered one.

`list_blobs` says how a blob is one row of any length.

An item is the keys of an entity and a version, which is new each time the item is put. It is to an item what an ETag is
to a row: an item is removed only if its version is still the one that was read. So the steps of `pointers` hold for
items as they do for entries of their own, though other writers change the same row all the time.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, cast

from lazulite_patterns.auditing.finding import Repair
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId, RandomNumber, Sleep
from lazulite_patterns.effects.tables import Continuation, EntityKey, Kind, Operation, Page, Properties, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.entities.values import TEXT_UNITS_MAX
from lazulite_patterns.filters import Filter, in_partition, in_range
from lazulite_patterns.indexes import list_blobs
from lazulite_patterns.indexes.entries import ENTRY, INTENT, NO_INTENT, PARTITION, ROW, Entry, digest
from lazulite_patterns.keys.characters import SEPARATOR, units
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes import grace
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write

ROW_BYTES_MAX = limits.ENTITY_BYTES_MAX - 4096
"""The most bytes of a row, less what marks of writes need."""
_LIST = "List"
_ATTEMPTS_MAX = 64


class Item(NamedTuple):
    """An entity in a list."""

    partition_key: str
    row_key: str
    version: str = ""
    """The second of the put and an id: `1774000000.0f…`; empty for an item within the entity's partition."""
    intents: str = ""
    """Inserts that may be about to commit, with spaces between: `0f…@1774000000`, the second of the put at the end."""

    @property
    def key(self) -> EntityKey:
        """The entity's keys."""
        return EntityKey(self.partition_key, self.row_key)


class Change(NamedTuple):
    """What changes in a list: items that are put, and entities that are taken out if their versions are these."""

    put: tuple[Item, ...] = ()
    take: tuple[tuple[EntityKey, frozenset[str] | None], ...] = ()
    withdraw: tuple[tuple[EntityKey, frozenset[str]], ...] = ()
    """Entities, and the names of intents that are taken out of their items."""


def items(row: Stored) -> list[Item]:
    """Return the items of a row.

    Raises:
        EntityFormatError: it is no list; another program changed it.
    """
    names = sorted(name for name in row.properties if name.startswith(_LIST))
    try:
        found = [Item(*each) for name in names for each in json.loads(cast("str | bytes", row.properties[name]))]
    except (TypeError, ValueError) as error:
        raise EntityFormatError(f"{row.key} is no list of entities: {error}") from error
    if not all(isinstance(part, str) for each in found for part in each):
        raise EntityFormatError(f"{row.key} is no list of entities: an item has other parts than texts")
    return found


def entries(row: Stored) -> list[Stored]:
    """Return the items of a row as if they were rows of their own, whose ETags are their versions."""
    return [Stored({**_keys(item_key(row.key, each.key)), **_pointing(each)}, each.version) for each in items(row)]


def _pointing(item: Item) -> dict[str, object]:
    """Return the properties that the entry of an item would have."""
    found = (each.rpartition("@") for each in item.intents.split())
    return {
        PARTITION: item.partition_key,
        ROW: item.row_key,
        **{f"{INTENT}{name}": second for name, _, second in found},
    }


def _keys(key: EntityKey) -> dict[str, object]:
    return {"PartitionKey": key.partition_key, "RowKey": key.row_key}


def properties(found: Iterable[Item]) -> dict[str, object]:
    """Return the properties of a row with items: JSON in as many texts as it takes."""
    texts: list[list[str]] = [[]]
    length = 0
    for each in found:
        text = json.dumps(_parts(each), ensure_ascii=False)
        length += units(text) + 1
        if length > TEXT_UNITS_MAX - 2:
            texts.append([])
            length = units(text) + 1
        texts[-1].append(text)
    return {TYPE: ENTRY, **{f"{_LIST}{number:02d}": f"[{','.join(text)}]" for number, text in enumerate(texts)}}


def _parts(item: Item) -> tuple[str, ...]:
    return tuple(item) if item.intents else tuple(item)[:-1]


def row_key(entry: Entry, number: int) -> EntityKey:
    """Return the keys of a row of the list that an entry is in."""
    first, _, last = entry.key.row_key.rpartition(SEPARATOR)
    assert last, "the last component of an item's key is the entity's digest"
    return EntityKey(entry.key.partition_key, f"{first}{SEPARATOR}{number:04d}" if first else f"{number:04d}")


def item_key(row: EntityKey, entity: EntityKey) -> EntityKey:
    """Return the keys that the entry of an entity has in the list of a row."""
    first, separator, _ = row.row_key.rpartition(SEPARATOR)
    return EntityKey(row.partition_key, f"{first}{separator}{digest(entity)}")


def rows(entry: Entry, policy: Policy) -> Protocol[list[Stored]]:
    """Read the rows of the list that an entry is in. A blob is one row."""
    if entry.container:
        return (yield from list_blobs.rows(entry, policy))
    first = row_key(entry, 0).row_key.removesuffix("0000")
    condition: Filter = in_partition(entry.key.partition_key)
    if first:
        condition &= in_range("RowKey", KeyRange.starting_with(first))
    found: list[Stored] = []
    continuation: Continuation | None = None
    while True:
        page = yield from read(Page(entry.table, condition, continuation=continuation), (yield from begin(policy)))
        found += page.entities
        if (continuation := page.continuation) is None:
            return found


def changed(entry: Entry, found: Sequence[Stored], change: Change) -> list[Planned]:
    """Return the writes of a change to the rows of a list, each of which is conditional."""
    before = {each.key: items(each) for each in found}
    after = {
        key: [_withdrawn(each, change) for each in inside if not _taken(each, change)] for key, inside in before.items()
    }
    for put in change.put:
        item = put
        holding = next((key for key, inside in after.items() if item.key in {each.key for each in inside}), None)
        if holding is not None:
            known = " ".join(each.intents for each in after[holding] if each.key == item.key)
            item = item._replace(intents=" ".join(dict.fromkeys(f"{known} {item.intents}".split())))
            after[holding] = [each for each in after[holding] if each.key != item.key]
        places = ([holding] if holding else []) + [*after][-1:]
        fitting = [key for key in places if entry.container or _fits(key, [*after[key], item])]
        numbers = [int(each.row_key.rpartition(SEPARATOR)[2]) for each in after]
        place = fitting[0] if fitting else row_key(entry, max(numbers, default=-1) + 1)
        after.setdefault(place, []).append(item)
    return [
        _write(key, inside, next((each for each in found if each.key == key), None))
        for key, inside in after.items()
        if inside != before.get(key)
    ]


def _taken(item: Item, change: Change) -> bool:
    return any(item.key == key and (versions is None or item.version in versions) for key, versions in change.take)


def _withdrawn(item: Item, change: Change) -> Item:
    names = {name for key, given in change.withdraw if key == item.key for name in given}
    kept = (each for each in item.intents.split() if INTENT + each.rpartition("@")[0] not in names)
    return item._replace(intents=" ".join(kept)) if names else item


def _fits(key: EntityKey, inside: list[Item]) -> bool:
    return limits.entity_size({**properties(inside), **_keys(key)}) <= ROW_BYTES_MAX


def _write(key: EntityKey, inside: list[Item], row: Stored | None) -> Planned:
    if row is None:
        return Planned(Operation(Kind.INSERT, key, properties(inside)))
    if not inside:
        return Planned(Operation(Kind.DELETE, key, etag=row.etag), WriteIds.of(row.properties))
    return Planned(Operation(Kind.REPLACE, key, properties(inside), row.etag), WriteIds.of(row.properties))


def apply(entry: Entry, change: Change, policy: Policy, known: Sequence[Stored] | None = None) -> Protocol[None]:
    """Change a list, again if another writer was faster. `known` are its rows if they were read for this.

    Raises:
        Conflict: other writers were faster, each time.
    """
    for number in range(_ATTEMPTS_MAX):
        found = (yield from rows(entry, policy)) if known is None else known
        known = None
        planned = changed(entry, found, change)
        if not planned:
            return
        try:
            yield from _written(entry, planned, policy)
        except Conflict:
            if number == _ATTEMPTS_MAX - 1:
                raise
            yield from perform(Sleep((yield from perform(RandomNumber())) * min(0.01 * 2**number, 1)))
        else:
            return


def _written(entry: Entry, planned: Sequence[Planned], policy: Policy) -> Protocol[None]:
    """Write rows of a list, or its blob."""
    if not entry.container:
        yield from write(entry.table, planned, policy)
        return
    (operation,) = (each.operation for each in planned)
    found = items(Stored({**_keys(operation.key), **operation.properties}, ""))
    yield from list_blobs.write(
        entry,
        operation,
        json.dumps([_parts(each) for each in found], ensure_ascii=False).encode("utf-8", "surrogatepass"),
        policy,
    )


def put(
    entry: Entry, key: EntityKey, policy: Policy, *, versioned: bool = True, intent: Properties = NO_INTENT
) -> Protocol[None]:
    """Put an entity into a list, with a new version if the list is in another partition."""
    version, found = "", None
    if versioned:
        found = yield from rows(entry, policy)
        second = int((yield from grace.now()).timestamp())
        version = f"{second}.{(yield from perform(NewId()))}"
    yield from apply(entry, Change(put=(Item(*key, version, written(intent)),)), policy, found)


def withdraw(entry: Entry, key: EntityKey, names: frozenset[str], policy: Policy) -> Protocol[None]:
    """Take intents out of the item of an entity, whose version stays."""
    yield from apply(entry, Change(withdraw=((key, names),)), policy)


def written(intent: Properties) -> str:
    """Return an intent as an item has it."""
    return " ".join(f"{name.removeprefix(INTENT)}@{second}" for name, second in intent.items())


def putting(entry: Entry, key: EntityKey, *, versioned: bool) -> Repair:
    """Return a repair that puts an entity into a list."""
    return _repair(lambda policy: put(entry, key, policy, versioned=versioned))


def writing(entry: Entry, planned: Planned) -> Repair:
    """Return a repair that writes a row of a list, or its blob, if it is still the one that was examined."""
    assert planned.conditional, "a repair must not overwrite what another program wrote"
    return _repair(lambda policy: _written(entry, [planned], policy))


def _repair(attempt: Callable[[Policy], Protocol[None]]) -> Repair:
    def repair(policy: Policy) -> Protocol[bool]:
        try:
            yield from attempt(policy)
        except Conflict:
            return False
        return True

    return repair


def age_seconds(item: Stored, row: Stored, now: datetime) -> float:
    """Return the age of an item by its version; that of its row if it has none."""
    second = item.etag.partition(".")[0]
    return max(0.0, now.timestamp() - int(second)) if second.isdecimal() else grace.age_seconds(row, now)


def find(entry: Entry, policy: Policy) -> Protocol[Stored | None]:
    """Return the item of an entry as if it were a row, whose ETag are its versions; None if it is in no row."""
    found = [each for row in (yield from rows(entry, policy)) for each in entries(row) if each.key == entry.key]
    if not found:
        return None
    properties = {name: value for each in found for name, value in each.properties.items()}
    return found[0]._replace(properties=properties, etag=" ".join(sorted({each.etag for each in found})))


def take(entry: Entry, item: Stored, policy: Policy) -> Protocol[None]:
    """Take an entity out of a list, if its versions did not change since it was read."""
    key = EntityKey(str(item.properties[PARTITION]), str(item.properties[ROW]))
    yield from apply(entry, Change(take=((key, frozenset(item.etag.split(" "))),)), policy)
