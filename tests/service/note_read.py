"""A read of a note, whose response may be ready."""

from lazulite.engine.contract import UNKNOWN
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response
from lazulite.service.routing import Keys, PreparedOperation, ServiceCall, ServiceContext

from .note_credentials import Note

SPACE = 900
TEXT = "Content-Type: text/plain\r\n"
NoteCall = ServiceCall[ServiceContext, Note]


class NoteRead(PreparedOperation):
    def __init__(self, call: NoteCall) -> None:
        self.engine, self.key = call.context.engine, (SPACE, call.account, call.resource.name)

    def respond(self, _: Request, __: Keys) -> EventualResponse:
        text = self.engine.get_now(*self.key)
        return self._read() if text is None or text is UNKNOWN else Response(200, [], text, opening=TEXT)

    async def _read(self) -> Response:
        text = await self.engine.get(*self.key)
        if text is None:
            raise ServiceError("ResourceNotFound")
        return Response(200, [], text, opening=TEXT)
