"""The target of hostile clients, a connection to it, and the outcomes of their attacks.

A scenario repeats its *attack*. Each attack ends in an *outcome*: the status of the response; `CUT`, where the server
closed the connection without one; or `NOTHING`, where no response came in time.
"""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count

from benchmarks.requests import Requests

CUT = "cut"
NOTHING = "nothing"
HOST = "127.0.0.1"
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time at all: closing resets the connection."""


@dataclass
class Target:
    """A server to be abused, and what came of it."""

    port: int
    https_port: int
    patience_seconds: float = 3600.0
    """How long an answer is waited for."""
    outcomes: Counter[str] = field(default_factory=Counter)
    wires: set["Wire"] = field(default_factory=set)
    """Connections that are open on this side."""
    _opened_count: int = 0

    def __post_init__(self) -> None:
        self._enough, self._is_enough = 0, asyncio.Event()
        self.requests = Requests(f"{HOST}:{self.port}", datetime.now(UTC))

    def note_opened(self) -> None:
        """Count a connection."""
        self._opened_count += 1
        if self._opened_count >= self._enough:
            self._is_enough.set()

    async def opened(self, enough: int) -> None:
        """Return when so many connections have been made."""
        self._enough = enough
        if self._opened_count < enough:
            self._is_enough.clear()
            await self._is_enough.wait()


class Wire:
    """One connection of a client that sends what it likes."""

    def __init__(self, target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._target = target
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, target: Target, port: int | None = None) -> "Wire":
        """Connect."""
        wire = cls(target, *await asyncio.open_connection(HOST, port or target.port))
        target.note_opened()
        target.wires.add(wire)
        return wire

    async def send(self, data: bytes) -> None:
        """Send, as fast as the server takes it."""
        self._writer.write(data)
        await self._writer.drain()

    async def outcome(self, *, final: bool = False) -> str:
        """Count and return what the next answer says; with `final`, the connection must end behind it."""
        outcome = CUT
        try:
            async with asyncio.timeout(self._target.patience_seconds):
                outcome = (await self.answer())[0]
                if final and await self._reader.read():
                    outcome += " and more"
        except TimeoutError:
            outcome = NOTHING
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        self._target.outcomes[outcome] += 1
        return outcome

    async def page(self) -> bytes:
        """Count an answer, and return its head."""
        outcome, head, _ = await self.answer()
        self._target.outcomes[outcome] += 1
        return head

    async def answer(self) -> tuple[str, bytes, bytes]:
        """Return an answer's outcome, its head and its body."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        body = await self._reader.readexactly(int(length or 0))
        status = head[9:12].decode()
        if body.startswith(b"--"):  # A batch: what its first operation was answered.
            status += f"/{body.partition(b'HTTP/1.1 ')[2][:3].decode()}"
        return status, head, body

    def stop_reading(self) -> None:
        """Take no byte from now on."""
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]  # asyncio's stubs have it on ReadTransport only

    def vanish(self) -> None:
        """Reset the connection."""
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.abort()

    def close(self) -> None:
        """Close."""
        self._target.wires.discard(self)
        self._writer.close()

    def abort(self) -> None:
        """Close, and forget what was not sent."""
        self._target.wires.discard(self)
        self._writer.transport.abort()


ATTACK_ROUNDS = 2
"""How often a numbered attack repeats itself on its connection."""

Again = Callable[[], bool]
Attack = Callable[[Target, Again], Awaitable[None]]
"""One connection's worth of abuse; what repeats itself on a connection asks each time whether to go on."""


@dataclass(frozen=True)
class Scenario:
    """One kind of abuse.

    Attributes:
        attack: what it does, over and over.
        at_once: how many do it at a time.
        outcomes: all that may come of it.
        pause_seconds: between two attacks of one, where the server's work is to be bounded.
    """

    attack: Attack
    at_once: int
    outcomes: frozenset[str]
    pause_seconds: float = 0.0


async def abuse(scenario: Scenario, target: Target, attacks: int | None = None) -> None:
    """Let a scenario loose: so many attacks each, or until it is cancelled."""

    async def one() -> None:
        for _ in count() if attacks is None else range(attacks):
            rounds = count() if attacks is None else iter(range(ATTACK_ROUNDS))
            try:
                await scenario.attack(target, partial(_more, rounds))
            except (ConnectionError, asyncio.IncompleteReadError):
                target.outcomes[CUT] += 1
            await asyncio.sleep(scenario.pause_seconds)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(scenario.at_once):
                group.create_task(one())
    finally:
        for wire in list(target.wires):
            wire.abort()


def _more(rounds: Iterator[int]) -> bool:
    return next(rounds, None) is not None
