"""Changes as a script: several simple statements, sent at once, which are one transaction and one round trip.

For databases that reject the statements with `WITH` of `sql_statements`: Citus routes each of these to one shard, and
CockroachDB refuses to change a table twice in one statement. A check that fails divides by zero, or violates a primary
key. That undoes the script, with errors that have no other cause (`errors.CHECK_FAILED`). Values are written as
hexadecimal digits and numbers as digits, so the script contains no caller's text.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lazulite.engine.postgres.sql_statements import COLUMNS, ON_CONFLICT_REPLACE

ROWS_MAX = 100
"""The most rows of one INSERT or DELETE."""


class Place(NamedTuple):
    """A partition."""

    space: int
    partition_key: bytes
    """Its index key."""
    long_partition_key: bytes | None


class RowChange(NamedTuple):
    """The new value of a row."""

    row_key: bytes
    """Its index key."""
    long_row_key: bytes | None
    timestamp: int
    value: bytes | None
    """None: deleted."""


class RowBeginning(NamedTuple):
    """What the value of a row begins with."""

    row_key: bytes
    """Its index key."""
    beginning: bytes


def apply_script(
    place: Place, before: int, after: int, changes: Sequence[RowChange], expected: Sequence[RowBeginning] = ()
) -> str:
    """Return a script that changes rows of a partition if its version is `before` (0: there is none).

    Args:
        place: the partition.
        before: its version.
        after: its new version.
        changes: of its rows.
        expected: what other rows must begin with.
    """
    return ";\n".join(_applied(place, before, after, changes, expected))


def write_script(place: Place, change: RowChange, expected: int | None, *, absent: bool, present: bool) -> str:
    """Return a script that changes one row if the partition's version is below the change's timestamp.

    Args:
        place: the row's partition.
        change: the row's new value.
        expected: the timestamp of the row's last commit; None: any.
        absent: whether the row must be absent.
        present: whether the row must be present.
    """
    return ";\n".join(_written(place, change, expected, absent=absent, present=present))


def _applied(
    place: Place, before: int, after: int, changes: Sequence[RowChange], expected: Sequence[RowBeginning]
) -> Iterator[str]:
    if before:
        yield from _version_advances(place, f"= {before}", after)
    else:
        yield f"INSERT INTO lazulite.partitions (space, partition_key, stamp) VALUES ({_version_values(place, after)})"
    for start in range(0, len(expected), ROWS_MAX):
        yield _check_beginnings(place, expected[start : start + ROWS_MAX])
    gone = [change.row_key for change in changes if change.value is None]
    for start in range(0, len(gone), ROWS_MAX):
        yield _delete(place, gone[start : start + ROWS_MAX])
    kept = [change for change in changes if change.value is not None]
    for start in range(0, len(kept), ROWS_MAX):
        yield _insert(place, kept[start : start + ROWS_MAX]) + ON_CONFLICT_REPLACE


def _written(place: Place, change: RowChange, expected: int | None, *, absent: bool, present: bool) -> Iterator[str]:
    yield (
        f"INSERT INTO lazulite.partitions (space, partition_key, stamp) VALUES ({_version_values(place, 0)})"
        " ON CONFLICT (space, partition_key) DO NOTHING"
    )
    yield from _version_advances(place, f"< {change.timestamp}", change.timestamp)
    row = f"{_where(place)} AND row_key = {_bytea(change.row_key)}"
    if present:
        yield _check(
            f"SELECT 1 FROM lazulite.rows WHERE {row}" + ("" if expected is None else f" AND stamp = {expected}")
        )
    if change.value is None:
        yield f"DELETE FROM lazulite.rows WHERE {row}"
    else:
        yield _insert(place, [change]) + ("" if absent else ON_CONFLICT_REPLACE)


def _version_advances(place: Place, condition: str, after: int) -> Iterator[str]:
    # The version row is locked before the condition is evaluated.
    yield _check(f"SELECT 1 FROM lazulite.partitions WHERE {_where(place)} AND stamp {condition} FOR UPDATE")
    yield f"UPDATE lazulite.partitions SET stamp = {after} WHERE {_where(place)}"


def _check(rows: str) -> str:
    return f"SELECT 1 / count(*) FROM ({rows}) AS found"


def _check_beginnings(place: Place, expected: Sequence[RowBeginning]) -> str:
    """Return a statement that fails unless all rows begin as expected; it gives the keys as `_delete` does."""
    literals = [_bytea(each.row_key) for each in expected]
    rows = ", ".join(
        f"({place.space}, {literal}, {_bytea(each.beginning)})"
        for literal, each in zip(literals, expected, strict=True)
    )
    return (
        f"SELECT 1 / (count(*) / {len(expected)}) FROM lazulite.rows, (VALUES {rows})"
        f" AS asked (space, row_key, beginning) WHERE rows.space = asked.space AND"
        f" partition_key = {_bytea(place.partition_key)} AND rows.row_key = asked.row_key"
        f" AND rows.row_key IN ({', '.join(literals)}) AND substr(value, 1, octet_length(beginning)) = beginning"
    )


def _delete(place: Place, row_keys: Sequence[bytes]) -> str:
    """Return a statement that deletes rows, each looked up by its whole key whatever the statistics say.

    The keys are given twice. A planner that takes the partition for a small one reads all of it: PostgreSQL 16 and
    older for the list alone, PostgreSQL 18 for the join alone, since it can skip the space, the index's first column.
    """
    literals = [_bytea(row_key) for row_key in row_keys]
    keys = ", ".join(f"({place.space}, {literal})" for literal in literals)
    return (
        f"DELETE FROM lazulite.rows USING (VALUES {keys}) AS gone (space, row_key)"
        f" WHERE rows.space = gone.space AND partition_key = {_bytea(place.partition_key)}"
        f" AND rows.row_key = gone.row_key AND rows.row_key IN ({', '.join(literals)})"
    )


def _insert(place: Place, changes: Sequence[RowChange]) -> str:
    start = f"({place.space}, {_bytea(place.partition_key)}"
    end = _bytea(place.long_partition_key)
    values = ", ".join(
        f"{start}, {_bytea(row_key)}, {timestamp}, {_bytea(value)}, {end}, {_bytea(long_row_key)})"
        for row_key, long_row_key, timestamp, value in changes
    )
    return f"INSERT INTO lazulite.rows ({COLUMNS}) VALUES {values}"


def _version_values(place: Place, version: int) -> str:
    return f"{place.space}, {_bytea(place.partition_key)}, {version}"


def _where(place: Place) -> str:
    return f"space = {place.space} AND partition_key = {_bytea(place.partition_key)}"


def _bytea(value: bytes | None) -> str:
    return "NULL" if value is None else f"E'\\\\x{value.hex()}'::bytea"  # E: whatever standard_conforming_strings is.
