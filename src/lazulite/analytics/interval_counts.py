"""What the processes of a store have counted in an interval: one row, which each of them may change.

The row has a part for each process: all that this process has counted in the interval so far. A process replaces its
part, so a write that is repeated, because its outcome was unknown, counts nothing twice. Parts only grow.

Invariants: the total of a row only grows, so of two totals the greater one is the later one. `published` is the number
of requests of the latest total that is in the metrics table. A row is kept until no process counts in its interval any
more, see `KEPT_TICKS`.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple, NotRequired, TypedDict, cast, get_args

from lazulite.analytics.metrics import (
    COUNTS,
    LATE_TICKS,
    IntervalKey,
    Operations,
    Period,
    Series,
    add_all,
    requests_in,
    start_of,
)
from lazulite.engine.commit import Decision, change_row, put_rows
from lazulite.engine.contract import Engine, Key, KeyRange
from lazulite.records.spaces import METRIC_COUNTS, Space

KEPT_TICKS = 2 * LATE_TICKS
"""How long a row is kept after its interval has ended."""
UPKEEP: Key = ("", "upkeep")
"""The row of `take_upkeep`: the process and the end of its time. No account's name is empty."""
_FIRST: Key = ("\0", "")
"""No row of an account is before it."""
_PAGE = 256
_PLACES = ("Primary", "Secondary")


class _RowJson(TypedDict):
    parts: dict[str, Operations]
    published: NotRequired[int]


class IntervalCounts(NamedTuple):
    """The row of an interval."""

    total: Operations
    """The counts of all processes."""
    published: int = -1
    """How many requests the rows of the metrics table have; -1: there are no rows yet."""

    @property
    def is_published(self) -> bool:
        """Whether the metrics table has the total."""
        return requests_in(self.total) <= self.published


NOTHING = IntervalCounts({})


async def read(engine: Engine, key: IntervalKey) -> IntervalCounts:
    """Return what the processes have counted. Raises `EngineError`."""
    return _counts(_decode(await engine.get(METRIC_COUNTS, key.series.account, _row_of(key))))


async def put(engine: Engine, key: IntervalKey, process: str, part: Operations) -> IntervalCounts:
    """Replace the part of a process, and return what all have counted.

    Raises:
        EngineError: the outcome is unknown; the same call may be repeated.
    """

    def replace(current: bytes | None) -> Decision[IntervalCounts]:
        row = _decode(current)
        row["parts"][process] = part
        return Decision({name: _encode(row)}, _counts(row))

    name = _row_of(key)
    return await engine.commit(METRIC_COUNTS, key.series.account, change_row(name, replace))


async def note_published(engine: Engine, key: IntervalKey, requests: int) -> None:
    """Note that the metrics table has a total of so many requests. Raises `EngineError`."""

    def note(current: bytes | None) -> Decision[None]:
        row = _decode(current)
        if current is None or row.get("published", -1) >= requests:
            return Decision({}, None)
        row["published"] = requests
        return Decision({name: _encode(row)}, None)

    name = _row_of(key)
    await engine.commit(METRIC_COUNTS, key.series.account, change_row(name, note))


async def remove(engine: Engine, key: IntervalKey) -> None:
    """Remove the row of an interval. Raises `EngineError`."""
    await engine.commit(METRIC_COUNTS, key.series.account, put_rows({_row_of(key): None}))


async def all_rows(engine: Engine) -> AsyncGenerator[tuple[IntervalKey, IntervalCounts], None]:
    """Yield the rows of all accounts, some at a time, so that they may be changed. Raises `EngineError`."""
    lower: Key = _FIRST
    while True:
        page: list[tuple[Key, bytes]] = []
        async with aclosing(engine.scan(METRIC_COUNTS, [KeyRange(lower, None)], _PAGE)) as slices:
            async for rows in slices:
                page += [(rows.key(index), value) for index, value in enumerate(rows.values)]
        for key, value in page:
            yield _key_of(key), _counts(_decode(value))
        if len(page) < _PAGE:
            return
        account, row = page[-1][0]
        lower = (account, row + "\0")


async def take_upkeep(engine: Engine, process: str, now: int, until: int) -> bool:
    """Return whether a process may do what one process of a store does, until a time.

    Args:
        engine: of the store.
        process: its name.
        now: the time, in ticks.
        until: when another process may do it.

    Raises:
        EngineError: the outcome is unknown.
    """

    def take(current: bytes | None) -> Decision[bool]:
        holder, ends = ("", 0) if current is None else json.loads(current)
        if holder != process and now < ends < now + 2 * (until - now):  # A clock may have been wrong.
            return Decision({}, False)
        return Decision({UPKEEP[1]: json.dumps([process, until]).encode()}, True)

    return await engine.commit(METRIC_COUNTS, UPKEEP[0], change_row(UPKEEP[1], take))


def _row_of(key: IntervalKey) -> str:
    series = key.series
    return f"{series.service};{series.period};{_PLACES[series.is_secondary]};{key.partition}"


def _key_of(key: Key) -> IntervalKey:
    """Return the interval of a row. Raises `ValueError`: it is malformed."""
    account, row = key
    service, period, place, partition = row.split(";")
    if period not in get_args(Period) or place not in _PLACES:
        raise ValueError(f"no interval of metrics is called {row}")
    return IntervalKey(Series(account, service, cast("Period", period), place == _PLACES[1]), start_of(partition))


def _decode(value: bytes | None) -> _RowJson:
    return {"parts": {}} if value is None else cast("_RowJson", json.loads(value))


def _encode(row: _RowJson) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def _counts(row: _RowJson) -> IntervalCounts:
    total: Operations = {}
    for part in row["parts"].values():
        add_all(total, part)
    return IntervalCounts(total, row.get("published", -1))


def _verify(key: Key, value: bytes) -> None:
    if key == UPKEEP:
        _, _ = json.loads(value)
        return
    _key_of(key)
    row = _decode(value)
    for part in row["parts"].values():
        if any(len(counts) != COUNTS or min(counts) < 0 for counts in part.values()):
            raise ValueError("counts of metrics that are none")


METRIC_COUNTS_SPACE = Space(
    number=METRIC_COUNTS,
    owner="",
    title="the counts of metrics",
    copied=True,
    verify=_verify,
)
