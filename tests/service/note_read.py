"""A read of a note that a request plan may run at once."""

from lazulite.engine.contract import UNKNOWN
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.service.call import ServiceCall, ServiceContext
from lazulite.service.routing import Keys

from .note_credentials import Note

SPACE = 900
TEXT = "Content-Type: text/plain\r\n"
NoteCall = ServiceCall[ServiceContext, Note]


class NoteRead:
    def __init__(self, call: NoteCall) -> None:
        self.engine, self.key = call.context.engine, (SPACE, call.account, call.resource.name)

    def at_once(self, _: Request, __: Keys) -> Response | None:
        text = self.engine.get_now(*self.key)
        return None if text is None or text is UNKNOWN else Response(200, [], text, opening=TEXT)

    async def run(self, _: Request, __: Keys) -> Response:
        text = await self.engine.get(*self.key)
        if text is None:
            raise ServiceError("ResourceNotFound")
        return Response(200, [], text, opening=TEXT)
