"""Is a store what this version of Lazulite writes? Every row of it, looked at once, in the order of keys.

What must hold, and is looked for:

- keys decode, and are spelled in the one way that `engine.key_encoding` has;
- the catalog's rows are tables or unfinished drops, each table with a space of its own that was given out;
- every other row is in the space of a table, or in one whose drop is unfinished (such rows are gone already);
- an entity's row is, byte for byte, what `row.assemble` makes of its keys, Timestamp and properties; all its values are
  of their types, and its Timestamp is not above the greatest stamp that the store ever gave.

The *checksum* is a SHA-256 of the rows of tables, of the tables themselves and of the service properties: equal for
equal contents, whatever files they are in. Accounts are not in it, as those of a location are in a file beside.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lazulite.auth.accounts.document import read_accounts
from lazulite.engine.contract import Key
from lazulite.engine.key_encoding import decode_key, encode_key
from lazulite.records.spaces import ACCOUNTS, COPIES, COUNTERS, FIRST_FREE_SPACE, SERVICE_PROPERTIES, TABLES
from lazulite.service.properties import ServiceProperties
from lazulite.table.catalog import DROPPED, Table
from lazulite.table.model.row import assemble, decode_row, encode_keys, encode_properties

PROBLEMS_MAX = 20
"""So many problems are described; the others are counted."""

_MALFORMED = (ValueError, LookupError, TypeError, AssertionError, AttributeError)
"""What reading bytes that nobody wrote may raise."""


@dataclass(slots=True)
class Findings:
    """What a store holds, and what is wrong with it."""

    tables: int = 0
    entities: int = 0
    rows: int = 0
    """Read so far, of all kinds."""
    checksum: str = ""
    """Hexadecimal; known at the end."""
    problems: list[str] = field(default_factory=list)
    """The first of them, a line each."""
    problem_count: int = 0

    def note(self, problem: str) -> None:
        """Take note of a problem."""
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)


def verify(rows: Iterable[tuple[bytes, bytes]], stamp_max: int) -> Iterator[Findings]:
    """Yield the findings after every row, always the same object, and once more when all rows have been seen.

    Args:
        rows: keys and values of a whole store, in order.
        stamp_max: the greatest stamp that the store ever gave, in ticks.
    """
    return _Verification(stamp_max).run(rows)


class _Verification:
    def __init__(self, stamp_max: int) -> None:
        self._stamp_max = stamp_max
        self._findings = Findings()
        self._digest = hashlib.sha256()
        self._names: dict[int, str] = {}
        self._dropped: set[int] = set()
        self._next_space = FIRST_FREE_SPACE

    def run(self, rows: Iterable[tuple[bytes, bytes]]) -> Iterator[Findings]:
        for key, value in rows:
            self._findings.rows += 1
            try:
                self._look(key, value)
            except _MALFORMED as error:
                self._findings.note(f"row {key.hex()}: {type(error).__name__}: {error}")
            yield self._findings
        self._findings.checksum = self._digest.hexdigest()
        yield self._findings

    def _look(self, raw: bytes, value: bytes) -> None:
        space = int.from_bytes(raw[:8], "big")
        key = decode_key(raw)
        if encode_key(space, *key) != raw:
            raise ValueError("the key is spelled in no way that Lazulite has")
        counts = self._entity(space, key, value) if space >= FIRST_FREE_SPACE else self._fact(space, key, value)
        if counts:
            for part in (raw, value):
                self._digest.update(len(part).to_bytes(4, "big"))
                self._digest.update(part)

    def _entity(self, space: int, key: Key, value: bytes) -> bool:
        """Look at a row of a table; say whether it belongs to the store's contents."""
        if space in self._dropped:
            return False
        if space not in self._names:
            raise ValueError(f"space {space} belongs to no table")
        row = decode_row(value)
        again = assemble(row.ticks, encode_keys(row.partition_key, row.row_key), encode_properties(row.properties))
        if again != value or (row.partition_key, row.row_key) != key:
            raise ValueError(f"table {self._names[space]}, {key}: the entity is not as Lazulite writes it")
        for edm, literal in row.properties.values():
            edm.decode(literal)
        if row.ticks > self._stamp_max:
            raise ValueError(f"table {self._names[space]}, {key}: a Timestamp that the store never gave")
        self._findings.entities += 1
        return True

    def _fact(self, space: int, key: Key, value: bytes) -> bool:
        """Look at a row of the services' own spaces; say likewise."""
        if space == COUNTERS and key == ("spaces", "next") and len(value) == 8:
            self._next_space = int.from_bytes(value, "big")
            return False
        if space == SERVICE_PROPERTIES:
            ServiceProperties.from_json(json.loads(value))
            return True
        if space == ACCOUNTS:
            read_accounts(value, "the list of accounts")
            return False
        if space == COPIES:
            raise ValueError("the store is an unfinished copy; the same lazulite copy finishes it")
        if space != TABLES:
            raise ValueError(f"nothing that Lazulite knows is in space {space} under {key}")
        if key[1].startswith(DROPPED):
            self._dropped.add(int(key[1].removeprefix(DROPPED)))
            return False
        self._table(key[1], Table.from_bytes(value))
        return True

    def _table(self, row: str, table: Table) -> None:
        if table.name.lower() != row:
            raise ValueError(f"table {row} is called {table.name}")
        if not FIRST_FREE_SPACE <= table.space < self._next_space or table.space in self._names:
            raise ValueError(f"table {table.name} has space {table.space}, which is not its own")
        self._names[table.space] = table.name
        self._findings.tables += 1
