"""The fuzzers would see what they look for: each broken promise, planted, is found."""

from collections.abc import Callable, Iterator
from random import Random

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response

from . import wire_target
from .mutate import Mutator
from .oracles import BrokenPromiseError, check_answer
from .payload_targets import json_body
from .runner import Runner, minimise
from .seeds import seeds
from .targets import TARGETS
from .words import words

JSON = ("Content-Type", "application/json")
CODE = ("x-ms-error-code", "InvalidInput")
ERROR = b'{"odata.error":{"code":"InvalidInput","message":{"lang":"en-US","value":"x"}}}'
MULTIPART = ("Content-Type", "multipart/mixed; boundary=batchresponse_x")


@pytest.mark.parametrize(
    "response",
    [
        Response(500, [JSON], b"{}", "InternalError"),
        Response(200, [JSON, ("X", "a\r\nB: c")], b"{}"),
        Response(200, [JSON, ("X", "\u20ac")], b"{}"),
        Response(200, [JSON, ("X Y", "a")], b"{}"),
        Response(200, [JSON], b"{"),
        Response(200, [JSON], b"[]"),
        Response(200, [JSON], b'{"a":NaN}'),
        Response(200, [JSON], b"\xff"),
        Response(200, [("Content-Type", "application/xml")], b"<a>"),
        Response(200, [("Content-Type", "text/odd")], b"a"),
        Response(202, [MULTIPART], b"--batchresponse_x\n"),
        Response(204, [], b"a"),
        Response(302, []),
        Response(400, [JSON, CODE], ERROR, "NoSuchCode"),
        Response(400, [JSON, CODE], b"{}", "InvalidInput"),
        Response(400, [JSON, ("x-ms-version", "2017-07-29")], ERROR, "InvalidInput"),
    ],
)
def test_malformed_response_is_found(response: Response) -> None:
    with pytest.raises(BrokenPromiseError):
        check_answer(response)


def test_valid_response_is_accepted() -> None:
    check_answer(Response(400, [JSON, CODE], ERROR, "InvalidInput"))
    check_answer(Response(204, []))


@pytest.fixture(name="runner")
def _runner() -> Iterator[Runner]:
    runner = Runner("json", cpu_seconds_max=2)
    yield runner
    runner.close()


class InnerService:
    """What a service does with a request, where another function takes its place."""

    def __init__(self, respond: Callable[[Request], EventualResponse]) -> None:
        self._respond = respond

    async def __call__(self, request: Request) -> Response:
        response = self._respond(request)
        return response if isinstance(response, Response) else await response


INSERT = b'POST\n{"PartitionKey":"p","RowKey":"new","A":1}'


def test_failing_input_is_found_and_shortened(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = InnerService(runner.world.service.respond)

    async def fails(request: Request) -> Response:
        if b"new" in request.body:
            raise ValueError("planted")
        return await inner(request)

    monkeypatch.setattr(runner.world.service, "respond", fails)
    monkeypatch.setattr(runner.world, "renew", lambda: None)
    key = runner.broken(INSERT)
    assert "ValueError" in key
    assert minimise(runner, INSERT, key, 10) == b"\nnew"


def test_a_slow_input_is_found(runner: Runner) -> None:
    runner.cpu_seconds_max = 0.0
    assert runner.broken(INSERT) == "an input takes little time"


def test_rejection_that_writes_is_found(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = InnerService(runner.world.service.respond)

    async def rejects(request: Request) -> Response:
        await inner(request)
        return runner.world.service.reject(request, ServiceError("InvalidInput"))

    monkeypatch.setattr(runner.world.service, "respond", rejects)
    assert runner.broken(INSERT) == "a rejected request changes nothing: 400"


def test_a_write_that_reads_back_differently_is_found(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = InnerService(runner.world.service.respond)

    async def loses(request: Request) -> Response:
        if request.method == "POST":
            request.body = request.body.replace(b"1}", b"2}")
        return await inner(request)

    monkeypatch.setattr(runner.world.service, "respond", loses)
    with pytest.raises(BrokenPromiseError, match="values come back"):
        json_body(runner.world, INSERT)


def test_response_longer_than_its_length_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner("http", cpu_seconds_max=2)
    monkeypatch.setattr(wire_target, "CONTINUE", b"HTTP/1.1 ")
    try:
        assert runner.broken(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n") != ""
    finally:
        runner.close()


def test_a_sas_of_which_a_field_comes_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner("sas", cpu_seconds_max=2)
    monkeypatch.setattr("lazulite.auth.authenticator.repeated_names", lambda _: set())
    try:
        assert "a SAS of which a field comes twice opens nothing" in {runner.broken(data) for data in seeds("sas")}
    finally:
        runner.close()


@pytest.mark.parametrize("target", TARGETS)
def test_mutations_keep_to_the_length_and_repeat_by_seed(target: str) -> None:
    mutate = Mutator(words(target), [b"a", INSERT])
    made = [[mutate(INSERT, 100, Random(seed)) for seed in range(50)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 25
    assert max(map(len, made[0])) <= 100


@pytest.mark.parametrize("leaks", [False, True])
def test_a_leak_of_one_object_an_input_is_seen(runner: Runner, monkeypatch: pytest.MonkeyPatch, leaks: bool) -> None:
    kept: list[object] = []
    if leaks:
        monkeypatch.setattr(runner.world, "reset", lambda: kept.append(object()))
    runner.blocks()
    before = runner.blocks()
    for _ in range(1000):
        runner(INSERT)
    assert (runner.blocks() - before >= 1000) is leaks
