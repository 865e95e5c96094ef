"""The rejections of requests whose source cannot be read, or is not as they demand. Source: reference §17."""

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


def unmet(outcome: Outcome, use: SourceUse) -> ServiceError:
    """Return the rejection of a request whose conditions on the source are not met."""
    if outcome is Outcome.NOT_MODIFIED and use in (SourceUse.PART, SourceUse.PUT):
        return unverified(304)
    return unverified(412) if use is SourceUse.PART else ServiceError("SourceConditionNotMet")
