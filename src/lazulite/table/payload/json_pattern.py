"""The patterns of shapes: how bodies of one shape become rows by one match of a regular expression.

A program sends the same names and annotations, in the same order and with the same blanks. Only the values differ. The
pattern of such a shape matches the values, and a template puts their literals in order. The patterns of the bodies that
clients sent lately are cached by account and table.

Invariants:
- A body that matches is well-formed JSON without an escape, and its result is the one of the general path. Its keys are
  valid keys of a new entity. A pattern raises no error: it returns None for every other body.
- A pattern depends on names, types and blanks, never on values. So no client can change what another client's body
  means. Matching takes time linear in the body: whatever a repetition took, it keeps.
- The patterns of recently used accounts stay, whatever one account sends. The clients of one table share its patterns.
- Memory is bounded: `ACCOUNTS_MAX` accounts of `TABLES_MAX` tables of `CHARACTERS_MAX` characters of expressions, and
  those of evicted tables that a cached plan still holds (`service.plans.PLANS_MAX`).
- Making a pattern takes about a millisecond, so it takes `BODIES_PER_PATTERN` bodies of a table that no pattern
  matched. A client whose shapes never repeat pays a few per cent for patterns that are of no use.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quote
from math import isfinite
from operator import methodcaller
from typing import NamedTuple, Self, TypeAlias

from lazulite.protocol.lru_cache import LruCache
from lazulite.table.model.edm import (
    BINARY,
    BOOLEAN,
    DATETIME,
    DOUBLE,
    GUID,
    INT32,
    INT64,
    STRING,
    UTC_INSTANT,
    binary_literal,
    finite_literal,
    trimmed_instant,
)
from lazulite.table.names import KEY_MAX_UTF16
from lazulite.table.payload.json_fast_path import Members, PropertySlot, shape_of

PATTERN_CHARACTERS_MAX = 2048
"""Characters of an expression. A longer one would take more than a millisecond to compile."""

_PLAIN = bytes(code for code in range(0x20, 0x7F) if code != ord("\\"))
"""The characters of a body that a pattern may match: ASCII, without control characters and escapes."""
_NUMBER = r"-?(?:0|[1-9][0-9]{0,15}+)(?:\.[0-9]{1,20}+(?:[eE][-+]?[0-9]{1,3}+)?|[eE][-+]?[0-9]{1,3}+)"
"""A number that JSON parsers return as a float."""

ACCOUNTS_MAX = 32
TABLES_MAX = 64
CHARACTERS_MAX = 8192
"""Characters of the expressions of one table: a dozen of ordinary shapes. Their memory is some five times as much."""
BODIES_PER_PATTERN = 32
BODY_BYTES_MAX = 16 * 1024
"""Longer bodies are not matched."""


MatchedEntity: TypeAlias = tuple[str, str, str, str]
"""An entity of a body that matches: its keys, which are valid for a new entity; both as `row.encode_keys` encodes them;
and its properties as `row.encode_properties` does."""


class _Form(NamedTuple):
    """The values of one type that a pattern matches."""

    pattern: str
    """The expression of JSON values; of canonical literals where there is no `literal`."""
    literal: Callable[[str], str] | None = None
    """From what was matched to the canonical literal; raises ValueError where there is none."""


_TEXT = _Form(r'"[^"]*+"')
"""Text of a plain body. A class of characters would be looked up for each one: that takes twice as long."""
_KEY = _Form(rf'"[ !$-.0->@-\[\]-~]{{0,{KEY_MAX_UTF16}}}+"')
"""Text that `names.check_new_key` accepts."""
_TRUTH = _Form("true|false")
_INTEGER = _Form("0|-?[1-9][0-9]{0,8}+|1[0-9]{9}")


def _double(number: str) -> str:
    value = float(number)
    if not isfinite(value):
        raise ValueError("out of the range of a Double")
    return finite_literal(value)


_FORMS: Mapping[str | type, _Form] = {
    str: _TEXT,
    bool: _TRUTH,
    int: _INTEGER,
    float: _Form(_NUMBER, _double),
    STRING.name: _TEXT,
    BOOLEAN.name: _TRUTH,
    INT32.name: _INTEGER,
    INT64.name: _Form('"(?:0|-?[1-9][0-9]{0,17}+)"'),
    DOUBLE.name: _Form(f"{_NUMBER}|0|-?[1-9][0-9]{{0,15}}+", _double),
    DATETIME.name: _Form(f'"{UTC_INSTANT}"', trimmed_instant),
    GUID.name: _Form('"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"'),
    BINARY.name: _Form('"[A-Za-z0-9+/]*+={0,2}+"', lambda quoted: binary_literal(quoted[1:-1])),
}
"""By the name of the declared type, else by the Python type of the value."""


class _Order(NamedTuple):
    """One order of the properties, behind the two keys."""

    values: Callable[["re.Match[str]"], tuple[str, ...]]
    """Returns the groups of the expression in this order."""
    literals: tuple[tuple[int, Callable[[str], str]], ...]
    """Indices among the values with the function that makes the literal."""
    template: str
    """The template of the members of a row; its fields are the literals. A name has no percent sign."""

    @classmethod
    def of(cls, keys: Iterable[int], slots: Iterable[PropertySlot], forms: Mapping[int, _Form]) -> Self:
        """Return the order of some properties; `forms` by indices among members, in which nulls are missing."""
        kept = [(at, prefix) for at, _, prefix in slots if at in forms]
        numbers = {at: number for number, at in enumerate(forms, 1)}
        order = [*keys, *[at for at, _ in kept]]
        made = [(index, literal) for index, at in enumerate(order) if (literal := forms[at].literal) is not None]
        template = "".join([prefix + "%s" for _, prefix in kept])
        return cls(_values([numbers[at] for at in order], len(forms)), tuple(made), template)


def _values(groups: Sequence[int], count: int) -> Callable[["re.Match[str]"], tuple[str, ...]]:
    """Return what returns some groups of an expression that has so many; all as they come cost half as much."""
    return re.Match[str].groups if groups == [*range(1, count + 1)] else methodcaller("group", *groups)


class JsonPattern:
    """The pattern of one shape.

    Attributes:
        expression: the regular expression; its length is a measure of the memory.
    """

    __slots__ = ("_as_sent", "_by_name", "_match", "expression")

    def __init__(self, expression: str, as_sent: _Order, by_name: _Order) -> None:
        """Use `pattern_of`."""
        self._match = re.compile(expression, re.ASCII).fullmatch
        self._as_sent = as_sent
        self._by_name = by_name
        self.expression = expression

    def encode(self, body: bytes, by_name: bool) -> MatchedEntity | None:
        """Encode an entity's properties as sent or by name. Return None if another path must do it."""
        if body.translate(None, _PLAIN):
            return None
        found = self._match(body.decode("ascii"))
        if found is None:
            return None
        values, made, template = self._by_name if by_name else self._as_sent
        literals = values(found)
        if made:
            changed = list(literals)
            try:
                for index, literal in made:
                    changed[index] = literal(changed[index])
            except ValueError:
                return None
            literals = tuple(changed)
        members = template % literals[2:]
        if 2 * len(members) > STRING.limit:
            return None
        partition_key, row_key = literals[:2]
        keys = f'"PartitionKey":{partition_key},"RowKey":{row_key}'
        return partition_key[1:-1], row_key[1:-1], keys, members


