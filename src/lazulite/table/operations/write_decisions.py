"""The six kinds of write, and the row that each makes of the stored one.

Invariants: a decision depends only on the rows that it names, so an engine may repeat it. It is the same for each row
that meets the stated precondition. A decision merges no more than `MERGED_MAX` in one step of the event loop: larger
merges are done in steps beforehand (`engine.commit_needs`), and hold for the row that they were done on.
Source: reference §9.

Entities are merged as text: the members of a row with those of a write laid over them (their form: row.py). Most merges
need no decoded property: names that stand for themselves are sorted as they are, and a result that is small and has few
members is within every limit. Any other merge is left to the decoded properties.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from lazulite.engine.commit import (
    ABSENT,
    ANYTHING,
    Changes,
    Commit,
    CommitProcedure,
    CompanionWrite,
    ConditionalWrite,
    Decision,
    Expect,
    Expected,
    Needs,
    Plain,
    Precondition,
    Values,
)
from lazulite.engine.remote.codec import Encoding
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps, finish
from lazulite.service.rejection import SERVICE_ERROR
from lazulite.table.etag_condition import ANY, check_condition, ticks_meant
from lazulite.table.indexes.definition import NO_INDEXES, Indexes
from lazulite.table.indexes.entries import maintenance_of
from lazulite.table.model.entity import PROPERTIES_MAX, SURELY_SMALL, check_merged, is_surely_legal
from lazulite.table.model.row import (
    LARGE_BYTES,
    assemble,
    complete,
    custom_members,
    decode_members,
    decode_row,
    encode_properties,
    example_at,
    in_order,
    split_custom,
    ticks_of,
)
from lazulite.table.payload.formats import Preference

_Members = dict[str, str]
"""Members by name, each with its annotation, without the comma and the quote that open it."""

MERGED_MAX = 1 << 20
"""The cost of the merges in one step, 2 to 3 ms: the bytes of the rows, and `_PROPERTY_COST` for each property."""
_PROPERTY_COST = 256


def merge_members(current: bytes, encoded: str) -> str | None:
    """Return the members of an entity after a merge, by name. None if that takes the decoded properties.

    Args:
        current: the row's value.
        encoded: the members of the merge, each after a comma.
    """
    if 2 * (len(current) + len(encoded)) > SURELY_SMALL:
        return None
    merged = _by_name(custom_members(current))
    merged.update(_by_name(split_custom(encoded)))
    names = sorted(merged)
    if len(names) > PROPERTIES_MAX or "\\" in "".join(names):
        return None
    return "".join([f',"{merged[name]}' for name in names])


def _by_name(members: Iterable[str]) -> _Members:
    found: _Members = {}
    annotation = ""
    for member in members:
        name = member[: member.index('"')]
        if "@" in name:
            annotation = f'{member},"'
        else:
            found[name] = annotation + member
            annotation = ""
    return found


class Write(NamedTuple):
    """What one kind of write does."""

    must_exist: bool | None
    """True: a missing entity is a 404. False: an existing one is a 409. None: either will do."""
    merges: bool = False
    deletes: bool = False


INSERT = Write(must_exist=False)
REPLACE = Write(must_exist=True)
MERGE = Write(must_exist=True, merges=True)
INSERT_OR_REPLACE = Write(must_exist=None)
INSERT_OR_MERGE = Write(must_exist=None, merges=True)
DELETE = Write(must_exist=True, deletes=True)
NAMES = {
    INSERT: "InsertEntity",
    REPLACE: "UpdateEntity",
    MERGE: "MergeEntity",
    INSERT_OR_REPLACE: "InsertOrReplaceEntity",
    INSERT_OR_MERGE: "InsertOrMergeEntity",
    DELETE: "DeleteEntity",
}
"""The name of each kind's operation."""
WRITES = (INSERT, REPLACE, MERGE, INSERT_OR_REPLACE, INSERT_OR_MERGE, DELETE)


