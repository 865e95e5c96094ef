"""Clients that take nothing of their responses: what they hold is bounded, and they are disconnected in time."""

import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.joined_content import ONE_PIECE_BYTES
from lazulite.protocol.message import WINDOW_BYTES, Request, Response
from lazulite.server.http import outbound
from lazulite.server.limits import Limits
from tests.server.wire import Transport, Wire, settle

from .test_connection import GET, statuses
from .test_streaming import Content

LIMITS = Limits()
STALL = LIMITS.write_stall_seconds


def serve(wire: Wire, *, is_public: bool = False, windows: int = 3) -> None:
    """Respond to each request with a content of its own."""

    async def respond(request: Request) -> Response:
        request.authenticated = not is_public
        return Response(200, content=Content(windows))

    wire.service.responds = respond


async def readers(wire: Wire, count: int) -> list[Transport]:
    """Connect clients that ask and take nothing."""
    found = [wire.connect() for _ in range(count)]
    for client in found:
        client.stalled = True
        await wire.send(GET, client)
    return found


def begun(clients: list[Transport]) -> list[bool]:
    """Whether each client has been sent something."""
    return [client.written != b"" for client in clients]


@pytest.mark.parametrize("is_public", [False, True])
async def test_windows_are_bounded_over_all_readers(wire: Wire, is_public: bool) -> None:
    name = "public_window_bytes" if is_public else "window_bytes"
    wire.limit(**{name: 2 * WINDOW_BYTES})
    serve(wire, is_public=is_public)
    clients = await readers(wire, 5)
    assert begun(clients) == [True, True, False, False, False]
    budgets = wire.state.budgets
    assert (budgets.public_windows if is_public else budgets.windows).held_bytes == 2 * WINDOW_BYTES
    assert (budgets.windows if is_public else budgets.public_windows).held_bytes == 0


async def test_readers_without_credentials_keep_no_others_out(wire: Wire) -> None:
    wire.limit(public_window_bytes=WINDOW_BYTES)
    serve(wire, is_public=True)
    await readers(wire, 3)
    serve(wire)
    output = await wire.send(GET)
    assert output.endswith(b"x" * 3 * WINDOW_BYTES)


async def test_a_reader_that_takes_its_window_lets_the_next_one_have_its_turn(wire: Wire) -> None:
    wire.limit(window_bytes=WINDOW_BYTES)
    serve(wire)
    first, second = await readers(wire, 2)
    for taker, other in ((first, second), (second, first), (first, second), (second, first)):
        before = len(other.written)
        taker.take(taker.waiting_bytes)
        await settle()
        assert len(other.written) > before, "each has a window in turn"
    for client in (first, second):
        client.stalled = False
    for client in (first, second, first):
        client.take(client.waiting_bytes)
        await settle()
    assert all(client.written.endswith(b"x" * 3 * WINDOW_BYTES) for client in (first, second))
    assert wire.state.budgets.windows.held_bytes == 0


async def test_while_others_wait_a_reader_has_five_seconds_for_a_window(wire: Wire) -> None:
    wire.limit(window_bytes=2 * WINDOW_BYTES)
    serve(wire)
    clients = await readers(wire, 4)
    for _ in range(int(LIMITS.crowded_window_seconds)):
        assert not any(client.aborted for client in clients)
        for client in clients[:2]:
            client.waiting_bytes -= 1  # Slowly, so the time without progress never ends.
        await wire.wait(1)
    assert [client.aborted for client in clients] == [True, True, False, False]
    assert begun(clients) == [True] * 4


async def test_a_reader_for_which_nobody_waits_may_be_slow(wire: Wire) -> None:
    serve(wire)
    (client,) = await readers(wire, 1)
    for _ in range(200):
        client.waiting_bytes -= 1
        await wire.wait(1)
    assert not client.aborted


async def test_no_window_in_time_is_server_busy(wire: Wire) -> None:
    wire.limit(window_bytes=WINDOW_BYTES, request_seconds=0.001, crowded_window_seconds=10_000)
    serve(wire)
    await readers(wire, 1)
    waiting = wire.connect()
    await wire.send(GET, waiting)
    while not waiting.written:
        await settle()
    assert statuses(waiting.written) == [503]


@pytest.mark.parametrize("taken_after", [0.0, 0.4, 1.0, 17.5])
@pytest.mark.parametrize("length", [1000, ONE_PIECE_BYTES, 0])
async def test_a_reader_is_disconnected_a_second_after_its_time_at_most(
    wire: Wire, taken_after: float, length: int
) -> None:
    if length:
        wire.service.body = bytes(length)
    else:
        serve(wire)
    (client,) = await readers(wire, 1)
    passed, taken = 0.0, False
    while not client.aborted:
        if not taken and passed >= taken_after:
            client.waiting_bytes -= 1
            taken, taken_after = True, passed
        await wire.wait(0.25)
        passed += 0.25
        assert passed <= taken_after + STALL + 1
    assert passed >= taken_after + STALL


