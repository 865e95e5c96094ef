"""What a move writes beside the copy: the mark of the source, and the inbox row in the target's partition."""

import json
from typing import NamedTuple

from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.outcomes.ring import MOVING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.table.inbox import INBOX

_MOVE, _MARK, _COPIED, _ROW = "Move", "Mark", "Copied", "Row"
_PARTITION, _SOURCE_ROW = "SourcePartition", "SourceRow"


class PendingMove(NamedTuple):
    """What the source has while it is moved."""

    move: str
    """The name of the task."""
    id: str
    home: str
    """The partition of the target in which the copy is, or will be."""

    @classmethod
    def of(cls, row: Stored | None) -> "PendingMove | None":
        """Return the mark of a row; None if it has none."""
        text = None if row is None else row.properties.get(MOVING)
        try:
            move, mark, home = json.loads(str(text))
        except (TypeError, ValueError):
            return None
        return cls(str(move), str(mark), str(home))

    @property
    def text(self) -> str:
        """The value of the property."""
        return json.dumps(self, ensure_ascii=False)


class Inbox(NamedTuple):
    """An inbox row, as it was read or written."""

    row: Stored

    @classmethod
    def new(cls, key: EntityKey, move: str, source: EntityKey) -> "Inbox":
        """Return the row that says nothing of a copy yet, without an ETag."""
        named = {TYPE: INBOX, _MOVE: move, _PARTITION: source.partition_key, _SOURCE_ROW: source.row_key}
        return cls(Stored({"PartitionKey": key.partition_key, "RowKey": key.row_key, **named}, ""))

    def saying(self, mark: PendingMove, copied: str, row_key: str) -> "Inbox":
        """Return the row that says which version of the source was copied, and to which RowKey."""
        said = {_MARK: mark.id, _COPIED: copied, _ROW: row_key}
        return Inbox(self.row._replace(properties={**self.row.properties, **said}))

    @property
    def move(self) -> str:
        """The name of the task."""
        return str(self.row.properties.get(_MOVE))

    def has(self, mark: PendingMove) -> bool:
        """Tell whether a copy was made for a mark."""
        return self.row.properties.get(_MARK) == mark.id

    @property
    def copied(self) -> str:
        """The ETag of the source that was copied."""
        return str(self.row.properties.get(_COPIED, ""))

    @property
    def place(self) -> EntityKey:
        """The keys of the copy."""
        return EntityKey(self.row.key.partition_key, str(self.row.properties.get(_ROW, "")))

    @property
    def source(self) -> EntityKey:
        """The keys of the source."""
        return EntityKey(str(self.row.properties.get(_PARTITION)), str(self.row.properties.get(_SOURCE_ROW)))

    def made(self, copy: Stored | None) -> bool:
        """Tell whether the copy is still the one that was made: one transaction wrote both rows."""
        ids = WriteIds.of(self.row.properties).ids
        return copy is not None and WriteIds.of(copy.properties).ids[-1:] == ids[-1:] != ()

    def planned(self, kind: Kind) -> Planned:
        """Return a write of the row, If-Match its ETag."""
        operation = Operation(kind, self.row.key, self.row.properties, self.row.etag or None)
        return Planned(operation, WriteIds.of(self.row.properties))
