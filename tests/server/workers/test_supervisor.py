"""Processes at their places: started, replaced, ended, whatever they do. What they are here are lines of Python."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from lazulite.server.limits import Limits
from lazulite.server.server import BindError
from lazulite.server.workers import supervisor
from lazulite.server.workers.supervisor import Address, WorkerError, WorkerListener, WorkerSupervisor, _send

SETTINGS = b"settings"
GOOD = "import os, sys; os.read(0, 16); os.write(1, b'ready\\n'); sys.exit(0 if os.read(0, 1) in (b'd', b'') else 9)"
DEAF = "import os, time; os.read(0, 16); os.write(1, b'ready\\n'); time.sleep(600)"
BROKEN = "import sys; sys.exit(3)"


class Stage:
    """Workers of a kind, and what was reported of them."""

    def __init__(self, code: str, count: int = 2, port: int = 0, listener: WorkerListener | None = None) -> None:
        self.streams: list[socket.socket] = []
        self.attached: asyncio.Queue[None] = asyncio.Queue()
        self.reported: asyncio.Queue[str] = asyncio.Queue()
        self.places = WorkerSupervisor(
            lambda store, passage, sockets: [sys.executable, "-c", code],
            SETTINGS,
            count=count,
            addresses={"notes": Address("127.0.0.1", port, None)},
            limits=Limits(drain_seconds=0.01),
            attach=self._attach,
            report=self.reported.put_nowait,
            listener=listener,
        )

    async def _attach(self, stream: socket.socket, kill: Callable[[], None]) -> None:
        self.streams.append(stream)
        self.attached.put_nowait(None)

    def pids(self) -> list[int]:
        return [process.pid for process in self.places._processes.values()]

    async def end(self) -> None:
        await self.places.stop()
        for stream in self.streams:
            stream.close()
        assert self.pids() == []


@pytest.fixture(name="stage")
async def _stage() -> AsyncIterator[Stage]:
    stage = Stage(GOOD)
    await stage.places.start()
    yield stage
    await stage.end()


async def test_they_share_a_port_and_end_when_asked_to(stage: Stage) -> None:
    assert len(stage.pids()) == 2
    with pytest.raises(BindError, match="in use"):
        await Stage(GOOD, port=stage.places.ports["notes"].http or 0).places.start()
    port = stage.places.ports["notes"].http or 0
    processes = list(stage.places._processes.values())
    await stage.places.stop()
    assert [process.returncode for process in processes] == [0, 0]
    with socket.create_server(("127.0.0.1", port)):
        pass  # The port is free.


async def test_one_that_dies_is_replaced(stage: Stage) -> None:
    victim, other = stage.pids()
    os.kill(victim, signal.SIGKILL)
    assert "worker 1 ended with -9" in await stage.reported.get()
    for _ in range(3):
        await stage.attached.get()
    assert other in stage.pids()


async def test_who_cannot_start_at_all_ends_the_start() -> None:
    stage = Stage(BROKEN)
    with pytest.raises(WorkerError):
        await stage.places.start()
    await stage.end()


async def test_who_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STOP_SECONDS_MAX", 0.0)
    stage = Stage(DEAF)
    await stage.places.start()
    processes = list(stage.places._processes.values())
    await stage.end()
    assert [process.returncode for process in processes] == [-9, -9]


LEAVER = "import os, sys; os.read(0, 16); os.write(1, b'ready\\n'); sys.exit(7 if os.read(0, 1) == b'l' else 9)"


async def test_all_are_asked_to_leave_and_so_is_one_that_begins_later() -> None:
    stage = Stage(LEAVER, count=1)
    await stage.places.start()
    stage.places.leave()
    for _ in range(2):
        assert "ended with 7" in await stage.reported.get()
    await stage.end()


TALKER = (
    "import os, sys; os.read(0, 16); os.write(1, b'ready\\n')\n"
    "while (said := os.read(0, 1)) == b'm': os.write(1, b'%d x' % os.getpid() + bytes(100_000) + b'\\n')"
)


class Heard:
    """A `WorkerListener` that asks each process for one line."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self.ended: asyncio.Queue[int] = asyncio.Queue()

    def on_ready(self, worker: int, ask: Callable[[], None]) -> None:
        ask()

    def on_line(self, worker: int, line: bytes) -> None:
        self.lines.put_nowait((worker, line))

    def on_end(self, worker: int) -> None:
        self.ended.put_nowait(worker)


async def test_a_listener_is_reported_of_lines_and_ends() -> None:
    heard = Heard()
    stage = Stage(TALKER, listener=heard)
    await stage.places.start()
    lines = dict([await heard.lines.get() for _ in range(2)])
    assert {int(line.split()[0]) for line in lines.values()} == set(stage.pids())
    assert min(map(len, lines.values())) > 100_000, "no line is cut short"
    os.kill(int(lines[1].split()[0]), signal.SIGKILL)
    assert await heard.ended.get() == 1
    assert (await heard.lines.get())[0] == 1, "its successor is asked, too"
    await stage.end()
    assert sorted([await heard.ended.get() for _ in range(2)]) == [0, 1]


@pytest.mark.parametrize("failure", [RuntimeError("the handler is closed"), BrokenPipeError()])
def test_who_has_just_ended_is_reported_in_vain(failure: Exception) -> None:
    class Closed:
        def write(self, _: bytes) -> None:
            raise failure

    _send(cast("Process", SimpleNamespace(stdin=Closed())), b"stop")
