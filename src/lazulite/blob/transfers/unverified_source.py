"""The rejections of requests whose source cannot be read, or is not as they demand. Source: reference §17."""

from collections.abc import Mapping
from enum import Enum, auto

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


_Rejection = tuple[str, int, str | None]
"""Code, status, and the message, if it is not the code's."""

_UNVERIFIED: _Rejection = ("CannotVerifyCopySource", 412, None)
_UNVERIFIED_PUT: _Rejection = (
    "CannotVerifyCopySource",
    412,
    "The condition specified using HTTP conditional header(s) is not met.",
)
_NOT_MODIFIED: _Rejection = ("CannotVerifyCopySource", 304, None)
_SOURCE_NOT_MET: _Rejection = ("SourceConditionNotMet", 412, None)
_NOT_MET: _Rejection = ("ConditionNotMet", 412, None)
_OF_PART = {Outcome.FAILED: _UNVERIFIED, Outcome.NOT_MODIFIED: _NOT_MODIFIED, Outcome.OTHER_TAGS: _UNVERIFIED}
_OF_PUT = {Outcome.FAILED: _UNVERIFIED_PUT, Outcome.NOT_MODIFIED: _NOT_MODIFIED, Outcome.OTHER_TAGS: _UNVERIFIED_PUT}
_OF_COPY = {Outcome.FAILED: _SOURCE_NOT_MET, Outcome.NOT_MODIFIED: _SOURCE_NOT_MET, Outcome.OTHER_TAGS: _NOT_MET}
UNMET: Mapping[SourceUse, Mapping[Outcome, _Rejection]] = {
    SourceUse.PART: _OF_PART,
    SourceUse.PUT: _OF_PUT,
    SourceUse.SYNC_COPY: _OF_COPY,
    SourceUse.COPY: _OF_COPY,
}
"""The rejection of a request whose conditions on the source are not met (§41.3)."""


def unmet(outcome: Outcome, use: SourceUse) -> ServiceError:
    """Return the rejection of a request whose conditions on the source are not met."""
    code, status, message = UNMET[use][outcome]
    return ServiceError(code, message, status=status)
