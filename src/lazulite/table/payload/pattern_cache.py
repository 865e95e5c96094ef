"""The patterns of the bodies that clients send lately, by account and table.

Invariants:

- A pattern depends on the shape of a body only and gives the result of the general path. So no client can change what
  another client's body means.
- The patterns of recently used accounts stay, whatever one account sends. The clients of one table share its patterns.
- Memory is bounded: `ACCOUNTS_MAX` accounts of `TABLES_MAX` tables of `CHARACTERS_MAX` characters of expressions, and
  those of evicted tables that a request plan still holds (`service.request_plan.PLANS_MAX`).
- Making a pattern takes about a millisecond, so it takes `BODIES_PER_PATTERN` bodies of a table that no pattern
  matched. A client whose shapes never repeat pays a few per cent for patterns that are of no use.
"""

from lazulite.protocol.lru_cache import Recent
from lazulite.table.model.entity import EncodedEntity
from lazulite.table.payload.json_fast_path import Members
from lazulite.table.payload.json_pattern import JsonPattern, pattern_of

ACCOUNTS_MAX = 32
TABLES_MAX = 64
CHARACTERS_MAX = 8192
"""Characters of the expressions of one table: a dozen of ordinary shapes. Their memory is some five times as much."""
BODIES_PER_PATTERN = 32
BODY_BYTES_MAX = 16 * 1024
"""Longer bodies are not matched."""


class TablePatterns:
    """The patterns of one table by the number of quotes in a body, which says almost surely which shape it has."""

    __slots__ = ("_by_quotes", "_missed")

    def __init__(self) -> None:
        self._by_quotes: dict[int, JsonPattern] = {}
        self._missed = 0

    def __len__(self) -> int:
        return len(self._by_quotes)

    def encode(self, body: bytes, by_name: bool) -> EncodedEntity | None:
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
        self._accounts: Recent[str, Recent[str, TablePatterns]] = Recent(ACCOUNTS_MAX)

    def of(self, account: str, table: str) -> TablePatterns:
        """Return the patterns of a table."""
        tables = self._accounts.get(account)
        if tables is None:
            tables = Recent[str, TablePatterns](TABLES_MAX)
            self._accounts.put(account, tables)
        patterns = tables.get(table)
        if patterns is None:
            patterns = TablePatterns()
            tables.put(table, patterns)
        return patterns
