"""A query as the service is asked it, and its class: what the service has to read.

Conditions that are joined by `or` are one filter within a partition: over several ones, the service would read the
whole table.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.entities.conditions import Compared, Condition, Joined, QueryError, comparisons, joined
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.entities.registry import Schemas, schema_of
from lazulite_patterns.entities.schema import TYPE, Schema
from lazulite_patterns.filters import Compare, CompareTime, Filter, in_partition, in_range, literal_text
from lazulite_patterns.keys.characters import utf16_order
from lazulite_patterns.keys.key_range import KeyProperty, KeyRange
from lazulite_patterns.table.bounds import NOWHERE, Bound, bounds, key_parts


class Reads(Enum):
    """What the service has to read for a query."""

    POINT = "point"
    ROW_RANGE = "row range"
    PARTITION_SCAN = "partition scan"
    PARTITION_RANGE = "partition range"
    TABLE_SCAN = "table scan"


@dataclass(frozen=True)
class Plan:
    """A query: its filter, what the service has to read, the properties to read."""

    filter: Filter | None
    reads: Reads
    select: tuple[str, ...] = ()
    accepts: Callable[[Stored], bool] | None = field(default=None, compare=False)
    """What decides of a row that the service found; None accepts all."""
    needed: tuple[str, ...] = ()
    """The properties that `accepts` reads."""

    def selecting(self, names: tuple[str, ...]) -> "Plan":
        """Return the same query for some properties."""
        return replace(self, select=(*names, *(each for each in self.needed if each not in names)))


def plan(
    conditions: Iterable[Condition],
    kinds: Schemas[Any] | Bags,
    *,
    scan: bool,
    hidden: tuple[Filter, ...] = (),
) -> Plan:
    """Return the query of some conditions, which all hold.

    Args:
        conditions: on one class, or on it and on those that it inherits from.
        kinds: the classes of the table. The query finds the entities of the class and of its subclasses.
        scan: whether the query may be a table scan.
        hidden: conditions that rows which are no entities do not fulfil.

    Raises:
        QueryError: it would be a table scan, or a condition cannot be asked.
    """
    condition = joined("and", conditions)
    asked = {_asked(each, condition, scan=scan) for each in _kinds(condition, kinds)}
    if len(asked) > 1:
        raise QueryError("the classes of the query store a column in other ways: ask each class; see `any_of`")
    (found,) = asked
    reads = _reads(found.partition, found.row)
    if reads is Reads.TABLE_SCAN and not scan:
        raise QueryError("the query reads the whole table: name the PartitionKey's columns, or say scan=True")
    filters = [*found.filters, *_of_types(condition, kinds), *(() if reads is Reads.POINT else hidden)]
    return Plan(reduce(and_, filters) if filters else None, reads)


def _reads(partition: Bound, row: Bound) -> Reads:
    if partition.exact is not None:
        if row.exact is not None:
            return Reads.POINT
        return Reads.PARTITION_SCAN if row.keys is None else Reads.ROW_RANGE
    return Reads.TABLE_SCAN if partition.keys is None else Reads.PARTITION_RANGE


def _class(condition: Condition) -> type | None:
    """Return the class of conditions: that which inherits from the others."""
    classes = sorted({each.cls for each in comparisons(condition)}, key=lambda each: -len(each.__mro__))
    if any(each not in classes[0].__mro__ for each in classes):
        raise QueryError("the conditions of a query are on one class; see `any_of`")
    return classes[0] if classes else None


def _schemas(condition: Condition, kinds: Schemas[Any]) -> list[Schema[Any]]:
    """Return the classes of the table that a query finds."""
    cls = _class(condition)
    found = [each for each in kinds.all if cls is None or cls in each.cls.__mro__]
    if not found:
        raise QueryError(f"the table has no entities of class {getattr(cls, '__name__', '')}")
    return found


def _kinds(condition: Condition, kinds: Schemas[Any] | Bags) -> Sequence[Schema[Any] | Bags]:
    """Return how the keys and properties of a query are stored; without a class, nothing is asked of them."""
    cls = _class(condition)
    if cls is None or issubclass(cls, Bag):
        return [Bags()]
    return [schema_of(cls)] if isinstance(kinds, Bags) else _schemas(condition, kinds)


def _of_types(condition: Condition, kinds: Schemas[Any] | Bags) -> list[Filter]:
    """Return the condition on `_Type`, if the table has entities that are not asked for."""
    if isinstance(kinds, Bags) or len(found := _schemas(condition, kinds)) == len(kinds.all):
        return []
    types: list[Filter] = [Compare(TYPE, "eq", each.type_name) for each in found]
    return [reduce(or_, types)]


class _KeyCondition(NamedTuple):
    """What a condition says of both keys, and its filters."""

    partition: Bound
    row: Bound
    filters: tuple[Filter, ...]


_ANYWHERE = _KeyCondition(Bound(), Bound(), ())


def _asked(
    kind: Schema[Any] | Bags,
    condition: Condition,
    outer: tuple[Compared, ...] = (),
    known: _KeyCondition = _ANYWHERE,
    *,
    scan: bool,
) -> _KeyCondition:
    """Return the filters of a condition, beside others that hold already: `outer`, which lead to what is `known`."""
    compared, alternatives = _split(key_parts(kind), condition)
    outer = (*outer, *compared)
    partition, row = bounds(kind, outer)
    filters = [
        *([] if partition == known.partition else _on_key("PartitionKey", partition)),
        *([] if row == known.row else _on_key("RowKey", row)),
        *(_on_property(kind, each) for each in compared if each.field not in key_parts(kind)),
    ]
    so_far = _KeyCondition(partition, row, ())
    for each in alternatives:
        found = [_asked(kind, part, outer, so_far, scan=scan) for part in each.parts]
        possible = [one for one in found if NOWHERE not in {one.partition.keys, one.row.keys}]
        if not possible:
            return _KeyCondition(Bound(keys=NOWHERE), Bound(), tuple(_on_key("PartitionKey", Bound(keys=NOWHERE))))
        if partition.exact is None and not scan:
            raise QueryError("conditions are joined by | within one partition: name its columns, or see `any_of`")
        if row.exact is None and (limit := _around(possible)) not in {None, row.keys}:
            row = Bound(keys=limit)
            filters += _on_key("RowKey", row)
        if all(one.filters for one in possible):
            filters.append(reduce(or_, (reduce(and_, one.filters) for one in possible)))
    return _KeyCondition(partition, row, tuple(filters))


def _split(keys: frozenset[str], condition: Condition) -> tuple[list[Compared], list[Joined]]:
    """Return comparisons that all hold, and alternatives of each of which one holds."""
    if isinstance(condition, Joined) and condition.word == "and":
        parts = [_split(keys, each) for each in condition.parts]
        return [one for each, _ in parts for one in each], [one for _, each in parts for one in each]
    if isinstance(condition, Joined):
        return [], [condition]
    assert isinstance(condition, Compared), "a condition is compared or joined"
    if condition.operator == "ne" and condition.field in keys:
        less, greater = replace(condition, operator="lt"), replace(condition, operator="gt")
        return [], [Joined("or", (less, greater))]
    return [condition], []


def _around(found: Sequence[_KeyCondition]) -> KeyRange | None:
    """Return the least range with all keys of alternatives; None if one of them has no range."""
    ranges = [each.row.range for each in found]
    known = [each for each in ranges if each is not None and each.upper is not None]
    if len(known) < len(ranges):
        return None
    lower = min((each.lower for each in known), key=utf16_order)
    return KeyRange(lower, max((str(each.upper) for each in known), key=utf16_order))


def _on_key(name: KeyProperty, bound: Bound) -> list[Filter]:
    if bound.exact is not None:
        return [in_partition(bound.exact) if name == "PartitionKey" else Compare(name, "eq", bound.exact)]
    return [] if bound.keys is None else [in_range(name, bound.keys)]


def _on_property(kind: Schema[Any] | Bags, condition: Compared) -> Filter:
    if condition.operator == "starts with":
        raise QueryError(f"{condition.field}: only a part of a key can be asked how it begins")
    name, value = _stored(kind, condition)
    try:
        literal_text(value)
    except (TypeError, ValueError) as error:
        raise QueryError(f"{condition.cls.__name__}.{condition.field}: {error}") from error
    compared = CompareTime if isinstance(value, datetime) else Compare
    return compared(name, condition.operator, value)


def _stored(kind: Schema[Any] | Bags, condition: Compared) -> tuple[str, object]:
    """Return the name of a property, and the value that it is compared to."""
    if isinstance(kind, Bags):
        if not limits.is_name(condition.field):
            raise QueryError(f"{condition.field}: no property has this name")
        return condition.field, condition.value
    try:
        stored = kind.partial({condition.field: condition.value})
    except EntityValueError as error:
        raise QueryError(str(error)) from error
    if len(stored) != 1:
        raise QueryError(f"{condition.field}: a flat column is several properties")
    return next(iter(stored.items()))
