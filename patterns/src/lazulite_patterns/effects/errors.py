"""How an effect fails: the service rejects it, or its result is unknown."""

from lazulite_patterns.errors import PatternsError


class Rejected(PatternsError):  # noqa: N818 - it is what the service says
    """The service rejected an operation, definitely: nothing was written.

    Attributes:
        status: of HTTP, such as 412.
        code: of the service, such as `UpdateConditionNotSatisfied`; empty if it gave none.
        index: the operation of the transaction that failed; None if the service named none.
    """

    def __init__(self, status: int, code: str, message: str = "", index: int | None = None) -> None:
        """Take what the service answered."""
        super().__init__(f"{status} {code}: {message}" if message else f"{status} {code}")
        self.status = status
        self.code = code
        self.index = index


class ResultUnknown(PatternsError):  # noqa: N818 - as above
    """No answer came, or one that says nothing of the result, such as 500 or 503. A write may have been done or not.

    A connection that could not be opened is one, too: with aiohttp the SDK reports a connection that broke after the
    request was sent by the same class.

    Attributes:
        retry_after_seconds: the wait that the service asked for; None if it asked for none.
    """

    def __init__(self, message: str = "", retry_after_seconds: float | None = None) -> None:
        """Take what is known."""
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
