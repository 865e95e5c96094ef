"""Requests inside other requests: the source of a copy, the parts of a batch."""

from collections.abc import Awaitable
from typing import Generic, Protocol, TypeVar

from lazulite.auth.grant import Grant
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.protocol.version import RequestVersion

CallT_co = TypeVar("CallT_co", covariant=True)


class Kernel(Protocol[CallT_co]):
    """What a service does with a request."""

    def respond_to_part(self, request: Request, version: RequestVersion) -> Awaitable[Response]:
        """Respond to a request that a version governs."""
        ...

    def reject(self, request: Request, error: ServiceError) -> Response:
        """Return the response to a request that does not run."""
        ...

    def admit(self, request: Request, grant: Grant | None = None) -> Awaitable[CallT_co]:
        """Return a request as a call that does not run. Raises `ServiceError`."""
        ...


class Inner(Generic[CallT_co]):
    """The kernel of the service, for its own operations; it is given once the service is made."""

    def __init__(self) -> None:
        self._kernel: Kernel[CallT_co] | None = None

    def begin(self, kernel: Kernel[CallT_co]) -> None:
        """Take the kernel."""
        self._kernel = kernel

    @property
    def kernel(self) -> Kernel[CallT_co]:
        """The kernel. Raises `ValueError` before it is given."""
        if self._kernel is None:
            raise ValueError("the service is not made yet")
        return self._kernel
