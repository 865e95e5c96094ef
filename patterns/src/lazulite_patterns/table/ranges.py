"""A table read by ranges of PartitionKeys, several at the same time, and gone on with after a crash.

The ranges begin at PartitionKeys that are there. They are found by bisection: the first key from the middle of a range
on, in the order of UTF-16 units, divides it. If there is none, the range ends before the middle.
"""

import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import NamedTuple

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import Gather
from lazulite_patterns.effects.tables import Continuation, Found, Stored
from lazulite_patterns.filters import Compare, Filter
from lazulite_patterns.keys.characters import utf16_order
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.table.plan import Plan, Reads
from lazulite_patterns.table.reading import fetch, first

_TOP = 0xFFFF
_ASCII_TOP = 0x7F
_PROBES_FIRST = 32
_PROBES_EACH = 8
"""Requests to find where ranges begin: 32, and 8 for each range."""


class Range(NamedTuple):
    """PartitionKeys from one on and before another, and where its next page is."""

    lower: str | None = None
    upper: str | None = None
    continuation: Continuation | None = None


class Round(NamedTuple):
    """Entities of one page of several ranges, and the ranges that are still to be read."""

    entities: list[Stored]
    left: tuple[Range, ...]


@dataclass(frozen=True)
class Ranges:
    """Reads a table by ranges.

    Attributes:
        table: its name.
        policy: of each request.
        hidden: conditions that rows which are no entities do not fulfil.
        workers: ranges that are read at the same time.
    """

    table: str
    policy: Policy
    hidden: tuple[Filter, ...] = ()
    workers: int = 8

    def divided(self, count: int) -> Protocol[tuple[Range, ...]]:
        """Return at most this many ranges, each of which has an entity, of alike shares of the keys' space."""
        begin = yield from self._first_from(None)
        if begin is None:
            return ()
        found = [begin]
        bisecting = deque([(begin, chr(_ASCII_TOP) if begin < chr(_ASCII_TOP) else chr(_TOP))])
        if begin < chr(_ASCII_TOP) and (beyond := (yield from self._first_from(chr(_ASCII_TOP)))) is not None:
            found.append(beyond)
            bisecting.append((beyond, chr(_TOP)))
        probes = _PROBES_FIRST + _PROBES_EACH * count
        while len(found) < count and bisecting and probes:
            lower, upper = bisecting.popleft()
            middle = _middle(lower, upper)
            if middle is None or not utf16_order(lower) < utf16_order(middle) < utf16_order(upper):
                continue
            probes -= 1
            key = yield from self._first_from(middle)
            if key is None or utf16_order(key) >= utf16_order(upper):
                bisecting.appendleft((lower, middle))
            else:
                found.append(key)
                bisecting += [(lower, middle), (key, upper)]
        return tuple(between(sorted(found[:count], key=utf16_order)))

    def round(self, ranges: Sequence[Range]) -> Protocol[Round]:
        """Read one page of each of the first ranges."""
        now = ranges[: self.workers]
        pages: list[Found] = yield from perform(Gather(tuple(map(self._page, now)), self.workers))
        entities = [each for page in pages for each in page.entities]
        left = [
            one._replace(continuation=page.continuation)
            for one, page in zip(now, pages, strict=True)
            if page.continuation is not None
        ]
        return Round(entities, (*left, *ranges[self.workers :]))

    def text(self, ranges: Sequence[Range]) -> str:
        """Return what is still to be read, for a checkpoint."""
        return json.dumps({"table": self.table, "ranges": ranges})

    def of(self, text: str) -> tuple[Range, ...]:
        """Return what is still to be read by a checkpoint.

        Raises:
            ValueError: it is the checkpoint of another table.
        """
        kept = json.loads(text)
        if kept.get("table") != self.table:
            raise ValueError(f"this is the checkpoint of {kept.get('table')}, not of {self.table}")
        return tuple(
            Range(lower, upper, continuation and (continuation[0], continuation[1]))
            for lower, upper, continuation in kept["ranges"]
        )

    def _page(self, one: Range) -> Protocol[Found]:
        conditions: list[Filter] = [] if one.lower is None else [Compare("PartitionKey", "ge", one.lower)]
        conditions += [] if one.upper is None else [Compare("PartitionKey", "lt", one.upper)]
        return fetch(self.table, self._plan(conditions), self.policy, None, one.continuation)

    def _first_from(self, lower: str | None) -> Protocol[str | None]:
        conditions: list[Filter] = [] if lower is None else [Compare("PartitionKey", "ge", lower)]
        query = self._plan(conditions).selecting(("PartitionKey", "RowKey"))
        found = yield from first(self.table, query, self.policy, 1)
        return found.entities[0].key.partition_key if found.entities else None

    def _plan(self, conditions: list[Filter]) -> Plan:
        both = [*conditions, *self.hidden]
        return Plan(reduce(and_, both) if both else None, Reads.PARTITION_RANGE)


def between(keys: Sequence[str]) -> Iterator[Range]:
    """Return the ranges that begin at sorted keys; the first and the last one have no end outside."""
    inner = keys[1:]
    return (Range(lower, upper) for lower, upper in zip((None, *inner), (*inner, None), strict=True))


def _middle(lower: str, upper: str) -> str | None:
    """Return a text between two in the order of UTF-16 units; None if the search is fine enough."""
    low, high = _units(lower), _units(upper)
    at = next((n for n in range(len(high)) if n >= len(low) or low[n] != high[n]), None)
    if at is None:
        return None
    begin = low[at] if at < len(low) else 0x1F
    if high[at] - begin >= 2:
        return _text([*high[:at], (begin + high[at]) // 2])
    following = low[at + 1] if at + 1 < len(low) else 0x1F
    top = _ASCII_TOP if following < _ASCII_TOP else _TOP
    if top - following < 2 or at >= len(low):
        return None
    return _text([*low[: at + 1], (following + top) // 2])


def _units(text: str) -> list[int]:
    octets = utf16_order(text)
    return [octets[n] << 8 | octets[n + 1] for n in range(0, len(octets), 2)]


def _text(units: list[int]) -> str:
    """Return a text of units, of which the last one may be half of a character: then the greatest one before."""
    if 0xD800 <= units[-1] <= 0xDFFF:
        units = [*units[:-1], 0xD7FF]
    return b"".join(each.to_bytes(2, "big") for each in units).decode("utf-16-be", "replace")
