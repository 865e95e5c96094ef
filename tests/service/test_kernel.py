"""The order in which the kernel does things: bodies are accepted last, versions and CORS rules are resolved first."""

import pytest

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.engine.contract import EngineUnavailableError, SpaceDroppedError
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Request, response_of
from lazulite.service.definition import ServiceDependencies
from tests.fuzz.memory import MemoryEngine
from tests.request_bodies import FixedBody

from .note_read import SPACE
from .notes import NOTE_BYTES, NoteService
from .world import ACCOUNT, account_sas


@pytest.fixture(name="engine")
def _engine() -> MemoryEngine:
    return MemoryEngine(system_clock)


@pytest.fixture(name="notes")
def _notes(engine: MemoryEngine) -> NoteService:
    return NoteService(ServiceDependencies(engine=engine, accounts=AccountDirectory({}, None)))


def put(sas: str, length: int | None, text: bytes = b"text") -> tuple[Request, FixedBody]:
    """Return a request with a body to come, and the body."""
    body = FixedBody(text, length)
    headers = {"host": "h"} | ({} if length is None else {"content-length": str(length)})
    return Request("PUT", f"/{ACCOUNT}/a", sas, headers, body_to_come=body), body


@pytest.mark.parametrize(
    ("sas", "length", "code"),
    [
        (account_sas(), NOTE_BYTES + 1, "RequestBodyTooLarge"),
        (account_sas("r"), 4, "AuthorizationPermissionMismatch"),
        (account_sas() + "&comp=acl", 4, "InvalidQueryParameterValue"),
        (account_sas() + "&timeout=x", 4, "InvalidQueryParameterValue"),
        (account_sas() + "&api-version=x", 4, "InvalidHeaderValue"),
    ],
)
async def test_a_rejected_body_is_never_accepted(notes: NoteService, sas: str, length: int, code: str) -> None:
    request, body = put(sas, length)
    assert (await response_of(notes, request)).error_code == code
    assert body.accepted == 0


@pytest.mark.parametrize("length", [NOTE_BYTES, None])
async def test_a_body_of_unknown_length_is_bounded_too(notes: NoteService, length: int | None) -> None:
    request, body = put(account_sas(), length, bytes(NOTE_BYTES + (length is None)))
    response = await response_of(notes, request)
    assert body.accepted == 1
    assert (response.status, response.error_code) == ((201, "") if length else (413, "RequestBodyTooLarge"))


@pytest.mark.parametrize(
    ("failure", "code"),
    [(EngineUnavailableError("full"), "ServerBusy"), (SpaceDroppedError("gone"), "ResourceNotFound")],
)
async def test_failures_of_the_engine_have_codes(
    engine: MemoryEngine, notes: NoteService, monkeypatch: pytest.MonkeyPatch, failure: Exception, code: str
) -> None:
    read = engine.get

    async def fail(space: int, *key: str) -> bytes | None:
        if space == SPACE:
            raise failure
        return await read(space, *key)

    monkeypatch.setattr(engine, "get", fail)
    request = Request("GET", f"/{ACCOUNT}/a", account_sas(), {"host": "h"})
    assert (await response_of(notes, request)).error_code == code


async def test_the_record_tells_what_was_resolved(notes: NoteService) -> None:
    request = Request("GET", f"/{ACCOUNT}/a", "", {"host": "h", "x-ms-version": "2021-01-01"})
    assert (await response_of(notes, request)).error_code == "NoAuthenticationInformation"
    assert (request.record.version, request.record.account, request.record.operation) == ("2021-01-01", ACCOUNT, "")
    assert not request.authenticated


async def test_a_rejection_has_the_text_of_the_service(notes: NoteService) -> None:
    request, _ = put(account_sas(), 4)
    request.headers = {**request.headers, "content-md5": "x"}
    response = await response_of(notes, request)
    assert (response.status, response.reason) == (400, "That is no MD5.")
    assert b"<Message>That is no MD5.\nRequestId:" in response.body
