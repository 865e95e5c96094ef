"""How far the builds of indexes have come, as the store has it: a row for each index that is not built.

The partition is the account, the row names the table and the space of the index, and the value is JSON. The rows are
only about time that is saved: a build without one begins with the first row of its table.
"""

import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.engine.commit import put_rows
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.records.spaces import INDEX_BUILDS, Space


class BuildProgress(NamedTuple):
    """How far a build has come."""

    rows: int = 0
    """Rows that were gone through."""
    after: Key | None = None
    """The last of them; None: it has not begun."""


@dataclass(slots=True)
class BuildCounts:
    """What the builds of a process have done, without the names of tables and indexes."""

    running: int = 0
    rows: int = 0
    """Rows that were gone through."""
    finished: int = 0
    failed: int = 0
    """Those that an error ended, rather than a command or the end of the process."""

    def readings(self) -> Mapping[str, float]:
        """Return them under the names of metrics."""
        return {
            "index_builds": self.running,
            "index_build_rows_total": self.rows,
            "index_builds_finished_total": self.finished,
            "index_builds_failed_total": self.failed,
        }


async def note_build(engine: Engine, account: str, table: str, space: int, progress: BuildProgress) -> None:
    """Note how far the build of an index has come, given its table's row and its own space."""
    value = json.dumps(progress).encode()
    await engine.commit(INDEX_BUILDS, account, put_rows({_row_of(table, space): value}))


async def read_build(engine: Engine, account: str, table: str, space: int) -> BuildProgress:
    """Return what was noted of a build."""
    value = await engine.get(INDEX_BUILDS, account, _row_of(table, space))
    return BuildProgress() if value is None else _read(value)


async def forget_build(engine: Engine, account: str, space: int) -> None:
    """Remove what was noted of the build of an index, which has ended, given the space of the index."""
    within = KeyRange((account, ""), (f"{account}\0", ""))
    async with aclosing(engine.scan(INDEX_BUILDS, [within], keys_only=True)) as parts:
        rows = [row async for part in parts for row in part.columns()[1] if row.endswith(f"/{space}")]
    if rows:
        await engine.commit(INDEX_BUILDS, account, put_rows(dict.fromkeys(rows)))


def _row_of(table: str, space: int) -> str:
    return f"{table}/{space}"


def _read(value: bytes) -> BuildProgress:
    rows, after = json.loads(value)
    return BuildProgress(rows, None if after is None else (after[0], after[1]))


def _verify(key: Key, value: bytes) -> None:
    name, _, space = key[1].rpartition("/")
    if not name or not space.isdecimal():
        raise ValueError(f"the build of an index has the row {key[1]!r}")
    _read(value)


BUILDS_SPACE = Space(number=INDEX_BUILDS, owner="table", title="the builds of indexes", copied=True, verify=_verify)