def pattern_of(body: bytes, members: Members) -> JsonPattern | None:
    """Return the pattern of a body's shape; None if it has none.

    Args:
        body: of which the fast path made an entity.
        members: of that body.
    """
    shape = shape_of(members)
    keys = shape.partition_at, shape.row_at
    declared = {at: edm for at, edm, _ in shape.as_sent}
    comma, colon = (", ", ": ") if body.startswith(b'": ', body.find(b'"', 2)) else (",", ":")
    forms: dict[int, _Form] = {}
    texts: list[str] = []
    for at, (name, value) in enumerate(members):
        text = re.escape(quote(name) + colon)
        if (at in declared or at in keys) and value is not None:
            form = _KEY if at in keys else _FORMS.get(declared.get(at) or type(value))
            if form is None:
                return None
            forms[at] = form
            texts.append(f"{text}({form.pattern})")
        elif "@" in name or at in declared:
            texts.append(text + ("null" if value is None else re.escape(quote(str(value)))))
        else:
            return None  # A member without a meaning, such as the Timestamp.
    expression = rf"\{{{comma.join(texts)}\}}"
    if not all(at in forms for at in keys) or len(expression) > PATTERN_CHARACTERS_MAX:
        return None
    pattern = JsonPattern(expression, _Order.of(keys, shape.as_sent, forms), _Order.of(keys, shape.by_name, forms))
    return pattern if pattern.encode(body, by_name=False) is not None else None


class TablePatterns:
    """The patterns of one table by the number of quotes in a body, which says almost surely which shape it has."""

    __slots__ = ("_by_quotes", "_missed")

    def __init__(self) -> None:
        self._by_quotes: dict[int, JsonPattern] = {}
        self._missed = 0

    def __len__(self) -> int:
        return len(self._by_quotes)

    def encode(self, body: bytes, by_name: bool) -> MatchedEntity | None:
        """Encode an entity's properties as sent or by name. Return None if no pattern matches the body."""
        pattern = self._by_quotes.get(body.count(b'"'))
        if pattern is None or len(body) > BODY_BYTES_MAX:
            return None
        return pattern.encode(body, by_name)

    def learn(self, body: bytes, members: Members) -> None:
        """Take notice of a body that no pattern matches, but the fast path: now and then, make a pattern of it."""
        self._missed += 1
        if self._missed < BODIES_PER_PATTERN or len(body) > BODY_BYTES_MAX or not body.isascii():
            return
        self._missed = 0
        pattern = pattern_of(body, members)
        if pattern is not None:
            self._by_quotes[body.count(b'"')] = pattern
            while sum([len(each.expression) for each in self._by_quotes.values()]) > CHARACTERS_MAX:
                del self._by_quotes[next(iter(self._by_quotes))]


class PatternCache:
    """The patterns of all tables."""

    def __init__(self) -> None:
        self._accounts: LruCache[str, LruCache[str, TablePatterns]] = LruCache(ACCOUNTS_MAX)

    def of(self, account: str, table: str) -> TablePatterns:
        """Return the patterns of a table."""
        tables = self._accounts.get(account)
        if tables is None:
            tables = LruCache[str, TablePatterns](TABLES_MAX)
            self._accounts.put(account, tables)
        patterns = tables.get(table)
        if patterns is None:
            patterns = TablePatterns()
            tables.put(table, patterns)
        return patterns