_EXPECTED: Mapping[Expect, Expected] = {Expect.ABSENT: None, Expect.ANYTHING: True}


class Premerged(NamedTuple):
    """The outcome of a merge with one version of its row, which `ticks` names: the entity's members, or a rejection."""

    ticks: int
    members: str | bytes
    rejection: ServiceError | None = None


@dataclass(slots=True)
class EntityWrite:
    """A write ready to be applied. `result` is the row it left, if it was applied in this process."""

    kind: Write
    partition_key: str
    row_key: str
    condition: str | None
    keys: str
    encoded: str
    """The members of its body; those of a merge by name."""
    preference: Preference | None = None
    """The response preference of an insert."""
    result: bytes | None = None
    premerged: Premerged | None = None
    example: bytes | None = None
    """The row of its precondition."""
    indexes: Indexes = NO_INDEXES
    """Those of the table, whose entries change with the row. They say, too, whether a row has expired."""

    @property
    def echoes(self) -> bool:
        """Whether the response has the entity."""
        return self.kind is INSERT and self.preference is not Preference.NO_CONTENT

    def apply(self, current: bytes | None, timestamp: int) -> bytes | None:
        """Return what the row becomes (None: deleted), given what it is and the commit's timestamp.

        Raises:
            ServiceError: `ResourceNotFound`, `EntityAlreadyExists`, `UpdateConditionNotSatisfied`, or a limit that the
                merged entity breaks. Existence is judged before the condition, as the service does.
        """
        kind = self.kind
        if current is not None or kind.must_exist:
            self._check(current)
        if kind.deletes:
            self.result = None
            return None
        self.result = assemble(timestamp, self.keys, self._encoded_over(current) if kind.merges else self.encoded)
        return self.result

    def _check(self, current: bytes | None) -> None:
        """Reject the write if the row does not meet its conditions. Raises what `apply` raises."""
        kind = self.kind
        if current is None:
            if kind.must_exist:
                raise ServiceError("ResourceNotFound")
        elif kind.must_exist is False:
            raise ServiceError("EntityAlreadyExists")
        else:
            check_condition(self.condition, ticks_of(current))

    def _encoded_over(self, current: bytes | None) -> str | bytes:
        """Return the entity's members as they become.

        Raises:
            ServiceError: a limit that the merged entity breaks.
        """
        if current is None or not self.kind.merges:
            return self.encoded
        premerged = self.premerged
        if premerged is None or premerged.ticks != ticks_of(current):
            members = merge_members(current, self.encoded)
            return finish(self._merge_decoded(current)) if members is None else members
        if premerged.rejection is not None:
            raise premerged.rejection
        if current is not self.example:
            self.premerged = None  # Its memory goes to the row: a batch may hold a hundred of them.
        return premerged.members

    def merge_cost(self, current: bytes | None) -> int:
        """Return what applying this write to a row would merge, in the units of `MERGED_MAX`."""
        if current is None or not self.kind.merges:
            return 0
        if self.premerged is not None and self.premerged.ticks == ticks_of(current):
            return 0
        cost = len(current) + len(self.encoded)
        if cost > LARGE_BYTES:
            return cost + _PROPERTY_COST * PROPERTIES_MAX
        return cost + _PROPERTY_COST * (current.count(b',"') + self.encoded.count(',"'))

    def premerge(self, current: bytes | None) -> Steps[None]:
        """Merge with a row in steps; `apply` uses the outcome if the row is still that."""
        if not self.merge_cost(current):
            return
        assert current is not None, "nothing to merge with costs nothing"
        members, rejection = b"", None
        try:
            self._check(current)
            members = (yield from self._merge_decoded(current)).encode("ascii")
        except ServiceError as error:
            rejection = error
        self.premerged = Premerged(ticks_of(current), members, rejection)
        yield

    def _merge_decoded(self, current: bytes) -> Steps[str]:
        """Return the members of the entity after a merge with a row, in steps.

        Raises:
            ServiceError: a limit that the merged entity breaks.
        """
        properties = decode_row(current).properties
        yield
        merged = in_order({**properties, **decode_members(self.encoded)})
        yield
        if not is_surely_legal(merged):
            yield from check_merged(self.partition_key, self.row_key, merged)
        return encode_properties(merged)

    def precondition(self) -> Precondition | None:
        """Return the precondition under which the write does not depend on the row's value; None if it does."""
        kind, timestamp = self.kind, None
        if kind is not INSERT and self.indexes.need_rows:
            return None
        if kind.merges:
            premerged = self.premerged
            if premerged is None or premerged.rejection is not None:
                return None
            timestamp = premerged.ticks
        elif not kind.must_exist:
            return ANYTHING if kind.must_exist is None else ABSENT
        elif self.condition is not None and self.condition != ANY:
            timestamp = ticks_meant(self.condition)
            if timestamp is None:
                return None
        self.example = example_at(timestamp or 0)
        return Precondition(Expect.PRESENT, timestamp, example=self.example, deletes=kind.deletes)

    def precondition_given(self, current: bytes | None) -> Precondition | None:
        """Return the precondition of a merge with a row; None if it takes steps, is rejected, or is none."""
        if (
            self.indexes.need_rows
            or not self.kind.merges
            or (current is None and self.kind.must_exist)
            or self.merge_cost(current) > MERGED_MAX
        ):
            return None
        if current is None:
            return ABSENT
        ticks = ticks_of(current)
        try:
            check_condition(self.condition, ticks)
            self.premerged = Premerged(ticks, self._encoded_over(current))
        except ServiceError:
            return None
        self.example = current
        return Precondition(Expect.PRESENT, ticks, example=current)

    def conditional(self, current: bytes | None, *, read: bool) -> ConditionalWrite | None:
        """Return what the write comes to, given its row if that was read; None if that takes more."""
        found = self.precondition()
        if found is None and read:
            found = self.precondition_given(current)
        if found is None or self.indexes.version:
            return None
        expected = _EXPECTED.get(found.expects, b"" if found.timestamp is None else example_at(found.timestamp))
        if self.kind.deletes:
            return ConditionalWrite(expected, None)
        members: str | bytes = self.encoded
        if self.premerged is not None:
            members, self.premerged = self.premerged.members, None
        keys = self.keys.encode("ascii")
        return ConditionalWrite(expected, (keys, members.encode("ascii") if isinstance(members, str) else members))


