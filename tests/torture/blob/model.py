"""A blob as the documentation has it, one operation after the other: what each does, and why it may be rejected.

Each operation is known by the moment of its invocation. A content names the writes that brought it, and the metadata
name the last write that set them. The number of the last write that changed the ETag stands for the ETag. Within a
round no lease ends by itself; between two rounds the clock is set past the ends of all of them.

An operation with several reasons for a rejection may be answered with any of them. Source: reference §35, §36.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

ANY = -1
"""The condition `If-Match: *`."""
ABSENT = -2
"""The condition `If-None-Match: *`."""


class Phase(Enum):
    """What a lease is in, as a read reports it."""

    LEASED = "leased"
    BREAKING = "breaking"
    BROKEN = "broken"
    EXPIRED = "expired"

    @property
    def locks(self) -> bool:
        """Whether a write needs the id."""
        return self in (Phase.LEASED, Phase.BREAKING)


class Lease(NamedTuple):
    """A lease, with one of a few ids."""

    id: int
    phase: Phase
    infinite: bool

    def later(self) -> "Lease":
        """Return it after the end of whatever ends."""
        if self.phase is Phase.LEASED and not self.infinite:
            return self._replace(phase=Phase.EXPIRED)
        return self._replace(phase=Phase.BROKEN) if self.phase is Phase.BREAKING else self


class Kind(Enum):
    """The type of a blob, which its name has forever."""

    BLOCK = "BlockBlob"
    APPEND = "AppendBlob"
    PAGE = "PageBlob"


SOURCE = 999_999_999
"""The content of the blob that is the source of all copies."""


class Blob(NamedTuple):
    """A blob."""

    writer: int | None
    """The write that gave it its ETag; None of a blob that a read found with an ETag that no response had."""
    named: int
    """The write that is in its metadata."""
    content: tuple[int, ...] | None
    """The writes whose bytes it has; None of a blob that a read found, if the bytes are as of another moment."""
    lease: Lease | None = None


class State(NamedTuple):
    """A name: the blob, and the uncommitted blocks."""

    blob: Blob | None = None
    blocks: frozenset[int] = frozenset()

    def later(self) -> "State":
        """Return it after the end of each lease that ends."""
        if self.blob is None or self.blob.lease is None:
            return self
        return self._replace(blob=self.blob._replace(lease=self.blob.lease.later()))


def check_given(lease: Lease | None, given: int | None) -> Iterator[str]:
    """Yield why the id of a request, if it has one, does not fit."""
    if given is None:
        return
    if lease is None:
        yield "LeaseNotPresentWithBlobOperation"
    elif lease.id != given:
        yield "LeaseIdMismatchWithBlobOperation"
    elif not lease.phase.locks:
        yield "LeaseLost"


class Read(NamedTuple):
    """A Get Blob that was answered."""

    invoked: int
    returned: int
    given: int | None
    found: Blob | str
    """Its lease has the id 0, as a read does not tell it; or the error code."""

    @property
    def changes_nothing(self) -> bool:
        """See `Operation.changes_nothing`."""
        return True

    def apply(self, state: State) -> State | None:
        """See `Operation.apply`."""
        blob = state.blob
        if blob is None:
            return state if self.found == "BlobNotFound" else None
        codes = list(check_given(blob.lease, self.given))
        if codes:
            return state if self.found in codes else None
        shown = blob._replace(lease=_shown(blob.lease))
        if isinstance(self.found, Blob) and self.found.writer is None:
            shown = shown._replace(writer=None)
        if isinstance(self.found, Blob) and self.found.content is None:
            shown = shown._replace(content=None)
        return state if shown == self.found else None


class Bytes(NamedTuple):
    """The bytes of a Get Blob of a page blob, which may be later ones than its headers tell of."""

    invoked: int
    returned: int
    found: tuple[int, ...]

    @property
    def changes_nothing(self) -> bool:
        """See `Operation.changes_nothing`."""
        return True

    def apply(self, state: State) -> State | None:
        """See `Operation.apply`."""
        return state if state.blob is not None and state.blob.content == self.found else None


def _shown(lease: Lease | None) -> Lease | None:
    """Return what a read tells of a lease: `fixed` or `infinite` of one that is held."""
    return None if lease is None else Lease(0, lease.phase, lease.infinite and lease.phase is Phase.LEASED)


class Verb(Enum):
    """What a write does."""

    PUT = "Put Blob"
    FROM_URL = "Put Blob From URL"
    COPY = "Copy Blob"
    BLOCK = "Put Block"
    LIST = "Put Block List"
    APPEND = "Append Block"
    PAGE = "Put Page"
    CLEAR = "Put Page, which clears"
    METADATA = "Set Blob Metadata"
    PROPERTIES = "Set Blob Properties"
    TAGS = "Set Blob Tags"
    TIER = "Set Blob Tier"
    SNAPSHOT = "Snapshot Blob"
    DELETE = "Delete Blob"

    @property
    def creates(self) -> bool:
        """Whether it makes a blob where there is none."""
        return self in (Verb.PUT, Verb.FROM_URL, Verb.COPY, Verb.LIST)

    @property
    def is_conditional(self) -> bool:
        """Whether it has conditions on the ETag."""
        return self not in (Verb.BLOCK, Verb.TAGS, Verb.TIER)

    @property
    def needs_id(self) -> bool:
        """Whether it needs the id of a lease that is held. Others reject a wrong one."""
        return self is not Verb.SNAPSHOT

    @property
    def sets_etag(self) -> bool:
        """Whether the blob has a new ETag afterwards."""
        return self.is_conditional and self not in (Verb.SNAPSHOT, Verb.DELETE)


class Write(NamedTuple):
    """A write."""

    invoked: int
    returned: int | None
    verb: Verb
    condition: int | None
    """The writer that If-Match names by its ETag, `ANY` or `ABSENT`; None: no condition."""
    given: int | None
    """The lease id."""
    block: int
    """The block that a list takes."""
    kind: Kind = Kind.BLOCK
    """The name of the blob."""
    code: str = ""
    """The error code; "": it was done, or not answered."""

    @property
    def changes_nothing(self) -> bool:
        """See `Operation.changes_nothing`."""
        return bool(self.code)

    def apply(self, state: State) -> State | None:
        """See `Operation.apply`."""
        codes = list(self._codes(state))
        if codes or self.code:
            return state if self.code in codes else None
        if self.verb is Verb.DELETE:
            return State()
        blob = state.blob
        lease = blob.lease if blob is not None and (self.given is not None or not self.verb.needs_id) else None
        if self.verb is Verb.BLOCK:
            return State(blob and blob._replace(lease=lease), state.blocks | {self.invoked})
        if self.verb.creates:
            return State(Blob(self.invoked, self.invoked, self._content(()), lease))
        assert blob is not None
        assert blob.content is not None
        named = self.invoked if self.verb is Verb.METADATA else blob.named
        writer = self.invoked if self.verb.sets_etag else blob.writer
        return state._replace(blob=Blob(writer, named, self._content(blob.content), lease))

    def _content(self, before: tuple[int, ...]) -> tuple[int, ...]:
        """Return the content afterwards."""
        brought = {
            Verb.PUT: (self.invoked,) if self.kind is Kind.BLOCK else (),
            Verb.LIST: (self.block,),
            Verb.FROM_URL: (SOURCE,),
            Verb.COPY: (SOURCE,),
            Verb.APPEND: (*before, self.invoked),
            Verb.PAGE: (self.invoked,),
            Verb.CLEAR: (),
        }
        return brought.get(self.verb, before)

    def _codes(self, state: State) -> Iterator[str]:
        """Yield every reason for a rejection."""
        blob = state.blob
        if blob is None and not self.verb.creates and self.verb is not Verb.BLOCK:
            yield "BlobNotFound"
            return
        lease = None if blob is None else blob.lease
        yield from check_given(lease, self.given)
        if self.given is None and lease is not None and lease.phase.locks and self.verb.needs_id:
            yield "LeaseIdMissing"
        if self.verb is Verb.COPY and self.given is not None and lease is not None and not lease.infinite:
            yield "InfiniteLeaseDurationRequired"
        if self.condition == ABSENT:
            if blob is not None and (self.given is None or self.verb is Verb.COPY):
                yield "BlobAlreadyExists"
        elif self.condition is not None and (blob is None or self.condition not in (ANY, blob.writer)):
            yield "ConditionNotMet"
        if self.verb is Verb.LIST and self.block not in state.blocks:
            yield "InvalidBlockList"


class Action(Enum):
    """A lease action."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


