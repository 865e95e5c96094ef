"""A whole service in thirty lines: notes, each a text under a name. The kernel does everything else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.auth.bearer.rules import BearerConventions
from lazulite.auth.grant import Requirement
from lazulite.auth.sas.service_sas import ServiceSas
from lazulite.auth.service_credentials import ServiceCredentials
from lazulite.engine.contract import UNKNOWN, Key
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.records.spaces import Space
from lazulite.service.account_operations import AccountOperations
from lazulite.service.call import ServiceCall, ServiceContext
from lazulite.service.definition import ServiceDefinition, ServiceDependencies
from lazulite.service.kernel import ServiceKernel
from lazulite.service.routing import Keys, Route, Routes

SPACE = 900
NOTE_BYTES = 64
TEXT = "Content-Type: text/plain\r\n"


class Note(NamedTuple):
    kind: str
    name: str = ""
    keys: tuple[str, ...] = ()

    def covers(self, resource: str) -> bool:
        return self.name == resource


NoteCall = ServiceCall[ServiceContext, Note]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSas(ServiceSas):
    note: str
    policy_resource = ""

    def scope(self) -> Note:
        return Note("note", self.note)

    def string_to_sign(self, account: str) -> str:
        return "\n".join((self.permission, self.expiry, account, self.note, self.version))


def read_sas(query: Mapping[str, str]) -> NoteSas:
    return NoteSas(note=query["nn"], permission=query["sp"], expiry=query["se"], signature=query["sig"])


def string_to_sign(scheme: str, request: Request, account: str, path: str, comp: str | None) -> str:
    return "\n".join((scheme, request.method, request.headers["x-ms-date"], f"/{account}{path}", comp or ""))


async def put_note(call: NoteCall) -> Response:
    name, text = call.resource.name, call.request.body
    await call.context.engine.commit(SPACE, call.account, [name], lambda _, __: {name: text})
    return Response(201)


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


async def get_note(call: NoteCall) -> Response:
    return await NoteRead(call).run(call.request, ())


def verify(_: Key, value: bytes) -> None:
    value.decode()


NOTES: ServiceDefinition[ServiceContext, Note, NoteCall] = ServiceDefinition(
    name="note",
    server="Notes/1.0",
    credentials=ServiceCredentials(
        "n",
        string_to_sign,
        "nn",
        ("nn", "sp", "se", "sv", "sig"),
        read_sas,
        BearerConventions(roles=(), challenge_since="2020-01-01"),
    ),
    routes=Routes(
        *AccountOperations(service="Note").routes("account"),
        Route("note", "GET", "", "GetNote", get_note, requires=Requirement("o", ("r",), "r"), plan=NoteRead),
        Route("note", "PUT", "", "PutNote", put_note, requires=Requirement("o", ("w",), "w"), body=NOTE_BYTES),
        Route("note", "PUT", "lock", "LockNote", get_note, requires=Requirement("o", ("w",)), since="2020-01-01"),
    ),
    parse_resource=lambda path: Note("note" if path else "account", path),
    make_context=lambda dependencies: ServiceContext(**dependencies.shared("note")),
    make_call=ServiceCall,
    spaces=(Space(number=SPACE, owner="note", title="the notes", copied=True, content=True, verify=verify),),
)


class NoteService(ServiceKernel[ServiceContext, Note, NoteCall]):
    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(NOTES, dependencies)
