"""Writes by templates: they join a commit group, and their answers come when the group is durable."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from lazulite.engine.contract import Clock, EngineError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.server.http.states import State
from tests.server.wire import settle
from tests.table.plan.world import ENTITY, JSON

from .side import Side, in_memory
from .test_mutations import missed, status

BODY = b'{"A":5}'
ETAG = "W/\"datetime'2031-01-01T00%3A00%3A00.0000000Z'\""


@pytest.fixture(name="side")
async def _side() -> AsyncIterator[Side]:
    side = await Side(open_engine=in_memory).prepare()
    yield side
    await side.world.engine.close()


def insert(side: Side, row: str, **fields: str) -> bytes:
    body = b'{"PartitionKey":"p","RowKey":"%b","A":5}' % row.encode()
    return side.head("POST", "orders", None, body, {"Prefer": "return-no-content", **fields})


def etag_of(response: bytes) -> str:
    return next(line[6:] for line in response.decode().split("\r\n") if line.startswith("ETag: "))


async def warm_insert(side: Side, **fields: str) -> bytes:
    for number in range(3):
        await side.send(insert(side, f"w{number}", **fields))
    hits = side.templates.hits
    response = await side.send(insert(side, "w3", **fields))
    assert side.templates.hits == hits + 1, side.templates.outcomes
    return response


async def test_an_insert_is_durable_and_tells_where(side: Side) -> None:
    response = await warm_insert(side)
    assert status(response) == 204
    assert b"Location: http://h/acct/orders(PartitionKey='p',RowKey='w3')\r\n" in response
    assert b'"A":5' in await side.send(side.head(path=ENTITY.replace("'r'", "'w3'")))


async def test_timestamps_grow_while_the_clock_stands_still(side: Side) -> None:
    await warm_insert(side)
    etags = [etag_of(await side.send(insert(side, f"e{number}"))) for number in range(4)]
    assert len(set(etags)) == len(etags)


async def test_an_insert_with_an_echo(side: Side) -> None:
    response = await warm_insert(side, Prefer="return-content")
    assert status(response) == 201
    assert b'"RowKey":"w3"' in response


async def test_another_preference_is_another_head(side: Side) -> None:
    await warm_insert(side)
    for preference, expected in (("return-content", 201), ("return-no-content", 204)):
        head = insert(side, f"other-{expected}", Prefer=preference)
        assert int((await side.send(head))[9:12]) == expected


async def test_an_insert_of_what_is_there_is_rejected(side: Side) -> None:
    await warm_insert(side)
    assert await missed(side, insert(side, "w1"), "operation") == 409


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
async def test_upserts(side: Side, method: str) -> None:
    assert status(await side.warm(side.head(method, body=BODY))) == 204
    assert b'"A":5' in await side.send(side.head())


@pytest.mark.parametrize("method", ["PUT", "MERGE"])
async def test_an_update_looks_at_its_condition(side: Side, method: str) -> None:
    fields = {"If-Match": "*"}
    response = await side.warm(side.head(method, body=BODY, fields=fields))
    etag = next(line for line in response.decode().split("\r\n") if line.startswith("ETag: "))[6:]
    for _ in range(3):
        await side.send(side.head(method, body=BODY, fields={"If-Match": ETAG}))
    assert status(await side.send(side.head(method, body=BODY, fields={"If-Match": etag}))) in (204, 412)
    current = next(line for line in (await side.send(side.head())).decode().split("\r\n") if line.startswith("ETag: "))[
        6:
    ]
    hits = side.templates.hits
    assert status(await side.send(side.head(method, body=BODY, fields={"If-Match": current}))) == 204
    assert side.templates.hits - hits in (0, 1)
    assert await missed(side, side.head(method, body=BODY, fields={"If-Match": "?"}), "values") == 400


async def test_a_deletion(side: Side) -> None:
    for number in range(4):
        await side.send(insert(side, f"d{number}"))
    hits = side.templates.hits
    for number in range(4):
        path = f"orders(PartitionKey='p',RowKey='d{number}')"
        assert status(await side.send(side.head("DELETE", path, fields={"If-Match": "*"}))) == 204
        assert status(await side.send(side.head("GET", path))) == 404
    assert side.templates.hits >= hits + 1


async def test_a_head_is_held_until_its_body_comes(side: Side) -> None:
    def pieces(row: str) -> tuple[bytes, bytes]:
        head, end, body = insert(side, row).partition(b"\r\n\r\n")
        return head + end, body

    for number in range(3):
        assert status(await side.send(*pieces(f"s{number}"))) == 204
    hits = side.templates.hits
    assert status(await side.send(*pieces("s3"))) == 204
    assert side.templates.hits == hits + 1, side.templates.outcomes
    assert status(await side.send(insert(side, "s4"))) == 204
    assert side.templates.hits == hits + 2, side.templates.outcomes


async def test_a_head_whose_body_never_comes_is_timed_out(side: Side) -> None:
    await warm_insert(side)
    head = insert(side, "never").partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    assert await side.send(head) == b""
    protocol = side.transport.protocol
    assert protocol.held_bytes()[0] >= len(head)  # type: ignore[attr-defined]  # a Connection
    states = []
    for _ in range(2):
        states.append(protocol.state)  # type: ignore[attr-defined]  # likewise
        protocol.on_timeout()  # type: ignore[attr-defined]  # likewise
        await settle()
    assert states == [State.HEAD, State.BODY]


async def test_a_body_in_three_pieces_goes_the_usual_way(side: Side) -> None:
    await warm_insert(side)
    head, end, body = insert(side, "three").partition(b"\r\n\r\n")
    hits = side.templates.hits
    assert status(await side.send(head + end, body[:5], body[5:])) == 204
    assert side.templates.hits == hits


async def test_a_wrong_length_goes_the_usual_way(side: Side) -> None:
    await warm_insert(side)
    data = insert(side, "long1")
    assert status(await side.send(data + b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")) == 204


async def test_a_malformed_body_is_rejected(side: Side) -> None:
    await warm_insert(side)
    assert await missed(side, insert(side, "w9").replace(b'"A":5', b'"A":?'), "operation") == 400


async def test_pipelined_requests_wait_for_the_answer(side: Side) -> None:
    await warm_insert(side)
    side.transport.protocol.data_received(insert(side, "p1"))
    side.transport.protocol.data_received(insert(side, "p2"))
    await side.settle()
    assert side.transport.written.count(b"HTTP/1.1 204") == 2


async def test_a_client_that_leaves_changes_nothing(side: Side) -> None:
    await warm_insert(side)
    transport = side.transport
    transport.protocol.data_received(insert(side, "left"))
    transport.protocol.connection_lost(None)
    await asyncio.sleep(0.01)
    side.transport = side.connect()
    assert status(await side.send(side.head(path=ENTITY.replace("'r'", "'left'")))) == 200


async def test_a_server_that_stops_meanwhile_says_so(side: Side) -> None:
    await warm_insert(side)
    side.transport.protocol.data_received(insert(side, "last"))
    side.state.stopping = True
    response = await side.send(b"")
    assert status(response) == 204
    assert b"Connection: close\r\n\r\n" in response


async def test_a_store_that_fails_gets_503_and_a_request_that_takes_too_long_500() -> None:
    failing = False

    def fail() -> None:
        if failing:
            raise OSError("the disk is gone")

    def open_engine(clock: Clock) -> RocksEngine:
        return RocksEngine.open(None, clock, failpoints={"before_sync": _as_store(fail)})

    side = await Side(open_engine=open_engine).prepare()
    fields = {"x-ms-client-request-id": "mine", "Accept": JSON}
    await warm_insert(side, **fields)
    failing = True
    hits = side.templates.hits
    response = await side.send(insert(side, "lost", **fields))
    assert b"x-ms-client-request-id: mine\r\n" in response
    assert (status(response), side.templates.hits) == (503, hits + 1)
    assert b'"code":"ServerBusy"' in response
    assert "InsertEntity" in side.log.lines[-1]
    await side.world.engine.close()


def _as_store(action: Callable[[], None]) -> Callable[[], None]:
    def act() -> None:
        try:
            action()
        except OSError as error:
            raise EngineError(str(error)) from None

    return act


async def test_a_write_that_takes_too_long_is_timed_out(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    await warm_insert(side)
    monkeypatch.setattr(side.world.engine, "commit_now", lambda *_: 7)
    side.transport.protocol.data_received(insert(side, "slow"))
    side.transport.protocol.on_timeout()  # type: ignore[attr-defined]  # a Connection
    await settle()
    assert status(side.transport.written) == 500
    assert b"OperationTimedOut" in side.transport.written
    assert b'"odata.error"' in side.transport.written