async def test_responses_that_wait_count_and_the_oldest_reader_goes(wire: Wire) -> None:
    wire.limit(authenticated_bytes=2_500_000)
    wire.service.body = bytes(ONE_PIECE_BYTES)
    clients = await readers(wire, 4)
    assert [client.aborted for client in clients] == [True, True, False, False]
    assert wire.state.authenticated.held_bytes <= 2_500_000
    clients[2].take(clients[2].waiting_bytes)
    assert wire.state.authenticated.held_bytes < 1_200_000


async def test_a_long_response_counts_as_a_whole_while_it_is_sent(wire: Wire) -> None:
    wire.limit(authenticated_bytes=10_000_000)
    wire.service.body = bytes(4 * ONE_PIECE_BYTES)
    clients = await readers(wire, 3)
    assert [client.aborted for client in clients] == [True, False, False]
    for client in clients[1:]:
        client.stalled = False
        client.take(client.waiting_bytes)
    await settle()
    assert wire.state.authenticated.held_bytes == 0


async def test_heads_of_a_client_with_credentials_count(wire: Wire) -> None:
    wire.limit(authenticated_bytes=200_000)
    clients = [wire.connect() for _ in range(5)]
    for client in clients:
        assert statuses(await wire.send(GET, client)) == [200]
        await wire.send(b"GET /t HTTP/1.1\r\nX: " + b"y" * 59_000, client)
    assert [client.aborted for client in clients] == [True, True, False, False, False]
    assert statuses(await wire.send(b"\r\nHost: h\r\n\r\n", clients[4])) == [200, 200]
    assert wire.state.authenticated.held_bytes < 130_000


async def test_a_public_reader_has_no_credentials_for_its_next_heads(wire: Wire) -> None:
    wire.limit(unauthenticated_bytes=200_000)
    serve(wire, is_public=True)
    clients = [wire.connect() for _ in range(5)]
    for client in clients:
        assert statuses(await wire.send(GET, client))[0] == 200
        await wire.send(b"GET /t HTTP/1.1\r\nX: " + b"y" * 59_000, client)
    assert [client.aborted for client in clients] == [True, True, False, False, False]


@pytest.mark.parametrize("windows", [0, 1])
async def test_a_first_window_that_cannot_be_read_is_server_busy(wire: Wire, windows: int) -> None:
    content = Content(windows, 10 * WINDOW_BYTES, EngineUnavailableError("Too many open files"))

    async def respond(_: Request) -> Response:
        return Response(200, content=content)

    wire.service.responds = respond
    output = await wire.send(GET)
    if windows:
        assert (statuses(output), wire.transport.aborted) == ([200], True)
    else:
        assert (statuses(output), wire.transport.aborted) == ([503], False)
    assert content.closed == 1
    assert wire.state.budgets.windows.held_bytes == 0


@pytest.mark.parametrize("is_public", [False, True])
async def test_a_reader_that_leaves_gives_its_window_back(wire: Wire, is_public: bool) -> None:
    wire.limit(window_bytes=WINDOW_BYTES, public_window_bytes=WINDOW_BYTES)
    serve(wire, is_public=is_public)
    first, second, third = await readers(wire, 3)
    second.abort()
    await settle()
    first.abort()
    await settle()
    assert begun([second, third]) == [False, True]
    third.abort()
    await settle()
    assert wire.state.budgets.windows.held_bytes == wire.state.budgets.public_windows.held_bytes == 0


class Beneath:
    """What the kernel tells of a TLS connection, whose transport shows nothing that waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent = outbound._Sent(1, 0, 100_000)
        monkeypatch.setattr(outbound.AckProgress, "_ask", lambda _: self.sent)


async def test_what_waits_encrypted_counts_until_it_has_arrived(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    beneath = Beneath(monkeypatch)
    wire.service.body = bytes(200_000)
    client = wire.connect("https")
    await wire.send(GET, client)
    await wire.wait(1)
    assert wire.state.authenticated.held_bytes > 200_000
    assert statuses(await wire.send(GET, client)) == [200, 200], "the next request is not held back"
    beneath.sent = outbound._Sent(0, 200_000, 0)
    await wire.wait(1)
    assert wire.state.authenticated.held_bytes == 0
    await wire.wait(STALL + 10)
    assert not client.aborted, "it is idle now"


async def test_a_tls_client_that_takes_nothing_is_disconnected(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    beneath = Beneath(monkeypatch)
    wire.service.body = bytes(200_000)
    client = wire.connect("https")
    await wire.send(GET, client)
    await wire.wait(STALL - 1)
    beneath.sent = beneath.sent._replace(acked_bytes=1)
    await wire.wait(1)
    await wire.wait(STALL - 1)
    assert not client.aborted
    await wire.wait(1)
    assert client.aborted
    assert wire.state.authenticated.held_bytes == 0
