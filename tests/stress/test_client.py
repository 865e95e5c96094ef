"""Clients under load, against a server in this process: closed loops, rates, refusals and lost connections."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from lazulite.stress import client as clients
from lazulite.stress.client import Address, LoadGenerator
from lazulite.stress.histogram import quantile
from lazulite.stress.requests import Requests
from lazulite.stress.timer import Timer
from lazulite.stress.window import Window

SECONDS_MAX = 60
OK = b"HTTP/1.1 204 No Content\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nx-ms-error-code: ServerBusy\r\nContent-Length: 0\r\n\r\n"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
BATCH = b"HTTP/1.1 202 Accepted\r\nContent-Length: 25\r\n\r\n--b\r\nHTTP/1.1 400 Bad\r\n\r\n"


def endless() -> Requests:
    while True:
        yield b"GET / HTTP/1.1\r\n\r\n"


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not holds():  # noqa: ASYNC110 - nothing announces what a window has counted
            await asyncio.sleep(0.001)


async def loaded(
    replies: Iterator[bytes | None],
    until: Callable[[Window], bool],
    *,
    rate: float | None = None,
    retry: str = "none",
    count: int = 1,
) -> Window:
    """Return what clients counted until a condition holds, given the responses; None: the connection is closed."""

    served: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n") and (reply := next(replies)) is not None:
                writer.write(reply)
                if reply == LAST:
                    break
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    loader = LoadGenerator(Address("127.0.0.1", server.sockets[0].getsockname()[1]), retry, reads_bodies=True)
    try:
        for _ in range(count):
            await loader.open(endless())
        loader.load(1, count, rate)
        await eventually(lambda: until(loader.window))
        return loader.take()
    finally:
        loader.close()
        server.close()
        await asyncio.gather(*filter(None, served))


def forever(*replies: bytes | None) -> Iterator[bytes | None]:
    yield from replies
    while True:
        yield OK


async def test_a_closed_loop_goes_on_by_itself() -> None:
    found = await loaded(forever(), lambda window: window.requests >= 50, count=4)
    assert found.answered == found.requests >= 50
    assert found.latencies.total() == found.requests


async def test_latencies_count_from_the_intended_start() -> None:
    """The server answers the first request late, and the only client then sends the requests that were due."""
    stalled = 0.3

    def slow() -> Iterator[bytes | None]:
        time.sleep(stalled)  # The server has the event loop for itself.
        yield from forever()

    found = await loaded(slow(), lambda window: window.requests >= 25, rate=100)
    assert quantile(found.latencies, 1) >= stalled * 0.95
    assert quantile(found.latencies, 0.5) >= stalled / 4, "the requests that waited count from when they were due"


async def test_refusals_and_failures_are_counted_apart() -> None:
    replies = forever(BUSY, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", BATCH, OK)
    found = await loaded(replies, lambda window: window.requests >= 3)
    assert (found.refused, found.failed) == ({"ServerBusy": 1}, {"404": 1, "400": 1})


async def test_a_lost_connection_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "RECONNECT_SECONDS", 0)
    for rate in (None, 200.0):
        found = await loaded(forever(OK, LAST, None, LAST), lambda window: window.requests >= 20, rate=rate)
        assert found.failed == {"connection lost": 1}


async def test_what_clients_do_after_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(clients, "BACKOFF_SECONDS", (0.1, 0.1))
    conflict = b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n"
    began = time.monotonic()
    found = await loaded(forever(BUSY, BUSY, conflict), lambda window: window.requests >= 1, retry="backoff")
    assert found.requests, "the repeated request was made by the first attempt"
    assert not found.failed
    assert quantile(found.latencies, 1) >= 0.19, "the latency has the pauses"
    found = await loaded(forever(BUSY), lambda window: window.requests >= 1, retry="pause")
    assert quantile(found.latencies, 0) < 0.19
    assert time.monotonic() - began >= 0.4


async def test_an_alarm_rings_once_at_its_time() -> None:
    rung: list[float] = []
    alarm = Timer(lambda: rung.append(time.monotonic()))
    at = time.monotonic() + 0.01
    alarm.set(at + 100)
    alarm.set(at)
    await eventually(lambda: bool(rung))
    assert rung[0] >= at
    alarm.set(time.monotonic() + 0.001)
    alarm.stop()
    await asyncio.sleep(0.005)
    assert len(rung) == 1
    alarm.close()
