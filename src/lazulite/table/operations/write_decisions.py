"""What each kind of write makes of its entity: six kinds, and what they share.

Invariants: a decision depends on the entities it names and on nothing else, so it can be taken anew as often as an
engine likes; what it tells in advance (`engine.precondition`) is what it would do. Source: reference §9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.auth.grant import Requirement
from lazulite.engine.precondition import Expect, Foreseeing, Foreseen
from lazulite.protocol.errors import ServiceError
from lazulite.table.etag_condition import ANY, check_condition, ticks_meant
from lazulite.table.model.entity import check_merged
from lazulite.table.model.row import Property, assemble, decode_row, encode_properties, in_order, ticks_of
from lazulite.table.payload.negotiation import Preference


class Write(NamedTuple):
    """What one kind of write needs and does."""

    operation: str
    """Its name in logs."""
    requirement: Requirement
    must_exist: bool | None
    """True: a missing entity is a 404. False: an existing one is a 409. None: either will do."""
    merges: bool = False
    deletes: bool = False


def _needs(letters: str) -> Requirement:
    return Requirement("o", (letters,), letters)


INSERT = Write("InsertEntity", _needs("a"), must_exist=False)
REPLACE = Write("UpdateEntity", _needs("u"), must_exist=True)
MERGE = Write("MergeEntity", _needs("u"), must_exist=True, merges=True)
INSERT_OR_REPLACE = Write("InsertOrReplaceEntity", _needs("au"), must_exist=None)
INSERT_OR_MERGE = Write("InsertOrMergeEntity", _needs("au"), must_exist=None, merges=True)
DELETE = Write("DeleteEntity", _needs("d"), must_exist=True, deletes=True)
WRITES = (INSERT, REPLACE, MERGE, INSERT_OR_REPLACE, INSERT_OR_MERGE, DELETE)


@dataclass(slots=True)
class EntityWrite:
    """A write ready to be applied. `result` is the row it left, if it was applied in this process."""

    kind: Write
    partition_key: str
    row_key: str
    condition: str | None
    properties: Mapping[str, Property]
    keys: str
    encoded: str
    preference: Preference | None = None
    """What an insert answers with."""
    result: bytes | None = None

    def apply(self, current: bytes | None, stamp: int) -> bytes | None:
        """Return what the row becomes (None: deleted), given what it is and the commit's stamp.

        Raises:
            ServiceError: `ResourceNotFound`, `EntityAlreadyExists`, `UpdateConditionNotSatisfied`, or a limit that the
                merged entity breaks. Existence is judged before the condition, as the service does.
        """
        kind = self.kind
        if current is None:
            if kind.must_exist:
                raise ServiceError("ResourceNotFound")
        elif kind.must_exist is False:
            raise ServiceError("EntityAlreadyExists")
        else:
            check_condition(self.condition, ticks_of(current))
        if kind.deletes:
            self.result = None
            return None
        self.result = assemble(stamp, self.keys, self._encoded_over(current))
        return self.result

    def _encoded_over(self, current: bytes | None) -> str:
        """Return the entity's members as they become.

        Raises:
            ServiceError: a limit that the merged entity breaks.
        """
        if current is None or not self.kind.merges:
            return self.encoded
        merged = in_order({**decode_row(current).properties, **self.properties})
        check_merged(self.partition_key, self.row_key, merged)
        return encode_properties(merged)

    def foresee(self) -> Foreseen | None:
        """Return what the entity should be for this write to need nothing of it; None if it must be seen."""
        kind = self.kind
        if kind.merges:
            return None
        if not kind.must_exist:
            return Foreseen(Expect.ANYTHING if kind.must_exist is None else Expect.ABSENT)
        if self.condition is None or self.condition == ANY:
            return Foreseen(Expect.PRESENT, kind.deletes)
        stamp = ticks_meant(self.condition)
        return None if stamp is None else Foreseen(Expect.PRESENT, kind.deletes, stamp)

    def seen(self, current: bytes | None) -> "Merged | None":
        """Return what a merge comes to, having seen the entity; None if it would be refused, or is no merge."""
        if not self.kind.merges or (current is None and self.kind.must_exist):
            return None
        try:
            stamp = None if current is None else ticks_of(current)
            if stamp is not None:
                check_condition(self.condition, stamp)
            encoded = self._encoded_over(current)
        except ServiceError:
            return None
        expects = Expect.ABSENT if current is None else Expect.PRESENT
        return Merged(Foreseen(expects, stamp=stamp), self.keys, encoded)

    def blind(self, stamp: int) -> bytes | None:
        """Return what the entity becomes if it is as foreseen, at the commit's stamp."""
        self.result = None if self.kind.deletes else assemble(stamp, self.keys, self.encoded)
        return self.result


class WriteRefusedError(Exception):
    """One write of several is refused; `index` says which."""

    def __init__(self, index: int, error: ServiceError) -> None:
        super().__init__(index)
        self.index = index
        self.error = error


@dataclass(frozen=True, slots=True)
class Merged(Foreseeing):
    """A merge that has seen its entity, or that there is none."""

    foreseen: Foreseen
    keys: str
    encoded: str

    def foresee(self) -> Foreseen:
        """See `Foreseeing`."""
        return self.foreseen

    def value(self, stamp: int) -> bytes:
        """See `Foreseeing`."""
        return assemble(stamp, self.keys, self.encoded)


@dataclass(frozen=True, slots=True)
class ApplyOne(Foreseeing):
    """A `Decide`: apply one write to its row."""

    write: EntityWrite

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        """See `Decide`. Raises what `EntityWrite.apply` raises."""
        return {self.write.row_key: self.write.apply(current[0], stamp)}

    def foresee(self) -> Foreseen | None:
        """See `Foreseeing`."""
        return self.write.foresee()

    def seen(self, current: bytes | None) -> Merged | None:
        """See `Foreseeing`."""
        return self.write.seen(current)

    def value(self, stamp: int) -> bytes | None:
        """See `Foreseeing`."""
        return self.write.blind(stamp)


@dataclass(frozen=True, slots=True)
class ApplyAll:
    """A `Decide`: apply writes, each to its row, or refuse all of them."""

    writes: Sequence[EntityWrite]

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        """See `Decide`.

        Raises:
            WriteRefusedError: one of them is refused, the first in their order.
        """
        changes: dict[str, bytes | None] = {}
        for index, (write, value) in enumerate(zip(self.writes, current, strict=True)):
            try:
                changes[write.row_key] = write.apply(value, stamp)
            except ServiceError as error:
                raise WriteRefusedError(index, error) from None
        return changes
