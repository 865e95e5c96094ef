"""Conditional headers of blobs and containers.

Source: REST reference, Specifying conditional headers for Blob service operations.
Dates have whole seconds. A read combines any of the four headers. A write takes one header, or one of two pairs, of
which the ETag decides.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from lazulite.auth.shared_key import parse_http_date
from lazulite.blob.model.tag_expression import Condition
from lazulite.blob.model.tags import Tags
from lazulite.protocol.clock import TICKS_PER_SECOND

ANY = "*"
_ETAGS_MAX = 64
"""ETags in a list; a limit of our own."""


class Outcome(Enum):
    """What a condition says of a request."""

    MET = "met"
    NOT_MODIFIED = "304"
    FAILED = "412"
    EXISTS = "409"
    """`If-None-Match: *` on the creation of a blob that exists: `BlobAlreadyExists`."""
    UNSATISFIABLE = "400"
    """`If-None-Match: *` on a read: `UnsatisfiableCondition`."""


class ConditionsError(ValueError):
    """Headers that cannot be combined, `MultipleConditionHeadersNotSupported`, or with a bad value.

    Args:
        header: the header with the bad value; "" if they cannot be combined.
    """

    def __init__(self, header: str = "") -> None:
        super().__init__(header)
        self.header = header


class Validators(NamedTuple):
    """The state of a blob or container that conditional headers are compared with."""

    etag: str
    """Without quotes."""
    modified: int
    """In ticks."""
    tags: Tags = MappingProxyType({})


class Conditions(NamedTuple):
    """The conditional headers of a request."""

    match: tuple[str, ...] = ()
    none_match: tuple[str, ...] = ()
    modified_since: int | None = None
    """In seconds since 1601."""
    unmodified_since: int | None = None
    """In seconds since 1601."""
    tags: Condition | None = None

    def read(self, found: Validators) -> Outcome:
        """Decide a read of something that exists. 412 wins over 304."""
        if self.none_match == (ANY,):
            return Outcome.UNSATISFIABLE
        if self.match and not _among(found.etag, self.match):
            return Outcome.FAILED
        if self.tags is not None and not self.tags.matches(found.tags):
            return Outcome.FAILED
        if self.unmodified_since is not None and _second(found) > self.unmodified_since:
            return Outcome.FAILED
        # Either of the two is enough to send it.
        changes = []
        if self.none_match:
            changes.append(not _among(found.etag, self.none_match))
        if self.modified_since is not None:
            changes.append(_second(found) > self.modified_since)
        return Outcome.MET if not changes or any(changes) else Outcome.NOT_MODIFIED

    def write(self, found: Validators | None, *, creates: bool = False) -> Outcome:
        """Decide a write.

        Args:
            found: what exists; None: nothing, which only an operation that creates is asked about.
            creates: whether the operation creates a blob, such as Put Blob.
        """
        if self.tags is not None and not self.tags.matches({} if found is None else found.tags):
            return Outcome.FAILED
        if found is None:
            return Outcome.FAILED if self.match else Outcome.MET
        if self.none_match == (ANY,):
            return Outcome.EXISTS if creates else Outcome.MET
        is_met = True
        if self.match:
            is_met = _among(found.etag, self.match)
        elif self.none_match:
            is_met = not _among(found.etag, self.none_match)
        elif self.modified_since is not None:
            is_met = _second(found) > self.modified_since
        elif self.unmodified_since is not None:
            is_met = _second(found) <= self.unmodified_since
        return Outcome.MET if is_met else Outcome.FAILED


def read_conditions(headers: Mapping[str, str], prefix: str = "", *, writes: bool) -> Conditions:
    """Return the conditions of a request.

    Args:
        headers: by their names in lower case.
        prefix: of the names: `x-ms-source-` for those on the source of a copy.
        writes: whether the request is a write, which cannot combine all of them.

    Raises:
        ConditionsError: see there.
    """
    conditions = Conditions(
        _etags(headers, f"{prefix}if-match"),
        _etags(headers, f"{prefix}if-none-match"),
        _date(headers, f"{prefix}if-modified-since"),
        _date(headers, f"{prefix}if-unmodified-since"),
    )
    if writes:
        _check_pairs(conditions)
    return conditions


def _check_pairs(conditions: Conditions) -> None:
    match, none_match, modified, unmodified, _ = conditions
    given = (bool(match), bool(none_match), modified is not None, unmodified is not None)
    allowed = sum(given) <= 1 or given in ((False, True, True, False), (True, False, False, True))
    if not allowed or len(match) > 1 or len(none_match) > 1:
        raise ConditionsError


def _etags(headers: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the ETags of a header without their quotes, which clients may leave out."""
    text = headers.get(name)
    if text is None:
        return ()
    etags = tuple(each.strip().strip('"') for each in text.split(",", _ETAGS_MAX))
    if len(etags) > _ETAGS_MAX or not all(etags):
        raise ConditionsError(name)
    return etags


def _date(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    try:
        return parse_http_date(text) // TICKS_PER_SECOND
    except ValueError:
        raise ConditionsError(name) from None


def _among(etag: str, etags: tuple[str, ...]) -> bool:
    return ANY in etags or etag in etags


def _second(found: Validators) -> int:
    return found.modified // TICKS_PER_SECOND
