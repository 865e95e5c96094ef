"""Preconditions of requests: the conditional headers and the lease id that an operation knows, and its rejections.

Source: reference §39.2, §40. `PRECONDITIONS` is the table of all operations; `blob.routes` reads the row of each, so
that no operation is without one. `docs/protocol/leases.md` has the same table, and tests of each cell.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol
from uuid import UUID

from lazulite.blob.model.conditions import (
    ANY,
    MISSING,
    NO_CONDITIONS,
    Conditions,
    Outcome,
    Validators,
    read_date,
    read_etags,
)
from lazulite.blob.model.lease import Lease, check_lease, lease_for_write
from lazulite.blob.model.tag_expression import read_if_tags
from lazulite.blob.requests.headers import IF_TAGS, LEASE_ID, Headers, lease_id
from lazulite.blob.versions import (
    READS_COMBINE_SINCE,
    STAR_ON_READS_SINCE,
    TAGS_CONDITIONS_SINCE,
    TAGS_SINCE,
    TIER_CONDITIONS_SINCE,
)
from lazulite.protocol.errors import ServiceError, invalid_header


class Leasable(Protocol):
    """A blob or container: what leases and conditions are about."""

    @property
    def lease(self) -> Lease | None:
        """The lease, if there is one."""
        ...

    @property
    def validators(self) -> Validators:
        """The state that conditional headers are compared with."""
        ...


class PreconditionUse(Enum):
    """What an operation does, on which its rejections depend (§40)."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    """`If-None-Match: *` allows no blob that exists, unless the request has its lease."""
    COPY = "copy"
    """Likewise, whatever the lease. *Unverified*: the lease might lift the condition here, too."""


class LeaseUse(Enum):
    """What an operation makes of `x-ms-lease-id`."""

    IGNORED = "–"
    CHECKED = "checked"
    """An id that is sent must be that of the lease."""
    REQUIRED = "required"
    """Likewise; and while there is a lease, an id must be sent."""


class ConditionalHeader(NamedTuple):
    """One conditional header."""

    name: str
    field: str
    """The field of `Conditions`."""
    read: Callable[[str, str], object]
    """Takes its name and its value to the field's; raises `ServiceError`."""
    since: str = ""
    """The first version that knows it. Before: it means nothing."""


class Row(NamedTuple):
    """The preconditions that an operation knows."""

    use: PreconditionUse
    headers: tuple[ConditionalHeader, ...] = ()
    lease: LeaseUse = LeaseUse.IGNORED
    noun: str = "Blob"
    """`Blob` or `Container`."""


def _etags(name: str, text: str) -> tuple[str, ...]:
    try:
        return read_etags(text)
    except ValueError:
        raise invalid_header(name, text) from None


def _date(name: str, text: str) -> int:
    try:
        return read_date(text)
    except ValueError:
        raise invalid_header(name, text) from None


def _date_if_it_is_one(_: str, text: str) -> int | None:
    """Return a date; None, so that the condition is ignored: recorded for `null` (§40)."""
    try:
        return read_date(text)
    except ValueError:
        return None


def _tags(name: str, text: str) -> object:
    return read_if_tags(text, name)


def _usual(prefix: str, date: Callable[[str, str], int | None], since: str = "") -> tuple[ConditionalHeader, ...]:
    """Return the four headers that HTTP itself has, with a prefix."""
    return (
        ConditionalHeader(f"{prefix}if-match", "match", _etags, since),
        ConditionalHeader(f"{prefix}if-none-match", "none_match", _etags, since),
        ConditionalHeader(f"{prefix}if-modified-since", "modified_since", date, since),
        ConditionalHeader(f"{prefix}if-unmodified-since", "unmodified_since", date, since),
    )


_TAGS = (ConditionalHeader(IF_TAGS, "tags", _tags, TAGS_SINCE),)
_HTTP = _usual("", _date_if_it_is_one)
_MODIFIED_SINCE, _DATES = _HTTP[2:3], _HTTP[2:]
_ALL = (*_HTTP, *_TAGS)
_OF_TAGS = (*_usual("x-ms-blob-", _date, TAGS_CONDITIONS_SINCE), *_TAGS)
_OF_DELETION = (
    *_ALL,
    ConditionalHeader("x-ms-access-tier-if-modified-since", "tier_modified_since", _date, TIER_CONDITIONS_SINCE),
    ConditionalHeader("x-ms-access-tier-if-unmodified-since", "tier_unmodified_since", _date, TIER_CONDITIONS_SINCE),
)
SOURCE_PREFIX = "x-ms-source-"
OF_SOURCES = (
    *_usual(SOURCE_PREFIX, _date),
    ConditionalHeader(f"{SOURCE_PREFIX}if-tags", "tags", _tags, TAGS_SINCE),
)
"""The conditions on the source of a copy or of a write from a URL."""

