"""A service whose bodies are streamed in both directions: what it is sent is counted and thrown away."""

from collections.abc import AsyncIterator
from dataclasses import replace

from lazulite.auth.grant import Requirement
from lazulite.protocol.message import WINDOW_BYTES, Response
from lazulite.service.definition import ServiceDependencies
from lazulite.service.kernel import ServiceKernel
from lazulite.service.routing import Route, Routes, ServiceContext

from .note_credentials import Note
from .note_read import NoteCall
from .notes import NOTES

BYTES_MAX = 5 << 30
_ZEROS = bytes(WINDOW_BYTES)


class Zeros:
    """So many bytes, made while they are sent; implements `ResponseContent`."""

    def __init__(self, length: int) -> None:
        self._length = length

    @property
    def length(self) -> int:
        return self._length

    async def chunks(self) -> AsyncIterator[bytes]:
        left = self._length
        while left:
            chunk = _ZEROS if left >= WINDOW_BYTES else _ZEROS[:left]
            left -= len(chunk)
            yield chunk

    @property
    def held_bytes(self) -> int:
        return 0

    async def aclose(self) -> None: ...


async def put_stream(call: NoteCall) -> Response:
    count = 0
    async for chunk in call.body_chunks():
        count += len(chunk)
    return Response(201, [("x-received", str(count))])


async def get_stream(call: NoteCall) -> Response:
    return Response(200, content=Zeros(int(call.resource.name)))


STREAMS = replace(
    NOTES,
    routes=Routes(
        Route("note", "GET", "", "GetStream", get_stream, requires=Requirement("o", ("r",))),
        Route(
            "note", "PUT", "", "PutStream", put_stream, requires=Requirement("o", ("w",)), body=BYTES_MAX, streams=True
        ),
    ),
)


class StreamService(ServiceKernel[ServiceContext, Note, NoteCall]):
    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(STREAMS, dependencies)
