"""A process of `lazulite serve --engine` among others on its database."""

import signal
import subprocess
from pathlib import Path

from tests.server_process import SECONDS_MAX, Program, environment, spawn

from .balancers import free

NEVER_SECONDS = 600


class Process:
    """A `lazulite serve` on the database, at an address that stays its own."""

    def __init__(
        self,
        name: str,
        dsn: str,
        delay_seconds: float | None,
        directory: Path,
        server: Program,
        *,
        all_services: bool = False,
    ) -> None:
        """`delay_seconds` None: it waits until it is asked again. `all_services`: it serves more than tables."""
        self.address, self.queue_address, self.blob_address = free(), free(), free()
        self._environment = environment(LAZULITE_ENGINE=dsn)
        delay = str(NEVER_SECONDS if delay_seconds is None else delay_seconds)
        flags = ["--silent", "--drain-delay-seconds", delay, "--keep-alive-seconds", "600"]
        flags += ["--trusted-proxy", "127.0.0.1", "--services", "table,queue,blob" if all_services else "table"]
        addresses = {"table": self.address, "queue": self.queue_address, "blob": self.blob_address}
        for service, address in addresses.items():
            host, port = address.split(":")
            flags += [f"--{service}-host", host, f"--{service}-port", port]
        self._program = server
        self._flags = flags
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it; return when it lets clients in."""
        with self._log.open("a") as log:
            self._process = process = spawn(
                "serve", *self._flags, program=self._program, stderr=log, variables=self._environment
            )
        assert process.stdout is not None
        assert "listens" in process.stdout.readline(), self._log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def join(self) -> int:
        """Return its exit code once it has ended."""
        assert self._process is not None
        try:
            return self._process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"a process has not ended after {SECONDS_MAX} s") from None

    def close(self) -> None:
        """End it, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
