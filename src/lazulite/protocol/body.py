"""Bodies in windows: what a service reads of a request and writes of a response without holding all of it.

Invariants: a request's body is read once, by `read` or by `chunks`; both accept it, which asks a client that waits for
`100 Continue` to send. A response's content knows its length before its first byte, because the head states it.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Protocol

WINDOW_BYTES = 256 * 1024
"""What is kept of a body that a service reads in chunks, beside one read of the socket."""


Window = bytes | bytearray
"""A piece of a response's content; its maker does not change it any more."""


def pieces(data: bytes) -> Iterator[bytes]:
    """Yield bytes in pieces of at most `WINDOW_BYTES`; nothing for none."""
    if len(data) <= WINDOW_BYTES:
        if data:
            yield data
        return
    for start in range(0, len(data), WINDOW_BYTES):
        yield data[start : start + WINDOW_BYTES]


class RequestBody(Protocol):
    """The body of one request, not accepted yet."""

    @property
    def length(self) -> int | None:
        """The announced bytes; None when the body is chunked."""
        ...

    async def read(self, bytes_max: int) -> bytes:
        """Accept the body; return it when it is whole.

        Raises:
            ServiceError: `RequestBodyTooLarge`, it is longer than `bytes_max` or than the server holds of any;
                `OperationTimedOut`, it comes too slowly; `ServerBusy`, there is no memory for it.
            ClientDisconnectedError: it never became whole.
        """
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """Accept the body; yield it as it comes, in pieces of at most `WINDOW_BYTES` that are not empty.

        While a piece is worked on, at most a window of others is read: then the client has to wait.

        Raises:
            ServiceError: `OperationTimedOut`, it comes too slowly; `ServerBusy`, there is no memory for a window.
            ClientDisconnectedError: it never became whole. What was yielded is to be discarded.
        """
        ...


class ResponseContent(Protocol):
    """The body of one response, made while it is sent."""

    @property
    def length(self) -> int:
        """Its bytes."""
        ...

    @property
    def held_bytes(self) -> int:
        """The memory of what is made of it already; 0: each window is made when it is asked for."""
        ...

    def chunks(self) -> AsyncIterator[Window]:
        """Yield it, in pieces of at most `WINDOW_BYTES`. The next one is asked for when the client takes them.

        An exception, or another number of bytes than `length`, ends the connection: the client sees that content is
        missing.
        """
        ...

    async def aclose(self) -> None:
        """Release what it holds; called once, also when nothing or not all of it was sent."""
        ...
