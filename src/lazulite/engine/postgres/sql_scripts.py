"""Changes as a script: several simple statements, sent at once, which are one transaction and one round trip.

For databases that reject the statements with `WITH` of `sql_statements`: Citus routes each of these to one shard, and
CockroachDB refuses to change a table twice in one statement. A check that fails divides by zero, or violates a primary
key. That undoes the script, with errors that have no other cause (`errors.CHECK_FAILED`). Values are written as
hexadecimal digits and numbers as digits, so the script contains no caller's text.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lazulite.engine.postgres.sql_statements import COLUMNS, ON_CONFLICT_REPLACE
from lazulite.engine.precondition import Expect, Precondition

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


class RowWrite(NamedTuple):
    """A change of a row that must meet a precondition."""

    place: Place
    change: RowChange
    precondition: Precondition


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


def write_script(shards: Sequence[Sequence[RowWrite]], base: int) -> str:
    """Return a script that writes rows of partitions whose versions are below `base`, if all rows are as expected.

    Args:
        shards: for each shard its writes, of different rows. Scripts that list shards in one order do not deadlock.
        base: not above the timestamps of the writes.
    """
    return ";\n".join(statement for writes in shards for statement in _written(writes, base))


def write_one(write: RowWrite) -> str:
    """Return a statement that changes one row that must be present, if the partition's version is below the timestamp.

    It changes one row if all is as expected, and no row otherwise. The new version is kept in any case.
    """
    place, change, precondition = write
    expected = "" if precondition.timestamp is None else f" AND rows.stamp = {precondition.timestamp}"
    where = (
        f"version_row.partition_key = rows.partition_key AND rows.space = {place.space}"
        f" AND rows.partition_key = {_bytea(place.partition_key)} AND rows.row_key = {_bytea(change.row_key)}{expected}"
    )
    version_row = (
        f"WITH version_row AS (UPDATE lazulite.partitions SET stamp = {change.timestamp} WHERE {_where(place)}"
        f" AND stamp < {change.timestamp} RETURNING partition_key)"
    )
    if change.value is None:
        return f"{version_row} DELETE FROM lazulite.rows USING version_row WHERE {where}"
    changed = f"stamp = {change.timestamp}, value = {_bytea(change.value)}"
    return f"{version_row} UPDATE lazulite.rows SET {changed} FROM version_row WHERE {where}"


def _applied(
    place: Place, before: int, after: int, changes: Sequence[RowChange], expected: Sequence[RowBeginning]
) -> Iterator[str]:
    if before:
        yield _advance([(place, after)], f"= {before}")
    else:
        yield f"INSERT INTO lazulite.partitions (space, partition_key, stamp) VALUES {_version(place, after)}"
    for start in range(0, len(expected), ROWS_MAX):
        yield _check_beginnings(place, expected[start : start + ROWS_MAX])
    yield from _deletes(place, [change.row_key for change in changes if change.value is None])
    yield from _inserts([(place, change) for change in changes if change.value is not None], ON_CONFLICT_REPLACE)


def _written(writes: Sequence[RowWrite], base: int) -> Iterator[str]:
    versions: dict[Place, int] = {}
    gone: dict[Place, list[bytes]] = {}
    for place, change, _ in writes:
        versions[place] = max(versions.get(place, 0), change.timestamp)
        if change.value is None:
            gone.setdefault(place, []).append(change.row_key)
    yield _advance(sorted(versions.items(), key=lambda each: each[0][:2]), f"< {base}")
    for place, change, (expects, _, timestamp) in writes:
        if expects is Expect.PRESENT:
            row = f"{_where(place)} AND row_key = {_bytea(change.row_key)}"
            yield _check(row if timestamp is None else f"{row} AND stamp = {timestamp}")
    for place, row_keys in gone.items():
        yield from _deletes(place, row_keys)
    kept = [write for write in writes if write.change.value is not None]
    absent = [write[:2] for write in kept if write.precondition.expects is Expect.ABSENT]
    others = [write[:2] for write in kept if write.precondition.expects is not Expect.ABSENT]
    yield from _inserts(absent, "")
    yield from _inserts(others, ON_CONFLICT_REPLACE)


def _advance(versions: Sequence[tuple[Place, int]], condition: str) -> str:
    """Return a statement that locks version rows and sets them, and fails if one of them does not meet a condition."""
    values = ", ".join(_version(place, version) for place, version in versions)
    return (
        f"INSERT INTO lazulite.partitions AS known (space, partition_key, stamp) VALUES {values}"
        " ON CONFLICT (space, partition_key)"
        f" DO UPDATE SET stamp = excluded.stamp + 0 % CAST(known.stamp {condition} AS int)"
    )


def _check(row: str) -> str:
    return f"SELECT 1 / count(*) FROM (SELECT 1 FROM lazulite.rows WHERE {row}) AS found"


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


def _deletes(place: Place, row_keys: Sequence[bytes]) -> Iterator[str]:
    for start in range(0, len(row_keys), ROWS_MAX):
        yield _delete(place, row_keys[start : start + ROWS_MAX])


def _inserts(rows: Sequence[tuple[Place, RowChange]], on_conflict: str) -> Iterator[str]:
    for start in range(0, len(rows), ROWS_MAX):
        yield _insert(rows[start : start + ROWS_MAX]) + on_conflict


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


def _insert(rows: Sequence[tuple[Place, RowChange]]) -> str:
    values = ", ".join(
        f"({place.space}, {_bytea(place.partition_key)}, {_bytea(row_key)}, {timestamp}, {_bytea(value)},"
        f" {_bytea(place.long_partition_key)}, {_bytea(long_row_key)})"
        for place, (row_key, long_row_key, timestamp, value) in rows
    )
    return f"INSERT INTO lazulite.rows ({COLUMNS}) VALUES {values}"


def _version(place: Place, version: int) -> str:
    return f"({place.space}, {_bytea(place.partition_key)}, {version})"


def _where(place: Place) -> str:
    return f"space = {place.space} AND partition_key = {_bytea(place.partition_key)}"


def _bytea(value: bytes | None) -> str:
    return "NULL" if value is None else f"E'\\\\x{value.hex()}'::bytea"  # E: whatever standard_conforming_strings is.
