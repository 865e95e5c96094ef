"""Load balancers of Debian's packages on loopback, with the files of `deploy/` and other addresses in them."""

import csv
import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.postgres.server import until

HOST = "127.0.0.3"
"""Connections to it come from 127.0.0.1, so none can have taken a port that a server will listen on again."""
DEPLOY = Path(__file__).parents[3] / "deploy"
STOP_SECONDS_MAX = 30
ADDRESSES = ("10.77.0.11:10002", "10.77.0.12:10002")
"""The addresses in the files of `deploy/`, of tables."""
QUEUE_ADDRESSES = ("10.77.0.11:10001", "10.77.0.12:10001")
"""Those of queues."""
BLOB_ADDRESSES = ("10.77.0.11:10000", "10.77.0.12:10000")
"""Those of blobs."""


def free() -> str:
    """Return an address on which no process listens."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        return f"{HOST}:{found.getsockname()[1]}"


def program(name: str) -> str | None:
    """Return the path of a program, which an ordinary user may not have on the path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Balancer:
    """A running load balancer: at `address` for tables, `queue_address`, and `blob_address`. Its creator closes it."""

    name: str
    delay_seconds: float | None = None
    """How long a process that stops must wait for it; None: until it has noticed (`up`)."""
    settling_seconds: float = 0
    """How much longer than its start a new process must be waited for."""

    def __init__(
        self,
        directory: Path,
        servers: Sequence[str],
        queue_servers: Sequence[str] = (),
        blob_servers: Sequence[str] = (),
    ) -> None:
        """Balance over the servers at these addresses; a service without servers has none that responds."""
        self.address, self.queue_address, self.blob_address = free(), free(), free()
        self._servers = servers
        self._queue_servers = queue_servers or [free() for _ in servers]
        self._blob_servers = blob_servers or [free() for _ in servers]
        self._directory = directory
        with (directory / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), cwd=directory, stdout=log, stderr=log)
        try:
            until(self._answers, f"{self.name} to answer")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()

    def up(self, server: int) -> bool:
        """Tell whether the load balancer knows that a server responds."""
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _filled_in(self, name: str, **others: str) -> str:
        """Return a file of `deploy/` with our addresses."""
        text = (DEPLOY / name).read_text(encoding="utf-8")
        documented = ADDRESSES + QUEUE_ADDRESSES + BLOB_ADDRESSES
        servers = zip(documented, (*self._servers, *self._queue_servers, *self._blob_servers), strict=True)
        for old, new in {**dict(servers), **others}.items():
            assert text.count(old) == 1, f"{name} has {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        return text

    def _answers(self) -> bool:
        said = (self._directory / f"{self.name}.log").read_text(errors="replace")
        assert self._process.poll() is None, f"{self.name} ended with {self._process.returncode}: {said}"
        return _connects(self.address) and all(map(self.up, range(len(self._servers))))


class HAProxy(Balancer):
    """Asks each server for its health."""

    name = "haproxy"

    def up(self, server: int) -> bool:
        """See `Balancer`. A server that is about to be taken out is up."""
        with suppress(OSError):
            return self._states()[f"lazulite-{server + 1}"].startswith("UP")
        return False

    def _states(self) -> dict[str, str]:
        host, port = self._control.split(":")
        with socket.create_connection((host, int(port))) as control, control.makefile("rw") as lines:
            lines.write("show stat\n")
            lines.flush()
            return {row["svname"]: row["status"] for row in csv.DictReader(lines) if row["svname"]}

    def _command(self) -> list[str]:
        self._control = free()
        us = {
            "    user haproxy\n": "",
            "    group haproxy\n": "",
            "maxconn 20000": "maxconn 200",
            "bind :10002": f"bind {self.address}",
            "bind :10001": f"bind {self.queue_address}",
            "bind :10000": f"bind {self.blob_address}",
            "socket /run/haproxy/admin.sock mode 600": f"socket ipv4@{self._control}",
        }
        (self._directory / "haproxy.cfg").write_text(self._filled_in("haproxy.cfg", **us))
        return [program(self.name) or self.name, "-db", "-f", "haproxy.cfg"]


class Nginx(Balancer):
    """Makes no health checks: a refused connection shows that a server has ended."""

    name = "nginx"
    delay_seconds = 10
    settling_seconds = 3

    def up(self, server: int) -> bool:
        """See `Balancer`. It is not known, so what counts is that the server lets us in."""
        return _connects(self._servers[server])

    def _command(self) -> list[str]:
        us = {
            "listen 10002": f"listen {self.address}",
            "listen 10001": f"listen {self.queue_address}",
            "listen 10000": f"listen {self.blob_address}",
            "    10001 ": f"    {self.queue_address.rpartition(':')[2]} ",
        }
        text = self._filled_in("nginx.conf", **us)
        (self._directory / "lazulite.conf").write_text(text)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        lines = [
            "user root;" if os.geteuid() == 0 else "",
            "daemon off; pid nginx.pid; worker_processes 2; error_log error.log warn; events {}",
            "http { access_log off;",
            *(f"{kind}_temp_path {kind};" for kind in kinds),
            "include lazulite.conf; }",
        ]
        (self._directory / "nginx.conf").write_text("\n".join(lines))
        return [program(self.name) or self.name, "-p", ".", "-c", "nginx.conf", "-e", "error.log"]

    def close(self) -> None:
        """End it in order, for its workers would outlive it."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        finally:
            super().close()


BALANCERS = (HAProxy, Nginx)


def present() -> list[type[Balancer]]:
    """Return the load balancers that are installed here."""
    return [each for each in BALANCERS if program(each.name)]


def _connects(address: str) -> bool:
    host, port = address.split(":")
    with suppress(OSError), socket.create_connection((host, int(port))):
        return True
    return False
