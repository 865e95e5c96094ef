"""Changes as a script: several simple statements, sent at once, which are one transaction and one round trip.

For databases that do not take the statements with `WITH` of `sql_statements`: Citus routes each of these to one shard,
and CockroachDB refuses to change a table twice in one statement. A check that fails divides by zero, or meets a key
that should not be there, which undoes the script and is told apart from everything else (`errors.CHECK_FAILED`). Values
stand in the text as hexadecimal digits and numbers as digits, so nothing of it is a caller's text.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lazulite.engine.postgres.sql_statements import COLUMNS, ON_CONFLICT_REPLACE

ROWS_MAX = 100
"""How many rows one INSERT or DELETE holds."""


class Place(NamedTuple):
    """A partition."""

    space: int
    partition_key: bytes
    """Its form."""
    long_partition_key: bytes | None


class RowChange(NamedTuple):
    """What a row becomes."""

    row_key: bytes
    """Its form."""
    long_row_key: bytes | None
    stamp: int
    value: bytes | None
    """None: deleted."""


def apply_script(place: Place, before: int, after: int, changes: Sequence[RowChange]) -> str:
    """Return what changes rows of a partition if its head is `before` (0: there is none)."""
    return ";\n".join(_applied(place, before, after, changes))


def write_script(place: Place, change: RowChange, expected: int | None, *, absent: bool, present: bool) -> str:
    """Return what changes one row if the partition's head is below the change's stamp.

    Args:
        place: its partition.
        change: what it becomes.
        expected: the stamp that the row must have; None: any.
        absent: whether there must be no such row.
        present: whether there must be one.
    """
    return ";\n".join(_written(place, change, expected, absent=absent, present=present))


def _applied(place: Place, before: int, after: int, changes: Sequence[RowChange]) -> Iterator[str]:
    if before:
        yield from _head_moves(place, f"= {before}", after)
    else:
        yield f"INSERT INTO lazulite.partitions (space, partition_key, stamp) VALUES ({_head(place, after)})"
    gone = [change.row_key for change in changes if change.value is None]
    for start in range(0, len(gone), ROWS_MAX):
        yield _delete(place, gone[start : start + ROWS_MAX])
    kept = [change for change in changes if change.value is not None]
    for start in range(0, len(kept), ROWS_MAX):
        yield _insert(place, kept[start : start + ROWS_MAX]) + ON_CONFLICT_REPLACE


def _written(place: Place, change: RowChange, expected: int | None, *, absent: bool, present: bool) -> Iterator[str]:
    yield (
        f"INSERT INTO lazulite.partitions (space, partition_key, stamp) VALUES ({_head(place, 0)})"
        " ON CONFLICT (space, partition_key) DO NOTHING"
    )
    yield from _head_moves(place, f"< {change.stamp}", change.stamp)
    row = f"{_where(place)} AND row_key = {_bytea(change.row_key)}"
    if present:
        yield _check(
            f"SELECT 1 FROM lazulite.rows WHERE {row}" + ("" if expected is None else f" AND stamp = {expected}")
        )
    if change.value is None:
        yield f"DELETE FROM lazulite.rows WHERE {row}"
    else:
        yield _insert(place, [change]) + ("" if absent else ON_CONFLICT_REPLACE)


def _head_moves(place: Place, condition: str, after: int) -> Iterator[str]:
    # Locked, then judged as it is by then.
    yield _check(f"SELECT 1 FROM lazulite.partitions WHERE {_where(place)} AND stamp {condition} FOR UPDATE")
    yield f"UPDATE lazulite.partitions SET stamp = {after} WHERE {_where(place)}"


def _check(rows: str) -> str:
    return f"SELECT 1 / count(*) FROM ({rows}) AS found"


def _delete(place: Place, row_keys: Sequence[bytes]) -> str:
    """Return what deletes rows, each looked up by its whole key whatever the statistics say.

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
    head = f"({place.space}, {_bytea(place.partition_key)}"
    tail = _bytea(place.long_partition_key)
    values = ", ".join(
        f"{head}, {_bytea(row_key)}, {stamp}, {_bytea(value)}, {tail}, {_bytea(long_row_key)})"
        for row_key, long_row_key, stamp, value in changes
    )
    return f"INSERT INTO lazulite.rows ({COLUMNS}) VALUES {values}"


def _head(place: Place, stamp: int) -> str:
    return f"{place.space}, {_bytea(place.partition_key)}, {stamp}"


def _where(place: Place) -> str:
    return f"space = {place.space} AND partition_key = {_bytea(place.partition_key)}"


def _bytea(value: bytes | None) -> str:
    return "NULL" if value is None else f"E'\\\\x{value.hex()}'::bytea"  # E: whatever standard_conforming_strings is.
