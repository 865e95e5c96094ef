"""Does what a page of documentation says, from top to bottom, as its reader would.

How a page is read:

- a fence marked `sh`, `bash` or nothing is run by bash, in a directory that looks like a checkout; lines that begin
  `make serve` or `.venv/bin/lazulite serve` start a server, which stays until another one starts or the page ends;
- a fence marked `python` is run in one namespace for the page;
- a fence marked `output` is what the fence before it prints, `…` standing for any text within a line;
- the comment `<!-- test: skip because … -->` before a fence leaves it out, `<!-- test: stopped because … -->` stops
  the server before it, and `<!-- test: prepared because … -->` gives the reader `PREPARED` first; each needs a reason.

What differs from a reader's checkout: the ports of services and 9464 are free ones, in the text, and the former as the
command's defaults; what would install is installed; `make check` and `make test` are only rehearsed (`make -n`), as
they run this; benchmarks run briefly, and the example on the first rows of its file. Places outside of the checkout are
moved into it.
"""

import contextlib
import io
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import BlobClient, BlobServiceClient, ContainerClient
from azure.storage.queue import QueueClient, QueueServiceClient

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.cli.connection_string import connection_string, path_style
from lazulite.settings.addresses import DEFAULT_PORTS
from lazulite.settings.config import ACCOUNT_VARIABLES
from lazulite.settings.database import DATABASE_VARIABLES

ROOT = Path(__file__).parents[1]
SECONDS_MAX = 900
DOCUMENTED_METRICS_PORT = 9464
SHELL = frozenset({"", "sh", "bash"})
RUN = SHELL | {"python"}
ROOT_PAGES = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")]
"""The pages of the project in its root, where a user may have pages, too."""
PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in (
        *ROOT_PAGES,
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "operations").glob("*.md"),
        ROOT / "examples" / "README.md",
        ROOT / "benchmarks" / "README.md",
    )
)
PATTERNS = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "patterns").rglob("*.md"))
"""Pages of the pattern library, whose own tests run their examples."""
MOVED = {"/mnt/fast-disk": "fast-disk", "/tmp/tables": "tables"}
BRIEFLY = "--quick --seconds 0.1 --entities 1000 --big 2000 --ingest-seconds 0.2 --max-requests 20 --client asyncio"
EXAMPLE_ROWS = 300
PREPARED = """
.venv/bin/lazulite account add orders
CONNECTION_STRING=$(.venv/bin/lazulite connection-string --account orders) .venv/bin/python -c '
import os
from azure.data.tables import TableServiceClient
with TableServiceClient.from_connection_string(os.environ["CONNECTION_STRING"]) as service:
    service.create_table("Orders")
'
"""
"""What a reader of a later page did on earlier ones: an account of their own, and a table."""

