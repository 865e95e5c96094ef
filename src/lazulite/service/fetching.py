"""What an operation needs to read a URL of another server. The server layer fulfils it; see `server.copy_sources`."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class FetchNotAllowedError(Exception):
    """The operator has not allowed the host, or its address. No connection was made."""


class FetchFailedError(Exception):
    """The other server cannot be reached, or its response is malformed, too slow or incomplete."""


class FetchedResponse(Protocol):
    """A response whose head has come."""

    @property
    def status(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The header values, by name in lower case."""
        ...

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes; no more is read than is taken. Raises `FetchFailedError`."""
        ...


class FetchSource(Protocol):
    """Sends a GET to another server."""

    def __call__(self, url: str, headers: Mapping[str, str]) -> AbstractAsyncContextManager[FetchedResponse]:
        """Connect, and yield the response; no redirect is followed.

        Args:
            url: http or https.
            headers: further header fields of the request.

        Raises:
            FetchNotAllowedError, FetchFailedError: see there.
        """
        ...
