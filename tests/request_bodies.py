"""Bodies of requests that no server receives."""

from collections.abc import AsyncIterator

from lazulite.protocol.errors import ServiceError


class FixedBody:
    """A `RequestBody` that has come already, though it does not say so.

    Args:
        body: its bytes.
        length: what its head announces; None when it is chunked.

    Attributes:
        accepted: how often it was accepted.
    """

    def __init__(self, body: bytes, length: int | None = None) -> None:
        self._body = body
        self._length = length
        self.accepted = 0

    @property
    def length(self) -> int | None:
        return self._length

    @property
    def is_whole(self) -> bool:
        return False

    async def read(self, bytes_max: int) -> bytes:
        if (self._length or 0) > bytes_max:
            raise ServiceError("RequestBodyTooLarge")
        self.accepted += 1
        if len(self._body) > bytes_max:
            raise ServiceError("RequestBodyTooLarge")
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        self.accepted += 1
        yield self._body