_CLIENTS = (
    *(TableClient, TableServiceClient, QueueClient, QueueServiceClient),
    *(BlobClient, ContainerClient, BlobServiceClient),
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!-- test: (skip|stopped|prepared) because (\S[^\n]*) -->\n\Z")
_SERVE = re.compile(r"(?:\w+=\S+ )*(?:make serve|\.venv/bin/lazulite serve)\b")


class Fence(NamedTuple):
    """A fenced block. `line` is that of its first line of text; `marker` is empty, `skip`, `stopped` or `prepared`."""

    page: str
    line: int
    language: str
    text: str
    marker: str = ""
    reason: str = ""


def page_text(page: str) -> str:
    """Return the text of a page, named from the repository's root."""
    return (ROOT / page).read_text(encoding="utf-8")


def table_rows(page: str) -> list[list[str]]:
    """Return the cells of each table row of a page."""
    lines = [line for line in page_text(page).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def fences(page: str) -> list[Fence]:
    """Return the blocks of a page, in order."""
    text = page_text(page)
    found = []
    for match in _FENCE.finditer(text):
        marker = _MARKER.search(text, 0, match.start())
        said = (marker[1], marker[2]) if marker else ("", "")
        found.append(Fence(page, text.count("\n", 0, match.start()) + 2, match[1], match[2], *said))
    return found


def prints(printed: str, expected: str) -> bool:
    """Tell whether a text is the expected one; `…` there stands for anything within a line."""
    pattern = "[^\n]*".join(map(re.escape, expected.strip().split("…")))
    return re.fullmatch(pattern, printed.strip()) is not None


def free_ports(count: int) -> list[int]:
    """Return so many free ports of 127.0.0.1, all different.

    They lie below the ports that the kernel gives to clients, which could take one before its server starts.
    """
    with ExitStack() as held:
        ports: list[int] = []
        for port in random.sample(range(15_000, 32_000), k=1_000):
            probe = held.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports.append(port)
            if len(ports) == count:
                return ports
    raise RuntimeError("no free port was found")


def free_port() -> int:
    """Return a free port, as `free_ports` does."""
    return free_ports(1)[0]


class Checkout:
    """A directory in which the commands of the documentation work: what they need of the repository, and a `.venv`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        *service_ports, self.metrics_port = free_ports(len(DEFAULT_PORTS) + 1)
        self.ports = dict(zip(DEFAULT_PORTS, service_ports, strict=True))
        ports = ", ".join(f"{service}={port}" for service, port in self.ports.items())
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "benchmarks", "patterns", "tests"):
            (directory / name).symlink_to(ROOT / name)
        for name in MOVED.values():
            (directory / name).mkdir()
        self._copy_example()
        programs = directory / ".venv" / "bin"
        programs.mkdir(parents=True)
        _write_program(programs / "python", f'case "$1 $2" in "-m benchmarks") set -- "$@" {BRIEFLY};; esac', '"$@"')
        _write_program(programs / "pip", "", '-m pip "$@"')
        _write_program(
            programs / "lazulite",
            "",
            "-c 'import sys; from lazulite.cli import main; from lazulite.settings.addresses import DEFAULT_PORTS; "
            f"DEFAULT_PORTS.update({ports}); "
            'sys.exit(main())\' "$@"',
        )
        for marker in (".runtime", ".test", ".fuzz"):
            (directory / ".venv" / marker).touch()

    def _copy_example(self) -> None:
        data = self.directory / "examples" / "data"
        data.mkdir(parents=True)
        for program in ("import_csv.py", "archive_employee.py"):
            shutil.copy(ROOT / "examples" / program, data.parent)
        shutil.copytree(ROOT / "examples" / "advise", data.parent / "advise")
        with (ROOT / "examples" / "data" / "weather.csv").open(encoding="utf-8") as file:
            rows = [line for line, _ in zip(file, range(EXAMPLE_ROWS + 1), strict=False)]
        (data / "weather.csv").write_text("".join(rows), encoding="utf-8")

    def here(self, text: str) -> str:
        """Return a text of the documentation with its port and places made those of this checkout."""
        for place, name in MOVED.items():
            text = text.replace(place, str(self.directory / name))
        ports = {DEFAULT_PORTS[service]: port for service, port in self.ports.items()}
        ports[DOCUMENTED_METRICS_PORT] = self.metrics_port
        return re.sub(rf"\b({'|'.join(map(str, ports))})\b", lambda port: str(ports[int(port[0])]), text)

    def environment(self) -> dict[str, str]:
        """Return the environment of commands: nothing of an outer make, no accounts, no network for pip."""
        dropped = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ARGS", *ACCOUNT_VARIABLES, *DATABASE_VARIABLES}
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        endpoints = {name: path_style(DEVELOPMENT_ACCOUNT.name, "127.0.0.1", port) for name, port in self.ports.items()}
        string = connection_string(DEVELOPMENT_ACCOUNT, endpoints)
        return kept | {"PIP_NO_INDEX": "1", "LAZULITE_CONNECTION_STRING": string}

    def run(self, command: Sequence[str]) -> str:
        """Run a command and return what it prints; it must succeed."""
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
        assert done.returncode == 0, f"{' '.join(command)}\nexited with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def rehearse_tests(self, command: str) -> None:
        """Check that each program that `make test` or `make fuzz` would run is there, and that it is what it says."""
        planned = self.run(["bash", "-c", command.replace("make ", "make -n ", 1)])
        programs = re.findall(r"^\.venv/bin/(\S+)", planned, re.MULTILINE)
        assert ("-m pytest" if command.startswith(("make check", "make test")) else "-m tests.fuzz") in planned, planned
        for program in programs:
            assert shutil.which(program, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"), program


def _write_program(path: Path, before: str, arguments: str) -> None:
    path.write_text(f"#!/bin/sh\n{before}\nexec {sys.executable} {arguments}\n", encoding="utf-8")
    path.chmod(0o755)


@contextmanager
def _serving(checkout: Checkout, command: str, lines_count: int) -> Iterator[str]:
    """Run a server; yield the first lines that it prints. It must end when it is asked to, and with 0."""
    with (checkout.directory / "server.log").open("a+", encoding="utf-8") as log:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=checkout.directory,
            env=checkout.environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        watchdog = threading.Timer(SECONDS_MAX, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.start()
        try:
            assert process.stdout is not None
            printed = "".join(process.stdout.readline() for _ in range(lines_count))
            log.seek(0)
            watchdog.cancel()
            assert " listens on http" in printed, f"{command}\nprinted:\n{printed}{log.read()}"
            yield printed
            process.terminate()
            process.communicate(timeout=SECONDS_MAX)  # Reads until every process that holds the pipe has ended.
            code = process.returncode
            # A make that is asked to end says so with a code of its own.
            assert code == 0 or "make " in command, f"{command}\nexited with {code}"
        finally:
            watchdog.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


class Reader:
    """Does what one page says."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._server = contextlib.ExitStack()
        self._names: dict[str, object] = {"__name__": "__main__"}

    def read(self, page: str) -> None:
        """Run all of a page's blocks; a server is there from the start."""
        blocks = [fence for fence in fences(page) if fence.language in RUN | {"output"}]
        try:
            self.serve("make serve")
            for fence, following in zip(blocks, [*blocks[1:], None], strict=True):
                if fence.language != "output" and fence.marker != "skip":
                    self._run(fence, following.text if following and following.language == "output" else None)
        finally:
            self.close()

    def serve(self, command: str, lines_count: int = 1) -> str:
        """Start a server. It replaces the previous one, unless its port is 0, so that both can run."""
        if "--table-port 0" not in command:
            self._server.close()
        return self._server.enter_context(_serving(self._checkout, command, lines_count))

    def close(self) -> None:
        """Close the clients that the page made, and stop its server."""
        for value in self._names.values():
            if isinstance(value, _CLIENTS):
                value.close()
        self._server.close()

    def _run(self, fence: Fence, expected: str | None) -> None:
        if fence.marker == "stopped":
            self._server.close()
        if fence.marker == "prepared":
            self._shell(PREPARED, 0)
        text = self._checkout.here(fence.text)
        lines_count = expected.count("\n") if expected else 1
        where = f"{fence.page}:{fence.line}"
        printed = self._python(fence, text) if fence.language == "python" else self._shell(text, lines_count)
        if expected is not None:
            assert prints(printed, self._checkout.here(expected)), f"{where} printed:\n{printed}"

    def _python(self, fence: Fence, text: str) -> str:
        code = compile("\n" * (fence.line - 1) + text, str(ROOT / fence.page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self._names)
        return printed.getvalue()

    def _shell(self, text: str, lines_count: int) -> str:
        printed = ""
        waiting = ""
        for line in [*text.replace("\\\n", "").splitlines(), ":"]:
            serves, tests = _SERVE.match(line), line.startswith(("make check", "make test", "make fuzz"))
            if not (serves or tests or line == ":"):
                waiting += f"{line}\n"
                continue
            printed += self._checkout.run(["bash", "-euo", "pipefail", "-c", waiting or ":"])
            waiting = ""
            if serves:
                printed += self.serve(line, lines_count)
            elif tests:
                self._checkout.rehearse_tests(line)
        return printed
