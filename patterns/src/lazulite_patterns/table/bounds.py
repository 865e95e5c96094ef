"""What conditions on the components of a key say of the whole key: one key, a range of keys, or nothing."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lazulite_patterns.entities.bags import Bags
from lazulite_patterns.entities.conditions import Compared, Operator, QueryError
from lazulite_patterns.entities.schema import Schema
from lazulite_patterns.keys.characters import MARK, SEPARATOR, KeyValueError, escape, utf16_order
from lazulite_patterns.keys.components import Component
from lazulite_patterns.keys.key_range import KeyProperty, KeyRange
from lazulite_patterns.keys.layout import Layout

_OPPOSITE: dict[Operator, Operator] = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


NOWHERE = KeyRange("", "")
"""A range without a key: that of conditions which contradict each other."""
_LAST = "\uffff"
"""No key that a program writes has this character, which sorts after all others."""


class Bound(NamedTuple):
    """Where a key may be: `exact` for one key, else in `keys`, or anywhere if both are None."""

    exact: str | None = None
    keys: KeyRange | None = None

    @property
    def range(self) -> KeyRange | None:
        """The range that the key is in; None for anywhere."""
        return self.keys if self.exact is None else KeyRange.of(self.exact, self.exact)


def key_parts(kind: Schema[Any] | Bags) -> frozenset[str]:
    """Return the names of the columns that are parts of keys."""
    if isinstance(kind, Bags):
        return frozenset({"PartitionKey", "RowKey"})
    return frozenset(name for name, _ in kind.partition.components + kind.row.components)


def bounds(kind: Schema[Any] | Bags, conditions: Iterable[Compared]) -> tuple[Bound, Bound]:
    """Return what the conditions on keys say of PartitionKey and RowKey.

    Raises:
        QueryError: a component is compared while one before it is not known, or in a way that no key range has.
    """
    if isinstance(kind, Bags):
        return _of_bags("PartitionKey", conditions), _of_bags("RowKey", conditions)
    return _of_schema(kind, conditions)


def _of_bags(name: KeyProperty, conditions: Iterable[Compared]) -> Bound:
    """Return what conditions say of a key that is a text of its own."""
    lower, upper, exact = "", _LAST, set()
    for each in conditions:
        if each.field != name:
            continue
        if not isinstance(each.value, str):
            raise QueryError(f"{name}: {each.value!r} is no text")
        if each.operator == "eq":
            exact.add(each.value)
        found = _range(each.operator, each.value)
        lower = max(lower, found.lower, key=utf16_order)
        upper = min(upper, _LAST if found.upper is None else found.upper, key=utf16_order)
    if not exact:
        return Bound(keys=None if (lower, upper) == ("", _LAST) else KeyRange(lower, upper))
    key = exact.pop()
    return Bound(keys=NOWHERE) if exact or key not in KeyRange(lower, upper) else Bound(exact=key)


def _range(operator: Operator, text: str) -> KeyRange:
    """Return the keys that compare so to a text."""
    following = text + " "  # A space is the least character of a key.
    found: dict[Operator, KeyRange] = {
        "eq": KeyRange(text, following),
        "ge": KeyRange(text),
        "gt": KeyRange(following),
        "lt": KeyRange("", text),
        "le": KeyRange("", following),
        "starts with": KeyRange(text, text + _LAST),
    }
    return found[operator]


def _of_schema(schema: Schema[Any], conditions: Iterable[Compared]) -> tuple[Bound, Bound]:
    both = dict(schema.partition.components + schema.row.components)
    on_keys = [each for each in conditions if each.field in both]
    equal = [(each.field, each.value) for each in on_keys if each.operator == "eq"]
    known = dict(equal)
    known |= schema.computed(known)
    used = {id(each) for each in on_keys if each.operator == "eq"}
    try:
        if any(not _same(both[name], known[name], value) for name, value in equal):
            return Bound(keys=NOWHERE), Bound()
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


def _bound(layout: Layout, known: Mapping[str, object], conditions: list[Compared], used: set[int]) -> Bound:
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


def _limits(prefix: str, component: Component, condition: Compared, last: bool) -> tuple[str | None, str | None]:
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
