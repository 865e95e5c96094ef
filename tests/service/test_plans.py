"""Cached plans: what finds one, what they hold, and how many there are."""

import re
from collections.abc import Mapping
from dataclasses import fields

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.authenticator import Granted
from lazulite.auth.grant import SHARED_KEY_GRANT
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import system_clock
from lazulite.protocol.fields import CHANGING, Fields
from lazulite.protocol.message import Request, Response
from lazulite.protocol.version import RequestVersion
from lazulite.service.definition import ServiceDependencies
from lazulite.service.plans import KEY_BYTES_MAX, Plan, PlanCache, settled_request
from lazulite.service.routing import Keys, PreparedOperation, Route, ServiceContext
from tests.fuzz.memory import MemoryEngine

from .note_credentials import Note
from .note_read import NoteCall
from .notes import NoteService
from .world import ACCOUNT, account_sas, note_sas

KEYED = re.compile(r"(/\w+)\((\w)\)")


class Nothing(PreparedOperation):
    def respond(self, _: Request, __: Keys) -> Response:
        raise NotImplementedError


def nothing(_: object) -> Nothing:
    return Nothing()


DEPENDENCIES = ServiceDependencies(engine=MemoryEngine(system_clock), accounts=AccountDirectory({}, None))
CONTEXT = ServiceContext(**DEPENDENCIES.shared("note"))
ADDRESS = Addressing().locate(Request("GET", f"/{ACCOUNT}/n"))
ROUTE: Route[NoteCall] = Route("note", "GET", "", "GetNothing", nothing, requires=None, varies=())
PLAN = Plan(
    DEVELOPMENT_ACCOUNT, Granted(SHARED_KEY_GRANT, lasts=True), {}, RequestVersion("", ""), ROUTE, 30, Nothing()
)


def request(method: str = "GET", path: str = "/a(k)", headers: Mapping[str, str] | None = None, **more: str) -> Request:
    return Request(method, path, headers=Fields.of(headers or {}), **more)  # type: ignore[arg-type]  # texts


def plans(plans_max: int = 8, bytes_max: int = 1 << 20) -> PlanCache:
    return PlanCache({"GET": (), "PUT": ("if-match",)}, KEYED, plans_max, bytes_max)


def put(known: PlanCache, request: Request) -> None:
    cut = known.cut(request)
    assert cut is not None
    known.put(cut.key, PLAN)


def find(known: PlanCache, request: Request) -> Keys | None:
    """Return the keys of a request that has a plan."""
    cut = known.cut(request)
    return None if cut is None or known.find(cut.key) is None else cut.keys


def caches(known: PlanCache, request: Request, keys: Keys = ("k",)) -> bool:
    """Offer the plan of a request for a resource with these keys; return whether it is cached."""
    cut = known.cut(request)
    if cut is None:
        return False
    call = NoteCall(CONTEXT, request, ADDRESS, {}, "", SHARED_KEY_GRANT, Note("note", "n", keys), request.method)
    known.offer(cut, PLAN, call)
    return known.find(cut.key) is not None


def test_the_same_words_find_their_plan() -> None:
    known = plans()
    assert find(known, request()) is None
    put(known, request())
    assert find(known, request()) == ("k",)
    assert find(known, request(path="/a(l)")) == ("l",)
    changing = request(headers=dict.fromkeys(CHANGING, "x"))
    assert find(known, changing) == ("k",)


@pytest.mark.parametrize(
    "other",
    [
        request("PUT"),
        request("POST"),
        request(path="/b(k)"),
        request(path="/a"),
        request(query="a=b"),
        request(scheme="https"),
        request(headers={"accept": "x"}),
        request(headers={"host": "x"}),
        Request("GET", "/a(k)"),
    ],
)
def test_other_words_find_none(other: Request) -> None:
    known = plans()
    put(known, request())
    put(known, request(path="/a"))
    put(known, request("PUT", "/a"))
    if other.path == "/a":
        assert find(known, other) == ()
    else:
        assert find(known, other) is None


def test_of_a_field_that_varies_only_its_presence_counts() -> None:
    known = plans()
    with_condition = request("PUT", headers={"if-match": "a", "host": "h"})
    put(known, with_condition)
    assert isinstance(with_condition.headers, Fields)
    with_condition.headers.steady = (b"If-Match: other", b"host: h")
    assert find(known, with_condition) is not None
    assert find(known, request("PUT", headers={"host": "h"})) is None
    assert find(known, request("PUT", headers={"if-match": "a", "host": "i"})) is None
    put(known, request("GET", headers={"if-match": "a"}))
    assert find(known, request("GET", headers={"if-match": "b"})) is None


def varying() -> PlanCache:
    return PlanCache({"GET": (), "PUT": ()}, KEYED, parameters={"GET": "receipt"})


def test_of_a_parameter_that_varies_only_its_presence_counts() -> None:
    known = varying()
    put(known, request(query="sig=x&receipt=a&b=c"))
    assert find(known, request(query="sig=x&receipt=b%2B+&b=c")) == ("k", "b+ ")
    assert find(known, request(query="sig=x&receipt=&b=c")) == ("k", "")
    for other in (
        "sig=x&b=c",
        "sig=x&&b=c",
        "sig=y&receipt=a&b=c",
        "sig=x&receipt=%FF&b=c",
        "sig=x&receipt=a'&b=c",
        "sig=x&receipt=a",
    ):
        assert find(known, request(query=other)) is None
    put(known, request("PUT", query="receipt=a"))
    assert find(known, request("PUT", query="receipt=b")) is None


