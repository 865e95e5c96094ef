"""Indexes of a table as a Python module for lazulite-patterns, which maintains such indexes on any account.

Invariant: names of tables, indexes and properties reach the text as literals, or as identifiers that are made here.
"""

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_KINDS = {
    "Edm.String": ("str", ""),
    "Edm.Int32": ("int", "integer(10, signed=True)"),
    "Edm.Int64": ("int", "integer(19, signed=True)"),
    "Edm.DateTime": ("datetime", ""),
    "Edm.Guid": ("UUID", ""),
    "Edm.Binary": ("bytes", ""),
}
"""Types of properties -> the Python type of a column, and its key component if that is not the default one."""
_SOURCES = {"datetime": "from datetime import datetime", "UUID": "from uuid import UUID"}


class IndexDefinition(NamedTuple):
    """An index, and the types of its properties in the entities."""

    name: str
    on: Sequence[str]
    scope: str
    types: Mapping[str, Mapping[str, int]]
    """The properties -> their types in some entities -> how many of these have it."""

    def type_of(self, name: str) -> str:
        """Return the type that most of the entities have."""
        types = self.types.get(name, {})
        return max(types, key=lambda each: (types[each], each), default="Edm.String")

    @property
    def unsupported_reason(self) -> str:
        """The reason why the pattern library does not support it; empty if it does."""
        if "Timestamp" in self.on:
            return "Timestamp is not a column"
        missing = [name for name in self.on if self.type_of(name) not in _KINDS]
        return f"{missing[0]} is of {self.type_of(missing[0])}, which cannot be part of a key" if missing else ""


class _Column(NamedTuple):
    attribute: str
    name: str
    type: str
    others: Sequence[str]

    @property
    def lines(self) -> Iterator[str]:
        if self.others:
            yield f"# Some entities have {', '.join(self.others)} here, and cannot be read."
        form = ', form="int32"' if self.type == "Edm.Int32" else ""
        kind = _KINDS[self.type][0]
        yield f"{self.attribute}: Column[{kind} | None] = column(name={_quoted(self.name)}{form}, default=None)"

    @property
    def field(self) -> str:
        """The column as a field of an index."""
        component = _KINDS[self.type][1]
        return f"({_quoted(self.attribute)}, {component})" if component else _quoted(self.attribute)


def patterns_module(table: str, indexes: Sequence[IndexDefinition]) -> str:
    """Return a module that declares the indexes of a table as those of a class."""
    possible = [index for index in indexes if not index.unsupported_reason]
    columns = _columns(possible)
    kinds = {_KINDS[column.type][0] for column in columns.values()}
    has_integer = any("integer(" in column.field for column in columns.values())
    names = ["Column", "Index", "column", "entity", *(["integer"] if has_integer else []), "partition", "row"]
    head = [
        f'"""The indexes of the table {table}, kept by lazulite-patterns on any account.',
        "",
        "Each program that writes must use the class. A first `audit(table, repair=True)` adds what is absent.",
        'Look-ups are by equal values, and by the beginning of a text: `table.by(...)`. Other ranges are scans."""',
        "",
        *(source for kind, source in _SOURCES.items() if kind in kinds),
        *([""] if kinds & {*_SOURCES} else []),
        f"from lazulite_patterns import {', '.join(names)}",
        "",
        f"TABLE = {_quoted(table)}",
        "",
        "",
    ]
    declared = [f"    {_declared(index, columns)}," for index in possible]
    left_out = [f"    # {index.name}: {index.unsupported_reason}" for index in indexes if index.unsupported_reason]
    body = [
        "@entity(indexes=[",
        *declared,
        *left_out,
        "])",
        f"class {_class_name(table)}:",
        "    partition_key: Column[str] = partition()",
        "    row_key: Column[str] = row()",
        *(f"    {line}" for column in columns.values() for line in column.lines),
    ]
    return "\n".join([*head, *body]) + "\n"


def _declared(index: IndexDefinition, columns: Mapping[str, _Column]) -> str:
    fields = ", ".join(columns[name].field for name in index.on)
    within = ", within_partition=True" if index.scope == "partition" else ""
    return f"Index({_quoted(index.name)}, {fields}{within})"


def _columns(indexes: Sequence[IndexDefinition]) -> Mapping[str, _Column]:
    """Return the columns of the properties that indexes have."""
    taken = {"partition_key", "row_key"}
    found: dict[str, _Column] = {}
    for index in indexes:
        for name in index.on:
            if name not in found:
                attribute = _attribute(name, taken)
                taken.add(attribute)
                of = index.type_of(name)
                found[name] = _Column(attribute, name, of, sorted({*index.types.get(name, {})} - {of}))
    return found


def _attribute(name: str, taken: set[str]) -> str:
    """Return a new identifier, in lower case, for a property."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub("[^A-Za-z0-9_]", "_", name)).lower().strip("_")
    attribute = words if words[:1].isalpha() else f"column_{words}"
    while attribute in taken or keyword.iskeyword(attribute):
        attribute += "_"
    return attribute


def _quoted(text: str) -> str:
    """Return a literal of text, in double quotes, of ASCII."""
    escaped = ascii(text)[1:-1].replace('"', '\\"')
    return f'"{escaped}"'


def _class_name(table: str) -> str:
    name = re.sub("[^A-Za-z0-9]", "", table)
    return f"{name[:1].upper()}{name[1:]}" if name[:1].isalpha() else f"Table{name}"