class WriteRejectedError(Exception):
    """The write of several at `index` is rejected."""

    def __init__(self, index: int, error: ServiceError) -> None:
        super().__init__(index)
        self.index = index
        self.error = error


def apply_one(write: EntityWrite) -> Commit[int]:
    """Return the commit of one write. Its result is the timestamp; it rejects as `EntityWrite.apply`."""
    return Commit(
        [write.row_key],
        partial(_decide_one, write),
        partial(_expected_of_one, write),
        procedure=APPLY_ONE,
        argument=write,
        fence=write.indexes.version,
    )


def _decide_one(write: EntityWrite, current: Values, timestamp: int) -> Decision[int] | Needs[int]:
    [value] = _living([write], current, timestamp)
    if value is not None and len(value) + len(write.encoded) > LARGE_BYTES and write.merge_cost(value) > MERGED_MAX:
        return Needs(write.premerge(value))
    changes = {write.row_key: write.apply(value, timestamp)}
    return Decision(changes, timestamp, _companions([write], current, changes) if write.indexes.declared else ())


def _living(writes: Sequence[EntityWrite], current: Values, timestamp: int) -> Values:
    """Return the rows of some writes; None for a row that has expired, too."""
    expiry = writes[0].indexes.expiry if writes else None
    return current if expiry is None else [expiry.living(value, timestamp) for value in current]


