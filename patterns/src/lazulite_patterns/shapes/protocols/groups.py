"""Writes that may be too many for one transaction."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation
from lazulite_patterns.outcomes.errors import Absent, Conflict
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write

T = TypeVar("T")
OPERATIONS_MAX = 100
"""The most operations of a transaction."""


def grouped(items: Sequence[T], count: int) -> Iterator[Sequence[T]]:
    """Yield groups of so many items, the last one of what is left."""
    for start in range(0, len(items), count):
        yield items[start : start + count]


def removal(key: EntityKey, etag: str | None = None) -> Planned:
    """Return the delete of a row."""
    return Planned(Operation(Kind.DELETE, key, etag=etag))


def remove(table: str, keys: Sequence[EntityKey], policy: Policy) -> Protocol[None]:
    """Delete rows of one partition, some of which may be absent."""
    for group in grouped(keys, OPERATIONS_MAX):
        try:
            yield from write(table, [removal(each) for each in group], policy)
        except Absent:
            yield from _one_by_one(table, group, policy)


def _one_by_one(table: str, keys: Sequence[EntityKey], policy: Policy) -> Protocol[None]:
    for each in keys:
        try:
            yield from write(table, [removal(each)], policy)
        except Absent:
            continue


def again(
    attempt: Callable[[], Protocol[bool]], attempts: int, final: tuple[type[Conflict], ...] = ()
) -> Protocol[bool]:
    """Run an attempt again while another writer is faster, and return what it returns.

    Args:
        attempt: makes one attempt.
        attempts: times to run it, at most.
        final: conflicts after which it is not run again.

    Raises:
        Conflict: another writer was faster, each time.
    """
    for number in range(attempts):
        try:
            return (yield from attempt())
        except Conflict as conflict:
            if number == attempts - 1 or isinstance(conflict, final):
                raise
    raise ValueError("attempts is at least 1")
