"""The channel beside its client: commands, and what either side gets from a stranger at the other end."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import pytest

from lazulite.control import channel as channel_module
from lazulite.control.channel import CONNECTIONS_MAX, Channel
from lazulite.control.client import Client, ask, ask_each
from lazulite.control.command import Command, ControlError, Json, NoArguments, single
from lazulite.control.messages import PROTOCOL, REQUEST_BYTES_MAX, RESPONSE_LINE_BYTES_MAX
from lazulite.engine.contract import EngineUnavailableError


@dataclass(frozen=True, slots=True)
class Count:
    name: str
    account: str
    top: int = 3
    share: float | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        if self.top < 0:
            raise ValueError("top must not be negative")


COUNT = Command("count", Count)
BROKEN = Command("broken", NoArguments)
HELD = Command("held", NoArguments, seconds_max=None)
SLOW = Command("slow", NoArguments, seconds_max=0.0)
LARGE = Command("large", NoArguments)
UNKNOWN = Command("unknown", NoArguments)


async def count(asked: Count) -> AsyncGenerator[Json, None]:
    for number in range(asked.top):
        yield {"name": asked.name, "number": number, "share": asked.share, "verbose": asked.verbose}


async def broken(_: NoArguments) -> AsyncGenerator[Json, None]:
    yield 1
    raise EngineUnavailableError("the disk is full")


async def large(_: NoArguments) -> AsyncGenerator[Json, None]:
    yield "x" * RESPONSE_LINE_BYTES_MAX


class Hold:
    """A command that has one item and then never ends, and notes that it was ended."""

    def __init__(self) -> None:
        self.begun, self.ended, self.may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, _: NoArguments) -> AsyncGenerator[Json, None]:
        try:
            self.begun.set()
            yield 1
            await asyncio.Event().wait()
        finally:
            await self.may_end.wait()
            self.ended.set()


class Served:
    """A channel with the commands above."""

    def __init__(self) -> None:
        self.channel, self.hold = Channel("1.2.3"), Hold()
        self.channel.register(COUNT, count)
        self.channel.register(BROKEN, broken)
        self.channel.register(LARGE, large)
        self.channel.register(HELD, self.hold)
        self.channel.register(SLOW, self.hold)

    def connect(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.settimeout(30)
        self.channel.attach(theirs)
        return ours

    async def run(self, use: Callable[[Client], Any]) -> Any:
        """Run a function with a client in a thread."""
        loop = asyncio.get_running_loop()

        def connect() -> socket.socket:
            ours, theirs = socket.socketpair()
            ours.settimeout(30)
            loop.call_soon_threadsafe(self.channel.attach, theirs)
            return ours

        return await asyncio.to_thread(use, Client(connect))

    async def answer(self, line: bytes) -> list[dict[str, Any]]:
        """Return the lines that a connection gets after `line`."""
        connection = self.connect()

        def exchange() -> list[dict[str, Any]]:
            with connection, connection.makefile("rb") as lines:
                with suppress(ConnectionError):
                    connection.sendall(line)
                return [json.loads(each) for each in iter(partial(_line, lines), b"")]

        return await asyncio.to_thread(exchange)


def _line(lines: BinaryIO) -> bytes:
    try:
        return lines.readline()
    except ConnectionError:  # The server has closed a connection of which it had not read all.
        return b""


@pytest.fixture(name="served")
async def _served() -> AsyncIterator[Served]:
    served = Served()
    yield served
    served.hold.may_end.set()
    await served.channel.close()


def items(command: Command[Any], arguments: Any, client: Client) -> list[Json]:
    return list(client.stream(command, arguments))


async def test_a_command_streams_its_items(served: Served) -> None:
    found = await served.run(partial(items, COUNT, Count("Orders", "a", top=2, share=0.5, verbose=True)))
    assert found == [{"name": "Orders", "number": n, "share": 0.5, "verbose": True} for n in range(2)]
    assert await served.run(partial(items, COUNT, Count("Orders", "a", top=0))) == []
    assert await ask(served.connect(), COUNT, Count("Orders", "a", top=1)) == [
        {"name": "Orders", "number": 0, "share": None, "verbose": False}
    ]


async def test_ask_returns_the_first_item_and_ends_the_command(served: Served) -> None:
    served.hold.may_end.set()
    assert await served.run(lambda client: client.ask(HELD, NoArguments())) == 1
    await served.hold.ended.wait()


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (BROKEN, "failed", "the disk is full"),
        (LARGE, "too-long", "an item"),
        (UNKNOWN, "unknown-command", r"\(version 1\.2\.3\) has no command 'unknown'; it has broken, count"),
    ],
)
async def test_a_failure_is_raised_at_the_client(
    served: Served, command: Command[NoArguments], code: str, text: str
) -> None:
    with pytest.raises(ControlError, match=text) as raised:
        await served.run(partial(items, command, NoArguments()))
    assert raised.value.code == code


async def test_what_is_late_is_ended(served: Served) -> None:
    served.hold.may_end.set()
    with pytest.raises(ControlError, match="more than 0 seconds"):
        await served.run(partial(items, SLOW, NoArguments()))
    assert served.hold.ended.is_set()


def request(**changes: Any) -> bytes:
    whole = {"protocol": PROTOCOL, "command": "count", "arguments": {"name": "n", "account": "a"}, **changes}
    return json.dumps(whole).encode() + b"\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"checkpoint\n", "bad-request"),
        (b"\xff\n", "bad-request"),
        (b"[1]\n", "bad-request"),
        (b"[" * 50_000 + b"\n", "bad-request"),
        (request(command=1), "bad-request"),
        (request(protocol=2), "unknown-protocol"),
        (request(protocol="1"), "unknown-protocol"),
        (b'{"command": "count"}\n', "unknown-protocol"),
        (request(command="x" * 1000), "unknown-command"),
        (request(arguments=[]), "bad-request"),
        (request(arguments=None), "bad-request"),
        (request(arguments={"name": "n"}), "bad-request"),
        (request(arguments={"name": "n", "account": 1}), "bad-request"),
        (request(arguments={"name": "n", "account": "a", "other": 1}), "bad-request"),
        (request(arguments={"name": "n", "account": "a", "top": True}), "bad-request"),
        (request(arguments={"name": "n", "account": "a", "top": 1.5}), "bad-request"),
        (request(arguments={"name": "n", "account": "a", "top": None}), "bad-request"),
        (request(arguments={"name": "n", "account": "a", "top": -1}), "bad-request"),
        (request(arguments={"name": "n", "account": "a", "verbose": 1}), "bad-request"),
        (request(arguments={"name": "n", "account": "a", "share": float("nan")}), "bad-request"),
        (request(arguments={"name": "n" * REQUEST_BYTES_MAX, "account": "a"}), "too-long"),
        (b"x" * (REQUEST_BYTES_MAX * 20) + b"\n", "too-long"),
        (b"x" * (REQUEST_BYTES_MAX * 20), "too-long"),
    ],
)
async def test_a_wrong_request_gets_an_error(served: Served, line: bytes, code: str) -> None:
    hello, *_, error = await served.answer(line)
    assert hello == {"protocol": PROTOCOL, "server": "1.2.3"}
    assert error["error"]["code"] == code
    assert len(error["error"]["text"]) < 300


@pytest.mark.parametrize("share", [1, 1.5, None])
async def test_a_number_may_be_an_integer_or_missing(served: Served, share: float | None) -> None:
    _, *found, end = await served.answer(request(arguments={"name": "n", "account": "a", "top": 1, "share": share}))
    assert [each["item"]["share"] for each in found] == [share]
    assert end == {"end": True}


async def test_a_client_has_a_bounded_time_for_its_request(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "REQUEST_SECONDS_MAX", 0.0)
    _, error = await served.answer(b'{"protocol"')
    assert error["error"]["code"] == "timeout"


async def test_a_client_that_takes_nothing_is_hung_up_on(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "STALL_SECONDS_MAX", 0.0)
    ended = asyncio.Event()

    async def endless(_: NoArguments) -> AsyncGenerator[Json, None]:
        try:
            while True:
                yield "x" * 100_000
        finally:
            ended.set()

    served.channel.register(BROKEN, endless)
    with served.connect() as connection:
        connection.sendall(request(command="broken", arguments={}))
        await ended.wait()


async def test_a_handler_ends_when_its_client_hangs_up(served: Served) -> None:
    served.hold.may_end.set()
    with served.connect() as connection:
        connection.sendall(request(command="held", arguments={}))
        await served.hold.begun.wait()
        assert not served.hold.ended.is_set()
    await served.hold.ended.wait()


async def test_close_waits_for_what_a_handler_undoes(served: Served) -> None:
    connection = served.connect()
    connection.sendall(request(command="held", arguments={}))
    await served.hold.begun.wait()
    connection.close()
    closing = asyncio.create_task(served.channel.close())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not closing.done()
    served.hold.may_end.set()
    await closing
    assert served.hold.ended.is_set()


async def test_a_client_learns_that_the_server_stops(served: Served) -> None:
    served.hold.may_end.set()
    asking = asyncio.create_task(served.run(partial(items, HELD, NoArguments())))
    await served.hold.begun.wait()
    await served.channel.close()
    with pytest.raises(ControlError, match="it is stopping") as raised:
        await asking
    assert raised.value.code == "cut"


async def test_connections_have_a_bound(served: Served) -> None:
    served.hold.may_end.set()
    held = [served.connect() for _ in range(CONNECTIONS_MAX)]
    with pytest.raises(ControlError, match="16 commands already"):
        await served.run(partial(items, COUNT, Count("n", "a")))
    flood = await asyncio.gather(*(served.answer(request()) for _ in range(100)))
    assert {lines[-1]["error"]["code"] for lines in flood} == {"busy"}
    for each in held:
        each.close()
    await asyncio.gather(*served.channel._connections)
    assert len(await served.run(partial(items, COUNT, Count("n", "a")))) == 3


def lines_of(*lines: bytes) -> Callable[[], socket.socket]:
    """Return what connects to a server that sends these lines, whatever it is asked."""

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.sendall(b"".join(lines))
        return ours

    return connect


HELLO = b'{"protocol":1,"server":"9"}\n'


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((), "cut"),
        ((HELLO,), "cut"),
        ((HELLO, b'{"item":1}\n{"it'), "cut"),
        ((b'{"protocol":2,"server":"9"}\n',), "unknown-protocol"),
        ((b"hello\n",), "bad-request"),
        ((HELLO, b"{}\n"), "bad-response"),
        ((HELLO, b'{"error":{"code":"odd","text":"so"}}\n'), "odd"),
    ],
)
async def test_a_client_rejects_what_is_no_response(lines: tuple[bytes, ...], code: str) -> None:
    with pytest.raises(ControlError) as raised:
        items(COUNT, Count("n", "a"), Client(lines_of(*lines)))
    assert raised.value.code == code
    with pytest.raises(ControlError):
        await ask(lines_of(*lines)(), COUNT, Count("n", "a"))


def test_a_client_does_not_read_a_line_without_end() -> None:
    ours, theirs = socket.socketpair()

    def feed() -> None:
        with suppress(OSError), theirs:
            theirs.sendall(HELLO + b"x" * (RESPONSE_LINE_BYTES_MAX * 2))

    thread = threading.Thread(target=feed)
    thread.start()
    with pytest.raises(ControlError, match="too long"):
        items(COUNT, Count("n", "a"), Client(lambda: ours))
    thread.join()


def test_a_request_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(ControlError, match="the arguments of count"):
        items(COUNT, Count("n" * REQUEST_BYTES_MAX, "a"), Client(lambda: pytest.fail("connected")))


async def test_several_processes_are_asked_at_once(served: Served) -> None:
    silent, kept = socket.socketpair()

    def gone() -> socket.socket:
        raise BrokenPipeError("it ended")

    connects = {"good": served.connect, "cut": lines_of(HELLO), "silent": lambda: silent, "gone": gone}
    good, *others = await ask_each(connects, COUNT, Count("n", "a", top=1), 0.2)
    assert (good.process, len(good.items), good.error) == ("good", 1, None)
    errors = [(each.process, each.items, each.error and each.error.code) for each in others]
    assert errors == [("cut", (), "cut"), ("silent", (), "timeout"), ("gone", (), "cut")]
    kept.close()


async def test_single_is_the_one_result() -> None:
    async def seven() -> Json:
        return 7

    assert [item async for item in single(seven())] == [7]