def _companions(writes: Sequence[EntityWrite], current: Values, changes: Changes) -> Sequence[CompanionWrite]:
    """Return what changes in the indexes of the table of some writes."""
    before = {write.row_key: value for write, value in zip(writes, current, strict=True)}
    return [*maintenance_of(writes[0].indexes).changes(writes[0].partition_key, before, changes)]


def _expected_of_one(write: EntityWrite, current: Values | None) -> list[Precondition | None]:
    return [write.precondition() if current is None else write.precondition_given(current[0])]


def apply_all(writes: Sequence[EntityWrite]) -> Commit[int]:
    """Return the commit of writes, each to its row. Its result is the timestamp.

    It rejects all of them by a `WriteRejectedError`: one of them is rejected, the first in their order.
    """
    return Commit(
        [write.row_key for write in writes],
        partial(_decide_all, writes),
        lambda _: [write.precondition() for write in writes],
        procedure=APPLY_ALL,
        argument=writes,
        fence=writes[0].indexes.version if writes else 0,
    )


def _decide_all(writes: Sequence[EntityWrite], current: Values, timestamp: int) -> Decision[int] | Needs[int]:
    cost = 0
    changes: dict[str, bytes | None] = {}
    living = _living(writes, current, timestamp)
    for index, (write, value) in enumerate(zip(writes, living, strict=True)):
        if write.kind.merges:
            cost += write.merge_cost(value)
            if cost > MERGED_MAX:
                return Needs(_premerge_all(writes, living))
        try:
            changes[write.row_key] = write.apply(value, timestamp)
        except ServiceError as error:
            raise WriteRejectedError(index, error) from None
    has_indexes = writes and writes[0].indexes.declared
    return Decision(changes, timestamp, _companions(writes, current, changes) if has_indexes else ())


def _premerge_all(writes: Sequence[EntityWrite], current: Values) -> Steps[None]:
    left = deque(current)
    del current  # A row is released once it is merged: a hundred may be 300 MB.
    for write in writes:
        yield from write.premerge(left.popleft())


def _conditional_all(writes: Sequence[EntityWrite], current: Values | None) -> Sequence[ConditionalWrite] | None:
    read = current is not None
    values = current or [None] * len(writes)
    if read and sum(map(EntityWrite.merge_cost, writes, values)) > MERGED_MAX:
        return None
    found: list[ConditionalWrite] = []
    for write, value in zip(writes, values, strict=True):
        conditional = write.conditional(value, read=read)
        if conditional is None:
            return None
        found.append(conditional)
    return found


_NUMBERS = {kind: number for number, kind in enumerate(WRITES)}


def _encode_write(write: EntityWrite) -> Plain:
    encoded = _NUMBERS[write.kind], write.partition_key, write.row_key, write.condition, write.keys, write.encoded
    return (*encoded, write.indexes.fields()) if write.indexes.version else encoded


def _decode_write(payload: Plain) -> EntityWrite:
    number, partition_key, row_key, condition, keys, encoded, *indexes = payload
    write = EntityWrite(WRITES[number], partition_key, row_key, condition, keys, encoded)
    if indexes:
        write.indexes = Indexes.from_fields(indexes[0])
    return write


APPLY_ONE = CommitProcedure(
    "table.apply_one",
    _encode_write,
    lambda payload: apply_one(_decode_write(payload)),
    conditional=lambda write, current: _conditional_all([write], current),
    complete=complete,
)
APPLY_ALL = CommitProcedure(
    "table.apply_all",
    lambda writes: [_encode_write(write) for write in writes],
    lambda payload: apply_all([_decode_write(each) for each in payload]),
    conditional=_conditional_all,
    complete=complete,
)
REJECTION = Encoding(
    WriteRejectedError,
    lambda rejection: (rejection.index, SERVICE_ERROR.encode(rejection.error)),
    lambda payload: WriteRejectedError(payload[0], SERVICE_ERROR.decode(payload[1])),
)
