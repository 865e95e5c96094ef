"""A server on a disk that can be broken, clients at work on it, and what is looked at around a fault."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from tests.server_process import LAZULITE, Program, ServerProcess
from tests.torture.http_client import assembled

from .faulty_disk import FaultyDisk
from .http import Http
from .load import COLD_PARTITIONS, Client, Running, Tally, prepare

CLIENTS = 6
MUTATED: Program = ("tests.torture.mutations",)
PATIENCE_SECONDS = 60.0
"""The longest wait for anything."""


class Bench:
    """Everything of one run. `disk` covers `home`, in which the server has `data`."""

    def __init__(
        self, workplace: Path, seed: int, program: Program = LAZULITE, patience: float = PATIENCE_SECONDS
    ) -> None:
        self.home = workplace / "disk"
        self.home.mkdir(exist_ok=True)
        self.disk = FaultyDisk(workplace, self.home)
        self.data = self.home / "data"
        self.tally = Tally()
        self.clients = [Client(number, seed, self.tally) for number in range(CLIENTS)]
        self._program = program
        self._patience = patience
        self._server: ServerProcess | None = None
        self._load = AsyncExitStack()

    @property
    def pid(self) -> int:
        """The server's process."""
        return self.server.pid

    @property
    def server(self) -> ServerProcess:
        """The server."""
        assert self._server is not None
        return self._server

    @property
    def ended(self) -> bool:
        """Whether the server's process has ended by itself."""
        return self.server.ended

    async def start(self) -> None:
        """Start the server and the load."""
        new = not self.data.exists()
        self._server = ServerProcess.start(self.data, program=self._program, **self.disk.variables)
        if new:
            await prepare(self.server.account)
        await self._load.enter_async_context(Running(self.clients, self.server.account))

    def try_to_start(self) -> str | None:
        """Start the server without load and stop it; return what it said if it did not start."""
        log = self.data.with_name(f"{self.data.name}.log")
        log.unlink(missing_ok=True)
        try:
            server = ServerProcess.start(self.data, program=self._program, **self.disk.variables)
        except AssertionError:
            return log.read_text()
        server.terminate()
        return None

    async def rest(self) -> None:
        """Stop the load."""
        await self._load.aclose()

    async def stop(self, *, kill: bool = False) -> int:
        """Stop the load, and the server by a signal or without one; return its exit code."""
        await self._load.aclose()
        if kill:
            self.server.kill()
        else:
            self.server.signal(signal.SIGTERM)
        code = await asyncio.to_thread(self.server.join)
        self._server = None
        return code

    async def answers(self, count: int) -> None:
        """Return after so many answers of any kind, or a broken promise."""
        end = self.tally.total + count
        async with asyncio.timeout(self._patience):
            while self.tally.total < end and not self.ended and not self.tally.problems:
                await self.tally.turn()

    async def health(self) -> str:
        """Return the status of `GET /health`, with what it says; "" without a connection."""
        http = Http(self.server.account)
        try:
            answer = await http.ask(assembled("GET", "/health", b"", {}))
            return f"{answer.status} {answer.body.decode()}"
        except OSError:
            return ""
        finally:
            http.close()

    async def unwell(self) -> str:
        """Return what `health` says once it is not 200: the result of a check stands for a second."""
        said = await self.health()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while said.startswith("200") and not self.tally.problems:
                    await self.tally.turn()
                    said = await self.health()
        return said

    async def recovered(self) -> float | None:
        """Wait until each client has a write acknowledged and health is well; return the seconds.

        None: it does not happen. A broken promise ends the wait.
        """
        began = time.monotonic()
        before = [client.acknowledged for client in self.clients]
        try:
            async with asyncio.timeout(self._patience):
                while not self._served_since(before) and not self.tally.problems:
                    await self.tally.turn()
                while not (await self.health()).startswith("200") and not self.tally.problems:
                    await self.tally.turn()
        except TimeoutError:
            return None
        return time.monotonic() - began

    async def served_or_ended(self) -> None:
        """Return once each client has a write acknowledged, or the process has ended, or a promise is broken.

        A process that ends closes its connections some time before it can be waited for.
        """
        before = [client.acknowledged for client in self.clients]
        async with asyncio.timeout(self._patience):
            while not self._served_since(before) and not self.ended and not self.tally.problems:
                await self.tally.turn()

    def _served_since(self, before: list[int]) -> bool:
        return all(client.acknowledged > old for client, old in zip(self.clients, before, strict=True))

    async def verify(self) -> None:
        """Read all rows while no client writes; wrong rows become problems."""
        http = Http(self.server.account)
        try:
            for client in self.clients:
                await client.look(http)
            for number in range(COLD_PARTITIONS):
                await self.clients[0].look_at_the_cold(http, f"cold{number}")
        finally:
            http.close()

    def cpu_seconds(self) -> float:
        """How much of a processor the server has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of Lazulite on this disk."""
        return subprocess.run(
            [sys.executable, "-m", "lazulite", *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            env={**os.environ, **self.disk.variables},
        )