@pytest.mark.parametrize(
    ("query", "takes"),
    [
        ("a=b&receipt=c", True),
        ("a=b", True),
        ("receipt=c&receipt=d", False),
        ("receipt=c&Receipt=d", False),
        ("receipt=c&r%65ceipt=d", False),
        ("Receipt=c", False),
        ("my-receipt=c&receipt=d", True),
    ],
)
def test_a_parameter_that_varies_comes_once_and_in_its_usual_spelling(query: str, takes: bool) -> None:
    known = varying()
    assert [caches(known, request(query=query)) for _ in range(2)] == [False, takes]


def test_plans_are_bounded_in_number() -> None:
    known = plans(plans_max=8)
    for number in range(100):
        put(known, request(query=str(number)))
        assert find(known, request(query="0")) is not None, "it is used all the time"
        assert len(known) <= 8
    assert find(known, request(query="50")) is None


def test_plans_are_bounded_in_bytes() -> None:
    known = plans(1000, bytes_max=200_000)
    for number in range(100):
        put(known, request(query=f"{number:04000}"))
    assert 10 <= len(known) <= 200_000 // 8000


def test_long_words_have_no_plan() -> None:
    known = plans()
    for long in ({"query": "x" * KEY_BYTES_MAX}, {"path": "/" + "x" * KEY_BYTES_MAX}):
        assert not caches(known, request(**long), ("k",))  # type: ignore[arg-type]  # texts
    assert not caches(known, request(headers={"a": "x" * KEY_BYTES_MAX}), ("k",))
    assert [caches(known, request(headers={"a": "x"}), ("k",)) for _ in range(2)] == [False, True]
    assert not any(caches(known, request("POST"), ("k",)) for _ in range(3)), "no route of that method has a plan"


def test_a_path_that_spells_its_keys_in_another_way_has_no_plan() -> None:
    for path, key in (("/a(%6B)", "k"), ("/a(k)", "l")):
        known = plans()
        assert not any(caches(known, request(path=path), (key,)) for _ in range(3))
    plain = plans()
    assert [caches(plain, request(path="/a"), ()) for _ in range(2)] == [False, True]


def test_words_that_come_once_make_no_plan() -> None:
    known = plans(plans_max=8)
    assert not any(caches(known, request(headers={"x-id": str(number)}), ("k",)) for number in range(100))


def test_a_settled_request_holds_words_only() -> None:
    whole = request(headers={**dict.fromkeys(CHANGING, "secret"), "host": "h"}, query="q", scheme="https")
    whole.body = b"secret"
    settled = settled_request(whole)
    assert settled.headers == {"host": "h"}
    assert "secret" not in repr([getattr(settled, field.name) for field in fields(settled)])
    assert (settled.method, settled.path, settled.query, settled.scheme) == ("GET", "/a(k)", "q", "https")


@pytest.fixture(name="notes")
def _notes() -> NoteService:
    return NoteService(ServiceDependencies(engine=MemoryEngine(system_clock), accounts=AccountDirectory({}, None)))


async def _ask(notes: NoteService, method: str, path: str, sas: str, body: bytes = b"") -> tuple[bool, Response]:
    """Return whether the response came at once, and the response."""
    asked = Request(method, f"/{ACCOUNT}/{path}", sas, Fields.of({"host": "h"}), body, id="id")
    response = notes.respond(asked)
    return (True, response) if isinstance(response, Response) else (False, await response)


async def test_a_new_service_answers_at_once(notes: NoteService) -> None:
    await _ask(notes, "PUT", "a", account_sas(), b"one")
    _, (_, first), (at_once, second) = [await _ask(notes, "GET", "a", account_sas()) for _ in range(3)]
    assert at_once
    assert (second.body, [name for name, _ in second.fields()]) == (b"one", [name for name, _ in first.fields()])
    await _ask(notes, "PUT", "a", account_sas(), b"two")
    assert (await _ask(notes, "GET", "a", account_sas()))[1].body == b"two"
    assert (await _ask(notes, "GET", "b", account_sas()))[1].error_code == "ResourceNotFound"


async def test_a_route_without_a_plan_goes_the_long_way(notes: NoteService) -> None:
    for _ in range(3):
        asked = Request("PUT", f"/{ACCOUNT}/a", account_sas(), Fields.of({"host": "h"}), b"x")
        response = notes.respond(asked)
        assert not isinstance(response, Response)
        assert (await response).status == 201
        assert not notes.plans.hits


async def test_a_token_of_one_note_reads_no_other(notes: NoteService) -> None:
    for name in ("a", "b"):
        await _ask(notes, "PUT", name, account_sas(), name.encode())
    sas = note_sas("a", "r")
    assert [(await _ask(notes, "GET", "a", sas))[0] for _ in range(3)] == [False, False, True]
    at_once, rejected = await _ask(notes, "GET", "b", sas)
    assert (at_once, rejected.error_code) == (False, "AuthenticationFailed")
