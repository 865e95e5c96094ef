"""Workloads that are declared in a file of TOML; see docs/operations/advise.md.

Invariant: a file is rejected with one line that names the place, never by another exception.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from lazulite.advise.workload import TYPES, Condition, Operator, Property, Query, Workload, Write
from lazulite.table.query.filter import FilterSyntaxError, parse
from lazulite.table.query.shape import shape_of

T = TypeVar("T")
BYTES_MAX: Final = 1 << 20
"""More than a file of queries has."""
QUERIES_MAX: Final = 100
_WORKLOAD: Final = frozenset(
    {"name", "rows", "entity_bytes", "properties", "queries", "writes", "unique", "kinds", "today"}
)
_UNITS: Final = {"rate": 1.0, "per_minute": 60.0, "per_hour": 3600.0, "per_day": 86_400.0}


class DeclarationError(ValueError):
    """A file of queries is invalid. The text is one line for people."""


def workload_from(path: Path) -> Workload:
    """Return the workload of a file.

    Raises:
        DeclarationError: it cannot be read, or is invalid.
    """
    try:
        with path.open("rb") as file:
            text = file.read(BYTES_MAX + 1)
        if len(text) > BYTES_MAX:
            raise DeclarationError(f"{path}: it has more than {BYTES_MAX:,} bytes")
        return workload_of(text.decode(), path.stem)
    except OSError as error:
        raise DeclarationError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DeclarationError(f"cannot read {path}: it is not UTF-8") from None
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error}") from None


def workload_of(document: str, name: str) -> Workload:
    """Return the workload of the text of a file, given its name.

    Raises:
        DeclarationError: it is invalid.
    """
    try:
        given = tomllib.loads(document)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DeclarationError(str(error)) from None
    _check_known("", given, _WORKLOAD)
    queries = _tables(given, "queries")
    if len(queries) > QUERIES_MAX:
        raise DeclarationError(f"queries: at most {QUERIES_MAX}")
    properties = {key: _property(key, value) for key, value in _table(given, "properties").items()}
    kinds = {key: _names(f"kinds.{key}", value) for key, value in _table(given, "kinds").items()}
    found = Workload(
        name=_text("name", given.get("name", name)),
        rows=_number("rows", given.get("rows", 0)),
        entity_bytes=_number("entity_bytes", given.get("entity_bytes", 1024)),
        properties=properties,
        queries=tuple(_query(place, each) for place, each in enumerate(queries, 1)),
        writes=tuple(_write(place, each) for place, each in enumerate(_tables(given, "writes"), 1)),
        unique=_unique(given.get("unique", [])),
        kinds=kinds,
        today=_today(given.get("today")),
        notes=("The queries, rates and properties are as declared.",),
    )
    if not found.rows:
        raise DeclarationError("rows: say how many entities the table has")
    for query in found.queries:
        if query.kind and query.kind not in kinds:
            raise DeclarationError(f"query {query.name!r}: there is no kind {query.kind!r}")
    return found


def _query(place: int, given: Mapping[str, object]) -> Query:
    at = f"queries[{place}]"
    _check_known(at, given, {"name", "filter", "order", "top", "returned", "critical", "kind", *_UNITS})
    text = _text(f"{at}.filter", given.get("filter", ""))
    try:
        tree = parse(text) if text.strip() else None
    except FilterSyntaxError:
        raise DeclarationError(f"{at}.filter: {text!r} is no $filter") from None
    conditions = tuple(Condition(each.property, Operator(each.operator)) for each in shape_of(tree).conditions)
    order, _, direction = _text(f"{at}.order", given.get("order", "")).partition(" ")
    if direction not in ("", "asc", "desc"):
        raise DeclarationError(f"{at}.order: a property, and desc for the greatest first")
    returned = given.get("returned")
    return Query(
        name=_text(f"{at}.name", given.get("name", text or "everything")),
        conditions=conditions,
        rate=_rate(at, given),
        order=order,
        descending=direction == "desc",
        top=int(_number(f"{at}.top", given.get("top", 0))),
        returned=None if returned is None else _number(f"{at}.returned", returned),
        critical=_switch(f"{at}.critical", given.get("critical", False)),
        kind=_text(f"{at}.kind", given.get("kind", "")),
    )


def _write(place: int, given: Mapping[str, object]) -> Write:
    at = f"writes[{place}]"
    _check_known(at, given, {"name", "entities", "same", "atomic", *_UNITS})
    return Write(
        name=_text(f"{at}.name", given.get("name", f"write {place}")),
        rate=_rate(at, given),
        entities=max(_number(f"{at}.entities", given.get("entities", 1)), 1),
        same=_names(f"{at}.same", given.get("same", [])),
        atomic=_switch(f"{at}.atomic", given.get("atomic", False)),
    )


def _property(name: str, value: object) -> Property:
    at = f"properties.{name}"
    given = _mapping(at, value)
    _check_known(at, given, {"distinct", "busiest", "rises", "within", "type"})
    kind = _text(f"{at}.type", given.get("type", "text"))
    if kind not in TYPES:
        raise DeclarationError(f"{at}.type: one of {', '.join(TYPES)}")
    busiest = _optional(f"{at}.busiest", given.get("busiest"))
    if busiest is not None and not 0 < busiest <= 1:
        raise DeclarationError(f"{at}.busiest: a share above 0, and at most 1")
    return Property(
        name=name,
        distinct=_optional(f"{at}.distinct", given.get("distinct")),
        busiest=busiest,
        rises=_switch(f"{at}.rises", given.get("rises", kind == "time")),
        within=_text(f"{at}.within", given.get("within", "")),
        type=kind,
    )


def _rate(at: str, given: Mapping[str, object]) -> float:
    """Return a rate per second, whatever its unit is."""
    stated = [name for name in _UNITS if name in given]
    if len(stated) != 1:
        raise DeclarationError(f"{at}: say one of {', '.join(_UNITS)}")
    return _number(f"{at}.{stated[0]}", given[stated[0]]) / _UNITS[stated[0]]


def _unique(value: object) -> tuple[tuple[str, ...], ...]:
    """Return the unique sets of a list of names or of lists of names."""
    if not isinstance(value, list):
        raise DeclarationError("unique: a list of properties, or of lists of them")
    return tuple((each,) if isinstance(each, str) else _names("unique", each) for each in value)


def _today(value: object) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    if value is None:
        return None
    given = _mapping("today", value)
    _check_known("today", given, {"partition", "row"})
    partition, row = (_names(f"today.{each}", given.get(each, [])) for each in ("partition", "row"))
    return partition, row


def _check_known(at: str, given: Mapping[str, object], known: "set[str] | frozenset[str]") -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        place = f"{at}.{unknown[0]}" if at else unknown[0]
        raise DeclarationError(f"{place}: there is no such key, but {', '.join(sorted(known))}")


def _mapping(at: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise DeclarationError(f"{at}: expected a table")
    return value


def _table(given: Mapping[str, object], name: str) -> Mapping[str, object]:
    return _mapping(name, given.get(name, {}))


def _tables(given: Mapping[str, object], name: str) -> Sequence[Mapping[str, object]]:
    value = given.get(name, [])
    if not isinstance(value, list):
        raise DeclarationError(f"{name}: write [[{name}]] before each of them")
    return [_mapping(f"{name}[{place}]", each) for place, each in enumerate(value, 1)]


def _names(at: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DeclarationError(f"{at}: expected a list of properties")
    return tuple(value)


def _typed(kind: type[T], noun: str) -> Callable[[str, object], T]:
    def check(at: str, value: object) -> T:
        if not isinstance(value, kind):
            raise DeclarationError(f"{at}: expected {noun}")
        return value

    return check


_text = _typed(str, "a text")
_switch = _typed(bool, "true or false")


def _number(at: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        raise DeclarationError(f"{at}: expected a number that is not negative")
    return float(value)


def _optional(at: str, value: object) -> float | None:
    return None if value is None else _number(at, value)
