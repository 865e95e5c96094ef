"""Warnings about a class of entities: keys and queries that work with few entities and are slow with many."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lazulite_patterns.entities.conditions import Condition, QueryError, comparisons, joined
from lazulite_patterns.entities.registry import Schemas, schema_of
from lazulite_patterns.entities.schema import Schema
from lazulite_patterns.keys.codecs import Choices, FunctionCodec
from lazulite_patterns.keys.components import Component
from lazulite_patterns.keys.layout import Layout
from lazulite_patterns.table.plan import Reads, plan


@dataclass(frozen=True)
class Warned:
    """A warning.

    Attributes:
        rule: its name: `append-only`, `one-partition`, `unpadded` or `scan`.
        about: the class and field, or the number of the query.
        message: what is slow or sorts wrong, and what helps.
    """

    rule: str
    about: str
    message: str


def lint(cls: type, *, queries: Iterable[Sequence[Condition]] = (), sample: Iterable[object] = ()) -> list[Warned]:
    """Return warnings about a class of entities.

    Args:
        cls: the class, which is declared with `entity`.
        queries: the conditions of each query that the program asks, as `where` takes them.
        sample: some entities, whose texts in keys are looked at: `table.where(scan=True).first(1000)`.

    Raises:
        SchemaError: the class is not declared with `entity`.
    """
    schema: Schema[object] = schema_of(cls)
    return [
        *_append_only(schema),
        *_one_partition(schema),
        *_unpadded(schema, list(sample)),
        *(warned for number, each in enumerate(queries) for warned in _scan(schema, number, each)),
    ]


def _append_only(schema: Schema[object]) -> list[Warned]:
    name, component = next(
        ((name, each) for name, each in schema.partition.components if each.constant is None), ("", None)
    )
    codec = None if component is None else component.codec
    if not isinstance(codec, FunctionCodec) or not codec.timed:
        return []
    message = "the PartitionKey begins with a time: one server takes all writes; begin with a bucket(16, by=…)"
    return [Warned("append-only", f"{schema.cls.__name__}.{name}", message)]


def _one_partition(schema: Schema[object]) -> list[Warned]:
    if any(_values(each) != 1 for _, each in schema.partition.components):
        return []
    message = "one server has the only partition: make a field or a bucket part of the PartitionKey"
    return [Warned("one-partition", schema.cls.__name__, message)]


def _values(component: Component) -> int | None:
    """Return how many values a component has; None if that is not limited."""
    if component.constant is not None:
        return 1
    return len(component.codec.values) if isinstance(component.codec, Choices) else component.count


def _unpadded(schema: Schema[object], sample: list[object]) -> list[Warned]:
    layout = Layout(schema.cls.__name__, schema.partition.components + schema.row.components)
    warned = []
    for name, component in layout.components:
        texts = {str(getattr(each, name, "")) for each in sample}
        text = isinstance(component.codec, FunctionCodec) and component.codec.kind is str and component.given
        if text and all(map(str.isdecimal, texts)) and len({len(each) for each in texts}) > 1:
            message = "numbers of different lengths sort as texts: 10 before 9; use integer(width)"
            warned.append(Warned("unpadded", f"{schema.cls.__name__}.{name}", message))
    return warned


def _scan(schema: Schema[object], number: int, given: Sequence[Condition]) -> list[Warned]:
    try:
        reads = plan(given, Schemas(schema.cls), scan=True).reads
    except QueryError as error:
        return [Warned("scan", f"query {number}", str(error))]
    names = {each.field for each in comparisons(joined("and", given))}
    fields = {name for name, component in schema.partition.components if component.given}
    # A literal before the fields makes a range of all partitions, which is no better than a table scan.
    if reads is not Reads.TABLE_SCAN and (reads is not Reads.PARTITION_RANGE or fields & names):
        return []
    message = "it reads all entities: add an index, or a condition on a field of the PartitionKey"
    return [Warned("scan", f"query {number}", message)]