_CHECKED, _REQUIRED = LeaseUse.CHECKED, LeaseUse.REQUIRED
_NO_READ, _NO_WRITE = Row(PreconditionUse.READ), Row(PreconditionUse.WRITE)
_READ, _WRITE = Row(PreconditionUse.READ, _ALL, _CHECKED), Row(PreconditionUse.WRITE, _ALL, _REQUIRED)
_BLOCK = Row(PreconditionUse.WRITE, (), _REQUIRED)
_CREATE = Row(PreconditionUse.CREATE, _ALL, _REQUIRED)
_READ_CONTAINER = Row(PreconditionUse.READ, (), _CHECKED, "Container")

PRECONDITIONS: Mapping[str, Row] = {
    "GetBlob": _READ,
    "GetBlobProperties": _READ,
    "GetBlobMetadata": _READ,
    "GetPageRanges": _READ,
    "GetBlockList": Row(PreconditionUse.READ, _TAGS, _CHECKED),
    "GetBlobTags": Row(PreconditionUse.READ, _OF_TAGS, _CHECKED),
    "PutBlob": _CREATE,
    "PutBlobFromURL": _CREATE,
    "PutBlockList": _CREATE,
    "CopyBlob": Row(PreconditionUse.COPY, _ALL, _REQUIRED),
    "PutBlock": _BLOCK,
    "PutBlockFromURL": _BLOCK,
    "AppendBlock": _WRITE,
    "AppendBlockFromURL": _WRITE,
    "SealAppendBlob": _WRITE,
    "PutPage": _WRITE,
    "PutPageFromURL": _WRITE,
    "SetBlobProperties": _WRITE,
    "SetBlobMetadata": _WRITE,
    "SetBlobTags": Row(PreconditionUse.WRITE, _OF_TAGS, _REQUIRED),
    "SetBlobTier": Row(PreconditionUse.WRITE, _TAGS, _REQUIRED),
    "SnapshotBlob": Row(PreconditionUse.WRITE, _ALL, _CHECKED),
    "DeleteBlob": Row(PreconditionUse.WRITE, _OF_DELETION, _REQUIRED),
    "LeaseBlob": Row(PreconditionUse.WRITE, _ALL),
    "AbortCopyBlob": Row(PreconditionUse.WRITE, (), _CHECKED),
    "UndeleteBlob": _NO_WRITE,
    "DeleteContainer": Row(PreconditionUse.WRITE, _DATES, _REQUIRED, "Container"),
    "SetContainerACL": Row(PreconditionUse.WRITE, _DATES, _CHECKED, "Container"),
    "LeaseContainer": Row(PreconditionUse.WRITE, _DATES, LeaseUse.IGNORED, "Container"),
    "SetContainerMetadata": Row(PreconditionUse.WRITE, _MODIFIED_SINCE, _CHECKED, "Container"),
    "GetContainerProperties": _READ_CONTAINER,
    "GetContainerMetadata": _READ_CONTAINER,
    "GetContainerACL": _READ_CONTAINER,
    "CreateContainer": _NO_WRITE,
    "RestoreContainer": _NO_WRITE,
    "ListBlobs": _NO_READ,
    "ListContainers": _NO_READ,
    "FindBlobsByTags": _NO_READ,
    "FindBlobsByTagsInContainer": _NO_READ,
    "BlobBatch": _NO_WRITE,
    "GetAccountInformation": _NO_READ,
    "GetBlobServiceProperties": _NO_READ,
    "SetBlobServiceProperties": _NO_WRITE,
    "GetBlobServiceStats": _NO_READ,
    "GetUserDelegationKey": _NO_READ,
    "QueryBlobContents": _NO_READ,
    "SetBlobExpiry": _NO_WRITE,
    "SetBlobImmutabilityPolicy": _NO_WRITE,
    "DeleteBlobImmutabilityPolicy": _NO_WRITE,
    "SetBlobLegalHold": _NO_WRITE,
    "IncrementalCopyBlob": _NO_WRITE,
    "RenameContainer": _NO_WRITE,
}
"""The preconditions of each operation, by its name in `blob.routes`."""


