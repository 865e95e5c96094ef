"""The rejections of requests whose source cannot be read, or is not as they demand. Source: reference §17."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple

from lazulite.blob.model.conditions import Outcome
from lazulite.protocol.errors import ServiceError

SOURCE_ERROR_CODE = "x-ms-copy-source-error-code"
SOURCE_STATUS = "x-ms-copy-source-status-code"


def unverified(status: int, source_status: int = 0, source_code: str = "", message: str | None = None) -> ServiceError:
    """Return the rejection of a request whose source cannot be read.

    Args:
        status: of the rejection.
        source_status: of the source's response; 0: there is none.
        source_code: the error code of the source's response; "": it has none.
        message: for people; None: the one of the code.
    """
    rejection = ServiceError("CannotVerifyCopySource", message, status=status)
    fields = (SOURCE_STATUS, str(source_status or "")), (SOURCE_ERROR_CODE, source_code)
    rejection.headers = [(name, text) for name, text in fields if text]
    return rejection


def unverified_as(error: ServiceError) -> ServiceError:
    """Return the rejection of a request whose source rejects it."""
    return unverified(error.status, error.status, error.code, error.message)


class SourceUse(Enum):
    """The operations that read a source."""

    PART = auto()
    """Put Block, Append Block and Put Page."""
    PUT = auto()
    """Put Blob."""
    SYNC_COPY = auto()
    """Copy Blob that the request asks to wait for."""
    COPY = auto()
    """Any other Copy Blob. It alone opens each blob of its account."""


class Rejection(NamedTuple):
    """The rejection of a request whose conditions on the source are not met."""

    code: str
    status: int = 412
    message: str | None = None
    """None: the one of the code."""
    reason: str = ""
    """The reason phrase; "": the message."""


_TEXT = "The condition specified using HTTP conditional header(s) is not met."
_UNVERIFIED = Rejection("CannotVerifyCopySource", reason=_TEXT)
_UNVERIFIED_PUT = Rejection("CannotVerifyCopySource", message=_TEXT)
_NOT_MODIFIED = Rejection("CannotVerifyCopySource", 304, reason=_TEXT)
_SOURCE_NOT_MET, _NOT_MET = Rejection("SourceConditionNotMet"), Rejection("ConditionNotMet")
_OF_PART = {Outcome.FAILED: _UNVERIFIED, Outcome.NOT_MODIFIED: _NOT_MODIFIED, Outcome.OTHER_TAGS: _UNVERIFIED}
_OF_PUT = {Outcome.FAILED: _UNVERIFIED_PUT, Outcome.NOT_MODIFIED: _NOT_MODIFIED, Outcome.OTHER_TAGS: _UNVERIFIED_PUT}
_OF_COPY = {Outcome.FAILED: _SOURCE_NOT_MET, Outcome.NOT_MODIFIED: _SOURCE_NOT_MET, Outcome.OTHER_TAGS: _NOT_MET}
UNMET: Mapping[SourceUse, Mapping[Outcome, Rejection]] = {
    SourceUse.PART: _OF_PART,
    SourceUse.PUT: _OF_PUT,
    SourceUse.SYNC_COPY: _OF_COPY,
    SourceUse.COPY: _OF_COPY,
}
"""The rejection of each operation, by what its conditions say (§41.3)."""


def unmet(outcome: Outcome, use: SourceUse) -> ServiceError:
    """Return the rejection of a request whose conditions on the source are not met."""
    rejection = UNMET[use][outcome]
    error = ServiceError(rejection.code, rejection.message, status=rejection.status)
    error.reason = rejection.reason
    return error
