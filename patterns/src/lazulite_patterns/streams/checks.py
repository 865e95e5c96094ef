"""What damage by other programs leaves of streams: gaps, events after the head, ids without events."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lazulite_patterns.auditing.finding import Finding, correction, deletion
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.outcomes.grace import age_seconds
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.streams.layout import EVENT, HEAD, ID, event_key, head_key, id_key, version_of

UNREADABLE = "row of a stream that cannot be read"
NO_LAST = "stream without its last event"
AFTER_HEAD = "event after the last version of its stream"
GAP = "gap before an event"
NO_ID = "event whose id has no row"
NO_EVENT = "id of an event that is absent"


@dataclass(frozen=True)
class StreamCheck:
    """The versions of a stream have no gap, and each id has its event."""

    table: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return what is wrong with a row of a stream. Every append is one transaction: only damage is found."""
        key = row.key.row_key
        check = self._head if key == HEAD else self._event if key.startswith(EVENT) else self._id
        if not key.startswith((HEAD, EVENT, ID)):
            return []
        try:
            found = yield from check(row, version_of(row), now)
        except EntityFormatError as error:
            return [Finding(UNREADABLE, table, row.key, age_seconds(row, now), detail=str(error))]
        return found

    def _head(self, row: Stored, version: int, now: datetime) -> Protocol[list[Finding]]:
        if version == 0 or (yield from self._read(event_key(row.key.partition_key, version))) is not None:
            return []
        return [Finding(NO_LAST, self.table, row.key, age_seconds(row, now), detail=f"version {version}")]

    def _event(self, row: Stored, version: int, now: datetime) -> Protocol[list[Finding]]:
        stream, found = row.key.partition_key, []
        age = age_seconds(row, now)
        head = yield from self._read(head_key(stream))
        if head is None or version_of(head) < version:
            found.append(Finding(AFTER_HEAD, self.table, row.key, age))
        if version > 1 and (yield from self._read(event_key(stream, version - 1))) is None:
            found.append(Finding(GAP, self.table, row.key, age, detail=f"version {version - 1}"))
        event_id = row.properties.get("Id")
        if event_id is not None:
            if not isinstance(event_id, str):
                raise EntityFormatError(f"{row.key.row_key}.Id: {event_id!r} is no text")
            key = id_key(stream, event_id)
            limits.check_key("Stream", key)
            named = yield from self._read(key)
            if named is None:
                write = (self.table, Planned(Operation(Kind.INSERT, key, {"Version": row.properties["Version"]})))
                found.append(correction(NO_ID, self.table, row, now, "insert the row of the id", write))
        return found

    def _id(self, row: Stored, version: int, now: datetime) -> Protocol[list[Finding]]:
        event = yield from self._read(event_key(row.key.partition_key, version))
        if event is not None and event.properties.get("Id") == row.key.row_key.removeprefix(ID):
            return []
        return [deletion(NO_EVENT, self.table, row, now)]

    def _read(self, key: EntityKey) -> Protocol[Stored | None]:
        return (yield from read(Read(self.table, key), (yield from begin(self.policy))))
