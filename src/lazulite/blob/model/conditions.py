"""Conditions on blobs and containers: what conditional headers say of a state.

Source: REST reference, Specifying conditional headers for Blob service operations. Which operation knows which header
is in `headers.preconditions`. Dates have whole seconds. A read combines any headers. A write takes one header, or one
of two pairs, of which the ETag decides; conditions on tags and on the tier hold beside them.
"""

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
    OTHER_TAGS = "412 for the tags"
    EXISTS = "409"
    """`If-None-Match: *` on the creation of a blob that exists: `BlobAlreadyExists`."""


class Validators(NamedTuple):
    """The state of a blob or container that conditional headers are compared with."""

    etag: str
    """Without quotes."""
    modified: int
    """In ticks."""
    tags: Tags = MappingProxyType({})
    tier_changed: int = 0
    """In ticks; 0: never."""


MISSING = Validators("", 0)
"""A blob that only has uncommitted blocks."""


class Conditions(NamedTuple):
    """The conditional headers of a request. Dates are in seconds since 1601."""

    match: tuple[str, ...] = ()
    none_match: tuple[str, ...] = ()
    modified_since: int | None = None
    unmodified_since: int | None = None
    tags: Condition | None = None
    tier_modified_since: int | None = None
    tier_unmodified_since: int | None = None

    @property
    def are_for_a_write(self) -> bool:
        """Whether a write may combine them."""
        match, none_match, modified, unmodified = self[:4]
        given = (bool(match), bool(none_match), modified is not None, unmodified is not None)
        allowed = sum(given) <= 1 or given in ((False, True, True, False), (True, False, False, True))
        return allowed and len(match) <= 1 and len(none_match) <= 1

    def read(self, found: Validators) -> Outcome:
        """Decide a read of something that exists. 412 wins over 304."""
        if self.match and not _among(found.etag, self.match):
            return Outcome.FAILED
        if self.tags is not None and not self.tags.matches(found.tags):
            return Outcome.OTHER_TAGS
        if self.unmodified_since is not None and _second(found.modified) > self.unmodified_since:
            return Outcome.FAILED
        # Either of the two is enough to send it.
        changes = []
        if self.none_match:
            changes.append(not _among(found.etag, self.none_match))
        if self.modified_since is not None:
            changes.append(_second(found.modified) > self.modified_since)
        return Outcome.MET if not changes or any(changes) else Outcome.NOT_MODIFIED

    def write(self, found: Validators | None, *, creates: bool = False) -> Outcome:
        """Decide a write.

        Args:
            found: what exists; None: nothing, which only an operation that creates is asked about.
            creates: whether the operation creates a blob, such as Put Blob.
        """
        if self.tags is not None and not self.tags.matches({} if found is None else found.tags):
            return Outcome.OTHER_TAGS
        if found is None:
            return Outcome.FAILED if self.match else Outcome.MET
        if not self._tier_allows(found):
            return Outcome.FAILED
        if self.none_match == (ANY,):
            return Outcome.EXISTS if creates else Outcome.MET
        is_met = True
        if self.match:
            is_met = _among(found.etag, self.match)
        elif self.none_match:
            is_met = not _among(found.etag, self.none_match)
        elif self.modified_since is not None:
            is_met = _second(found.modified) > self.modified_since
        elif self.unmodified_since is not None:
            is_met = _second(found.modified) <= self.unmodified_since
        return Outcome.MET if is_met else Outcome.FAILED

    def _tier_allows(self, found: Validators) -> bool:
        changed = _second(found.tier_changed)
        if self.tier_modified_since is not None and changed <= self.tier_modified_since:
            return False
        return self.tier_unmodified_since is None or changed <= self.tier_unmodified_since


NO_CONDITIONS = Conditions()


def read_etags(text: str) -> tuple[str, ...]:
    """Return the ETags of a header without their quotes, which clients may leave out.

    Raises:
        ValueError: one is empty, or they are too many.
    """
    etags = tuple(each.strip().strip('"') for each in text.split(",", _ETAGS_MAX))
    if len(etags) > _ETAGS_MAX or not all(etags):
        raise ValueError("no ETags")
    return etags


def read_date(text: str) -> int:
    """Return a date in seconds since 1601. Raises `ValueError`."""
    return parse_http_date(text) // TICKS_PER_SECOND


def _among(etag: str, etags: tuple[str, ...]) -> bool:
    return ANY in etags or etag in etags


def _second(ticks: int) -> int:
    return ticks // TICKS_PER_SECOND