class LeaseChange(NamedTuple):
    """A lease action on the blob."""

    invoked: int
    returned: int | None
    action: Action
    condition: int | None
    """As of a write."""
    given: int
    proposed: int
    infinite: bool
    """Of the lease to acquire."""
    at_once: bool
    """Whether a break has the period 0, not the longest."""
    code: str = ""

    @property
    def changes_nothing(self) -> bool:
        """See `Operation.changes_nothing`."""
        return bool(self.code)

    def apply(self, state: State) -> State | None:
        """See `Operation.apply`."""
        if state.blob is None:
            return state if self.code == "BlobNotFound" else None
        outcome = self._outcome(state.blob.lease)
        codes = {outcome} if isinstance(outcome, str) else set()
        if self.condition not in (None, ANY, state.blob.writer):
            codes.add("ConditionNotMet")
        if codes or self.code:
            return state if self.code in codes else None
        assert not isinstance(outcome, str)
        return state._replace(blob=state.blob._replace(lease=outcome))

    def _outcome(self, lease: Lease | None) -> Lease | str | None:
        """Return the lease afterwards, or the error code."""
        match self.action:
            case Action.ACQUIRE:
                return self._acquired(lease)
            case Action.BREAK:
                return self._broken(lease)
            case Action.CHANGE:
                return self._changed(lease)
        if lease is None or lease.id != self.given:
            return "LeaseIdMismatchWithLeaseOperation"
        return None if self.action is Action.RELEASE else _renewed(lease)

    def _acquired(self, lease: Lease | None) -> Lease | str:
        if lease is not None and lease.phase.locks:
            if lease.id != self.proposed:
                return "LeaseAlreadyPresent"
            if lease.phase is Phase.BREAKING:
                return "LeaseIsBreakingAndCannotBeAcquired"
        return Lease(self.proposed, Phase.LEASED, self.infinite)

    def _changed(self, lease: Lease | None) -> Lease | str:
        if lease is None:
            return "LeaseNotPresentWithLeaseOperation"
        if not lease.phase.locks:
            return "LeaseNotPresentWithLeaseOperation"
        if lease.phase is Phase.LEASED and lease.id in (self.given, self.proposed):
            return lease._replace(id=self.proposed)
        is_held = lease.id == self.given
        return "LeaseIsBreakingAndCannotBeChanged" if is_held else "LeaseIdMismatchWithLeaseOperation"

    def _broken(self, lease: Lease | None) -> Lease | str:
        if lease is None:
            return "LeaseNotPresentWithLeaseOperation"
        if not lease.phase.locks or self.at_once:
            return lease._replace(phase=Phase.BROKEN)
        return lease._replace(phase=Phase.BREAKING)


def _renewed(lease: Lease) -> Lease | str:
    if lease.phase in (Phase.BREAKING, Phase.BROKEN):
        return "LeaseIsBrokenAndCannotBeRenewed"
    return lease._replace(phase=Phase.LEASED)


Event = Read | Bytes | Write | LeaseChange
