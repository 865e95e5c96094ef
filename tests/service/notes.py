"""A whole service in thirty lines: notes, each a text under a name. The kernel does everything else.

Beside it are what is its own about credentials (`note_credentials`), and a read that a request plan may run.
"""

from lazulite.auth.grant import Requirement
from lazulite.engine.commit import changing
from lazulite.engine.contract import Key
from lazulite.protocol.message import Response
from lazulite.records.spaces import Space
from lazulite.service.account_operations import AccountOperations
from lazulite.service.definition import ServiceDefinition, ServiceDependencies
from lazulite.service.kernel import ServiceKernel
from lazulite.service.routing import Route, Routes, ServiceCall, ServiceContext

from .note_credentials import CREDENTIALS, Note
from .note_read import SPACE, NoteCall, NoteRead

NOTE_BYTES = 64


async def put_note(call: NoteCall) -> Response:
    name, text = call.resource.name, call.request.body
    await call.context.engine.commit(SPACE, call.account, changing([name], lambda _, __: {name: text}))
    return Response(201)


def verify(_: Key, value: bytes) -> None:
    value.decode()


_ACCOUNT: AccountOperations[NoteCall] = AccountOperations(service="Note")
NOTES: ServiceDefinition[ServiceContext, Note, NoteCall] = ServiceDefinition(
    name="note",
    server="Notes/1.0",
    credentials=CREDENTIALS,
    routes=Routes(
        *_ACCOUNT.routes("account"),
        Route("note", "GET", "", "GetNote", NoteRead, requires=Requirement("o", ("r",), ("r",)), varies=()),
        Route("note", "PUT", "", "PutNote", put_note, requires=Requirement("o", ("w",), ("w",)), body=NOTE_BYTES),
        Route("note", "PUT", "lock", "LockNote", NoteRead, requires=Requirement("o", ("w",)), since="2020-01-01"),
    ),
    parse_resource=lambda path, _: Note("note" if path else "account", path),
    make_context=lambda dependencies: ServiceContext(**dependencies.shared("note")),
    make_call=ServiceCall,
    messages={"InvalidMd5": "That is no MD5."},
    spaces=(Space(number=SPACE, owner="note", title="the notes", copied=True, in_checksum=True, verify=verify),),
)


class NoteService(ServiceKernel[ServiceContext, Note, NoteCall]):
    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(NOTES, dependencies)
