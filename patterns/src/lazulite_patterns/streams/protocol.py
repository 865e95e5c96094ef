"""Append to a stream: head, events, ids and projections in one transaction.

1. Read the head. Its ETag is the base, its version is the last one.
2. In one transaction: replace the head If-Match the base, or insert it; insert the events and the rows of their ids;
   write the projections.

The ids decide what the answer does not tell. A row `SS-UID-…` is there exactly if its event is, at any later time. So
an append whose answer is lost, or which a program repeats after a crash with the same ids, returns the same version.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import Continuation, EntityKey, Kind, Operation, Page, Read, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.errors import PatternsError
from lazulite_patterns.filters import in_partition, in_range
from lazulite_patterns.outcomes.errors import Conflict, OutcomeUnknown, Unavailable
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.streams.layout import (
    ID,
    Event,
    Recorded,
    event_key,
    events_from,
    head_key,
    id_key,
    recorded,
    version_of,
    version_property,
)

OPERATIONS_MAX = 100
_TOP_MAX = 1000
_TOO_LARGE = 413
Projections = Callable[[int], Sequence[Planned]]
"""The writes of an append beside its events, from the version of its first event. It may be called several times."""


class WrongVersion(Conflict):
    """The stream has another version than the append expects. `version` is the one that it has."""

    def __init__(self, message: str, version: int) -> None:
        """Take what was found."""
        super().__init__(message)
        self.version = version


class DuplicateEvent(Conflict):
    """An event with this id is in the stream, but not all of the append are, one after the other."""


class AppendTooLarge(PatternsError, ValueError):  # noqa: N818 - it says what was counted
    """The events and projections do not fit into one transaction. Nothing was written."""


class _LostRace(Exception):  # noqa: N818 - it is an outcome
    """Another writer appended first."""

    def __init__(self, conflict: Conflict) -> None:
        """Take the conflict."""
        super().__init__(str(conflict))
        self.conflict = conflict


class Slice(NamedTuple):
    """Events in order, and where the next page begins; None after the last one."""

    events: tuple[Recorded, ...]
    continuation: Continuation | None


@dataclass(frozen=True)
class StreamProtocol:
    """Makes the protocols of one stream.

    Attributes:
        table: of the stream.
        name: of the stream: its PartitionKey.
        policy: of each request.
    """

    table: str
    name: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen

    def __post_init__(self) -> None:
        """Check the name.

        Raises:
            EntityValueError: no PartitionKey can be the name.
        """
        limits.check_key("stream", head_key(self.name))

    def version(self) -> Protocol[int]:
        """Return the version of the last event; 0 for a stream that is absent."""
        return _version((yield from self._read(head_key(self.name))))

    def append(
        self,
        events: Sequence[Event],
        expected: int | None = None,
        projections: Projections | None = None,
        attempts: int = 8,
    ) -> Protocol[int]:
        """Append events, and return the version of the last one.

        Args:
            events: at least one.
            expected: the version that the stream must have; None for any.
            projections: further writes in the same partition.
            attempts: times to read and write, at most.

        Raises:
            WrongVersion: the stream has another version than the expected one.
            DuplicateEvent: some of the ids are in the stream.
            AppendTooLarge: they do not fit into one transaction.
            Conflict: a row of the projections is not as expected, or other writers were faster each time.
            OutcomeUnknown: the service did not answer before the deadline.
            EntityValueError: the service would reject an id or a property.
        """
        if not events:
            raise ValueError("an append has at least one event")
        named = yield from _named(events)
        if len({each.id for each in named}) < len(named):
            raise ValueError("two events have the same id")
        for each in named:
            limits.check_key(f"event {each.id}", id_key(self.name, str(each.id)))
        for number in range(attempts):
            try:
                return (yield from self._attempt(named, expected, projections))
            except _LostRace as faster:
                if number == attempts - 1:
                    raise faster.conflict from faster
        raise ValueError("attempts is at least 1")

    def _attempt(self, events: list[Event], expected: int | None, projections: Projections | None) -> Protocol[int]:
        """Append once. Raises `_LostRace` if another writer was faster."""
        head = yield from self._read(head_key(self.name))
        found = _version(head)
        if expected not in {None, found}:
            return (yield from self._repeated(events, WrongVersion(f"{self.name} has version {found}", found)))
        further = [] if projections is None else list(projections(found + 1))
        last = found + len(events)
        planned = [_head(self.name, head, last), *_rows(self.name, head, events, found + 1), *further]
        self._check(planned)
        try:
            yield from write(self.table, planned, self.policy)
        except OutcomeUnknown as unknown:
            return (yield from self._repeated(events, unknown))
        except Conflict as conflict:
            index = 0 if conflict.index is None else conflict.index
            if index >= len(planned) - len(further):
                raise
            if planned[index].operation.key.row_key.startswith(ID):
                return (yield from self._repeated(events, DuplicateEvent(str(conflict), index)))
            raise _LostRace(conflict) from conflict
        except Rejected as rejected:
            if rejected.status == _TOO_LARGE:
                raise AppendTooLarge(str(rejected)) from rejected
            raise
        return last

    def find(self, event_id: str) -> Protocol[int | None]:
        """Return the version of the event with an id; None if there is none."""
        key = id_key(self.name, event_id)
        limits.check_key(f"event {event_id}", key)
        row = yield from self._read(key)
        return None if row is None else version_of(row)

    def page(self, first: int, top: int | None, continuation: Continuation | None) -> Protocol[Slice]:
        """Read a page of events, from a version on."""
        condition = in_partition(self.name) & in_range("RowKey", events_from(first))
        effect = Page(self.table, condition, top=top, continuation=continuation)
        found = yield from read(effect, (yield from begin(self.policy)))
        return Slice(tuple(map(recorded, found.entities)), found.continuation)

    def latest(self, count: int, before: int | None) -> Protocol[list[Recorded]]:
        """Read the last events, or the last ones before a version, newest first."""
        last = yield from self.version()
        if before is not None:
            last = min(last, before - 1)
        first = max(1, last - count + 1)
        found: list[Recorded] = []
        continuation: Continuation | None = None
        while (left := last - first + 1 - len(found)) > 0:
            page = yield from self.page(first, min(left, _TOP_MAX), continuation)
            found += page.events
            if (continuation := page.continuation) is None:
                break
        # Where another program damaged the stream, there are events after the last one in place of the absent ones.
        return [each for each in reversed(found) if each.version <= last]

    def _repeated(self, events: Sequence[Event], otherwise: Exception) -> Protocol[int]:
        """Return the version of the last event if all are in the stream, one after the other; else raise an error."""
        versions: list[int] = []
        for each in events:
            try:
                found = yield from self.find(str(each.id))
            except Unavailable as unavailable:
                raise otherwise from unavailable
            if found is None or (versions and found != versions[-1] + 1):
                raise otherwise
            versions.append(found)
        return versions[-1]

    def _read(self, key: EntityKey) -> Protocol[Stored | None]:
        return (yield from read(Read(self.table, key), (yield from begin(self.policy))))

    def _check(self, planned: Sequence[Planned]) -> None:
        """Reject what the service would reject.

        Raises:
            AppendTooLarge: there are more than a hundred rows.
            EntityValueError: a row exceeds a limit.
            ValueError: a projection is in another partition, or writes a row of the stream.
        """
        if len(planned) > OPERATIONS_MAX:
            raise AppendTooLarge(f"{len(planned)} rows, a transaction has {OPERATIONS_MAX} at most")
        for each in planned:
            if each.operation.key.partition_key != self.name:
                raise ValueError(f"{each.operation.key} is not in the partition of the stream {self.name}")
            if each.operation.kind is not Kind.DELETE:
                keys = {"PartitionKey": self.name, "RowKey": each.operation.key.row_key}
                limits.check(f"{self.name}/{each.operation.key.row_key}", {**each.operation.properties, **keys})
        if len({each.operation.key for each in planned}) < len(planned):
            raise ValueError("a projection writes a row of the stream, or a row twice")


def _version(head: Stored | None) -> int:
    return 0 if head is None else version_of(head)


def _named(events: Sequence[Event]) -> Protocol[list[Event]]:
    named = []
    for each in events:
        named.append(each if each.id is not None else replace(each, id=(yield from perform(NewId()))))
    return named


def _head(stream: str, head: Stored | None, version: int) -> Planned:
    properties = {"Version": version_property(version, head)}
    if head is None:
        return Planned(Operation(Kind.INSERT, head_key(stream), properties))
    kept = {**head.properties, **properties}
    return Planned(Operation(Kind.REPLACE, head.key, kept, head.etag), WriteIds.of(head.properties))


def _rows(stream: str, head: Stored | None, events: Sequence[Event], first: int) -> list[Planned]:
    rows = []
    for number, each in enumerate(events, first):
        version = version_property(number, head)
        properties = {**each.properties, "Id": each.id, "Version": version}
        rows.append(Planned(Operation(Kind.INSERT, event_key(stream, number), properties)))
        rows.append(Planned(Operation(Kind.INSERT, id_key(stream, str(each.id)), {"Version": version})))
    return rows
