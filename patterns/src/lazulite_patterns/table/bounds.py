"""What conditions on the components of a key say of the whole key: one key, a range of keys, or nothing."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lazulite_patterns.entities.conditions import Condition, Operator, QueryError
from lazulite_patterns.entities.schema import Schema
from lazulite_patterns.keys.characters import MARK, SEPARATOR, KeyValueError, escape, utf16_order
from lazulite_patterns.keys.components import Component
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.keys.layout import Layout

_OPPOSITE: dict[Operator, Operator] = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


_NOWHERE = KeyRange("", "")
"""A range without a key: that of conditions which contradict each other."""


class Bound(NamedTuple):
    """Where a key may be: `exact` for one key, else in `keys`, or anywhere if both are None."""

    exact: str | None = None
    keys: KeyRange | None = None


def bounds(schema: Schema[object], conditions: Iterable[Condition]) -> tuple[Bound, Bound]:
    """Return what the conditions on keys say of PartitionKey and RowKey.

    Raises:
        QueryError: a component is compared while one before it is not known, or in a way that no key range has.
    """
    both = dict(schema.partition.components + schema.row.components)
    on_keys = [each for each in conditions if each.field in both]
    equal = [(each.field, each.value) for each in on_keys if each.operator == "eq"]
    known = dict(equal)
    known |= _computed(schema.cls.__name__, both, known)
    used = {id(each) for each in on_keys if each.operator == "eq"}
    try:
        if any(not _same(both[name], known[name], value) for name, value in equal):
            return Bound(keys=_NOWHERE), Bound()
        found = tuple(_bound(layout, known, on_keys, used) for layout in (schema.partition, schema.row))
    except KeyValueError as error:
        raise QueryError(str(error)) from error
    for each in on_keys:
        if id(each) not in used:
            raise QueryError(f"{schema.cls.__name__}.{each.field}: a part of a key is compared after those before it")
    return found[0], found[1]


def _same(component: Component, one: object, other: object) -> bool:
    """Tell whether two values of a part of a key are the same in the key."""
    return one is other or component.codec.encode(one) == component.codec.encode(other)


def _computed(owner: str, both: Mapping[str, Component], known: Mapping[str, object]) -> dict[str, object]:
    """Return constants, and the buckets whose field is known."""
    possible = {
        name: each
        for name, each in both.items()
        if each.given or each.constant is not None or (each.source is not None and each.source in known)
    }
    return Layout(owner, tuple(possible.items())).computed(known)


def _bound(layout: Layout, known: Mapping[str, object], conditions: list[Condition], used: set[int]) -> Bound:
    names = [name for name, _ in layout.components]
    count = next((index for index, name in enumerate(names) if name not in known), len(names))
    for name in names[count:]:
        if name in known and any(each.field == name and each.operator == "eq" for each in conditions):
            raise QueryError(f"{layout.owner}.{name}: a part of a key is compared after those before it")
    if count == len(names):
        return Bound(exact=layout.text(known))
    prefix = layout.prefix({name: known[name] for name in names[:count]}).lower
    last = count == len(names) - 1
    ranges = [each for each in conditions if each.field == names[count] and each.operator not in {"eq", "ne"}]
    if not ranges:
        return Bound(keys=KeyRange.starting_with(prefix)) if prefix else Bound()
    lowers, uppers = [prefix], [prefix + MARK]
    for each in ranges:
        used.add(id(each))
        lower, upper = _limits(prefix, layout.components[count][1], each, last)
        lowers += [] if lower is None else [lower]
        uppers += [] if upper is None else [upper]
    return Bound(keys=KeyRange(max(lowers, key=utf16_order), min(uppers, key=utf16_order)))


def _limits(prefix: str, component: Component, condition: Condition, last: bool) -> tuple[str | None, str | None]:
    """Return the first key that fulfils a condition, and the first one after all that do."""
    if condition.operator == "starts with":
        start = prefix + escape(str(condition.value), last=last)
        return start, start + MARK
    reverse = getattr(component.codec, "reverse", False)
    operator = _OPPOSITE.get(condition.operator, condition.operator) if reverse else condition.operator
    key = prefix + escape(component.codec.encode(condition.value), last=last)
    # A space is less than every character of a key, and a mark is greater.
    start, end = (key, key + " ") if last else (key + SEPARATOR, key + SEPARATOR + MARK)
    if operator in {"ge", "gt"}:
        return (start if operator == "ge" else end), None
    return None, (end if operator == "le" else start)