class Preconditions(NamedTuple):
    """The preconditions of one request."""

    row: Row
    conditions: Conditions = NO_CONDITIONS
    lease: UUID | None = None
    """The id of the request, if it has one."""

    @property
    def has_any(self) -> bool:
        """Whether the request has any."""
        return self.lease is not None or self.conditions is not NO_CONDITIONS

    def without_conditions(self) -> "Preconditions":
        """Return them as they are of a later commit of the same request: its own first commit changed the ETag."""
        return self._replace(conditions=NO_CONDITIONS)

    def check_conditions(self, found: Leasable | None) -> None:
        """Reject a request whose conditions are not met; None is a blob that only has uncommitted blocks.

        Raises:
            ServiceError: `ConditionNotMet`.
        """
        if self.conditions is not NO_CONDITIONS:
            validators = MISSING if found is None else found.validators
            is_read = self.row.use is PreconditionUse.READ
            _require_met(self.conditions.read(validators) if is_read else self.conditions.write(validators))

    def allow_read(self, found: Leasable | None, present: int) -> None:
        """Reject a read that the conditions or the lease do not allow. See `check_conditions`.

        Args:
            found: what is read.
            present: the time by which leases end, in ticks.

        Raises:
            ServiceError: `ConditionNotMet`; 412 for the lease id.
        """
        self.check_conditions(found)
        if self.lease is not None:
            check_lease(None if found is None else found.lease, present, self.lease, self.row.noun)

    def allow_write(self, found: Leasable | None, present: int) -> Lease | None:
        """Return the lease after a write or deletion that the lease and then the conditions allow.

        Args:
            found: what is written; None: nothing yet, which only an operation that creates is asked about.
            present: the time by which leases end, in ticks.

        Raises:
            ServiceError: 412 for the lease id; `ConditionNotMet`, `BlobAlreadyExists`.
        """
        row, given = self.row, self.lease
        lease = None if found is None else found.lease
        if row.lease is LeaseUse.REQUIRED:
            lease = lease_for_write(lease, present, given, row.noun)
        else:
            check_lease(lease, present, given, row.noun)
        if self.conditions is not NO_CONDITIONS:
            creates = row.use in (PreconditionUse.CREATE, PreconditionUse.COPY)
            outcome = self.conditions.write(None if found is None else found.validators, creates=creates)
            # A client with the lease knows that the blob exists: `If-None-Match: *` means nothing more (§40).
            if not (outcome is Outcome.EXISTS and row.use is PreconditionUse.CREATE and given is not None):
                _require_met(outcome)
        return lease


NO_PRECONDITIONS = Preconditions(Row(PreconditionUse.READ))


def reader_of(row: Row) -> Callable[[Headers, str], Preconditions]:
    """Return what reads the preconditions of an operation; see `read_preconditions`."""
    names = frozenset(header.name for header in row.headers)
    if row.lease is not LeaseUse.IGNORED:
        names |= {LEASE_ID}
    nothing = Preconditions(row)

    def read(headers: Headers, version: str) -> Preconditions:
        return nothing if headers.keys().isdisjoint(names) else read_preconditions(row, headers, version)

    return read


def read_preconditions(row: Row, headers: Headers, version: str) -> Preconditions:
    """Return the preconditions of a request.

    Args:
        row: of its operation.
        headers: of the request.
        version: that governs it.

    Raises:
        ServiceError: `MultipleConditionHeadersNotSupported`, `UnsatisfiableCondition`, `InvalidHeaderValue`.
    """
    given = None if row.lease is LeaseUse.IGNORED else lease_id(headers)
    conditions = read_conditions(row.headers, headers, version)
    if conditions is NO_CONDITIONS:
        return Preconditions(row, lease=given)
    is_read = row.use is PreconditionUse.READ
    if not (conditions.are_for_a_write or (is_read and version >= READS_COMBINE_SINCE)):
        raise ServiceError("MultipleConditionHeadersNotSupported")
    if is_read and conditions.none_match == (ANY,):
        if version >= STAR_ON_READS_SINCE:
            raise ServiceError("UnsatisfiableCondition")
        conditions = conditions._replace(none_match=())
    return Preconditions(row, conditions, given)


def read_conditions(known: Sequence[ConditionalHeader], headers: Headers, version: str) -> Conditions:
    """Return those conditional headers of a request that are known, in any combination. Raises `InvalidHeaderValue`."""
    found = {
        header.field: header.read(header.name, text)
        for header in known
        if (text := headers.get(header.name)) is not None and version >= header.since
    }
    return Conditions(**found) if found else NO_CONDITIONS  # type: ignore[arg-type]  # Each field has its own reader.


_REJECTIONS = {
    Outcome.NOT_MODIFIED: ("ConditionNotMet", 304),
    Outcome.FAILED: ("ConditionNotMet", 412),
    Outcome.OTHER_TAGS: ("ConditionNotMet", 412),
    Outcome.EXISTS: ("BlobAlreadyExists", 409),
}


def _require_met(outcome: Outcome) -> None:
    if outcome is not Outcome.MET:
        code, status = _REJECTIONS[outcome]
        raise ServiceError(code, status=status)
