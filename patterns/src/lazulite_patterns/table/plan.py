"""A query as the service is asked it, and its class: what the service has to read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from functools import reduce
from operator import and_
from typing import Any

from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.entities.conditions import Condition, QueryError
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.entities.registry import schema_of
from lazulite_patterns.entities.schema import TYPE, Schema
from lazulite_patterns.filters import Compare, CompareTime, Filter, in_partition, in_range, literal_text
from lazulite_patterns.table.bounds import Bound, bounds


class Kind(Enum):
    """What the service has to read for a query."""

    POINT = "point"
    ROW_RANGE = "row range"
    PARTITION_SCAN = "partition scan"
    PARTITION_RANGE = "partition range"
    TABLE_SCAN = "table scan"


@dataclass(frozen=True)
class Plan:
    """A query: its filter, its class, the properties to read."""

    filter: Filter | None
    kind: Kind
    select: tuple[str, ...] = ()
    accepts: Callable[[Stored], bool] | None = field(default=None, compare=False)
    """What decides of a row that the service found; None accepts all."""
    needed: tuple[str, ...] = ()
    """The properties that `accepts` reads."""

    def selecting(self, names: tuple[str, ...]) -> "Plan":
        """Return the same query for some properties."""
        return replace(self, select=(*names, *(each for each in self.needed if each not in names)))


Given = Condition | tuple[Condition, ...]


def plan(given: Iterable[Given], *, scan: bool, typed: bool, hidden: tuple[Filter, ...] = ()) -> Plan:
    """Return the query of some conditions, which all hold.

    Args:
        given: conditions on one class.
        scan: whether the query may be a table scan.
        hidden: conditions that rows which are no entities do not fulfil.
        typed: whether the table has several classes, so that the type is part of the filter.

    Raises:
        QueryError: it would be a table scan, or a condition cannot be asked.
    """
    conditions = [each for one in given for each in (one if isinstance(one, tuple) else (one,))]
    classes = {each.cls for each in conditions}
    if len(classes) > 1:
        raise QueryError("the conditions of a query are on one class; see `any_of`")
    filters: list[Filter] = []
    kind = Kind.TABLE_SCAN
    if classes:
        schema: Schema[object] = schema_of(classes.pop())
        partition, row = bounds(schema, conditions)
        kind = _kind(partition, row)
        filters = [*_on_key("PartitionKey", partition), *_on_key("RowKey", row)]
        keys = {name for name, _ in schema.partition.components + schema.row.components}
        filters += [_on_property(schema, each) for each in conditions if each.field not in keys]
        if typed:
            filters.append(Compare(TYPE, "eq", schema.type_name))
    if kind is Kind.TABLE_SCAN and not scan:
        raise QueryError("the query reads the whole table: name the PartitionKey's fields, or say scan=True")
    if kind is not Kind.POINT:
        filters += hidden
    return Plan(reduce(and_, filters) if filters else None, kind)


def _kind(partition: Bound, row: Bound) -> Kind:
    if partition.exact is not None:
        if row.exact is not None:
            return Kind.POINT
        return Kind.PARTITION_SCAN if row.keys is None else Kind.ROW_RANGE
    return Kind.TABLE_SCAN if partition.keys is None else Kind.PARTITION_RANGE


def _on_key(name: Any, bound: Bound) -> list[Filter]:
    if bound.exact is not None:
        return [in_partition(bound.exact) if name == "PartitionKey" else Compare(name, "eq", bound.exact)]
    return [] if bound.keys is None else [in_range(name, bound.keys)]


def _on_property(schema: Any, condition: Condition) -> Filter:
    if condition.operator == "starts with":
        raise QueryError(f"{condition.field}: only a part of a key can be asked how it begins")
    try:
        stored = schema.partial({condition.field: condition.value})
    except EntityValueError as error:
        raise QueryError(str(error)) from error
    if len(stored) != 1:
        raise QueryError(f"{condition.field}: a flattened field is several properties")
    ((name, value),) = stored.items()
    try:
        literal_text(value)
    except ValueError as error:
        raise QueryError(f"{schema.cls.__name__}.{condition.field}: {error}") from error
    kind = CompareTime if isinstance(value, datetime) else Compare
    return kind(name, condition.operator, value)
