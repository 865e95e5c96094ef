"""`python -m benchmarks.explorer`: what the pages of the explorer take, and what requests beside them take.

A server runs in a process of its own. Pages are asked for one after the other. Point GETs come at half the rate of a
closed loop: with the explorer closed, open and idle, used by two scripts, and by two beside an import. The target of
the last is 1.5 times the 99th percentile of the first.
"""

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import AccountSasPermissions, ResourceTypes, TableServiceClient, generate_account_sas
from tests.ui.browser.browsers import CHROMIUM, running_browser, window
from tests.ui.browser.data import ACCOUNT, fill, pages
from tests.ui.explorer import Client

from lazulite.app.commands import OPEN_UI, OpenUiArguments
from lazulite.control.client import Client as Control
from lazulite.control.socket_file import SOCKET

PORTS = ("--table-port", "0", "--queue-port", "0", "--blob-port", "0")
SERVE = (sys.executable, "-m", "lazulite", "serve", "--silent", "--meter", *PORTS)
ROWS = 1_000
PAUSE_SECONDS = 0.5
IMPORT_ROWS = 30_000
"""For each second of a measurement: more than an import stores in it."""


@contextmanager
def served(location: Path) -> Iterator[str]:
    """Run a server inside the block, and yield the connection string of its account."""
    command = [*SERVE, "--location", str(location)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield next(line for line in process.stdout if "AccountKey=" in line).strip()
        finally:
            process.terminate()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values is."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def closed_rate(get: Callable[[], None], seconds: float) -> float:
    """Return the requests per second of one connection that asks again at once."""
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        get()
        count += 1
    return count / seconds


def paced(get: Callable[[], None], rate: float, seconds: float) -> list[float]:
    """Return the milliseconds of requests at a fixed rate, each from the moment when it was due."""
    took, begin = [], time.perf_counter()
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        get()
        took.append((time.perf_counter() - due) * 1000)
    return took


def getter(connection_string: str) -> Callable[[], None]:
    """Return what reads one entity over a connection that stays open."""
    table = TableServiceClient.from_connection_string(connection_string).get_table_client("Orders")
    entity = next(iter(table.query_entities("RowKey eq '00003'")))
    url = urlsplit(f"{table.url}/Orders")
    connection = HTTPConnection(url.netloc)
    fields = dict(part.split("=", 1) for part in connection_string.strip(";").split(";"))
    token = sas(fields)
    key = f"(PartitionKey='{entity['PartitionKey']}',RowKey='{entity['RowKey']}')"
    target = f"/{ACCOUNT}/Orders{key}?{token}"

    def get() -> None:
        connection.request("GET", target, headers={"Accept": "application/json;odata=nometadata"})
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status

    return get


def sas(fields: Mapping[str, str]) -> str:
    """Return a token that reads entities of the account of a connection string."""
    credential = AzureNamedKeyCredential(fields["AccountName"], fields["AccountKey"])
    expiry = datetime.now(UTC) + timedelta(hours=1)
    return generate_account_sas(credential, ResourceTypes(object=True), AccountSasPermissions(read=True), expiry)


def page_rows(client: Client, count: int) -> Iterator[str]:
    """Yield a line for each page: milliseconds and bytes."""
    for name, path in pages().items():
        took = []
        for _ in range(count):
            begin = time.perf_counter()
            found = client.get(path)
            took.append((time.perf_counter() - begin) * 1000)
        size = len(gzip.compress(found.text.encode()))
        yield f"{name:12} {found.status} {statistics.median(took):8.1f} ms {max(took):8.1f} ms {size:8,} bytes gz"


def browser_rows(link: Callable[[], str]) -> Iterator[str]:
    """Yield a line for each page: milliseconds until a browser has its document."""
    if not Path(CHROMIUM).exists():
        return
    with running_browser() as browser, window(browser) as page:
        page.goto(link())
        origin = page.url.rstrip("/")
        for name, path in pages().items():
            took = []
            for _ in range(5):
                page.goto(origin + path)
                took.append(page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
            yield f"{name:12} {statistics.median(took):8.1f} ms until the document is ready"


def explore(link: str) -> None:
    """Ask for all pages again and again, without a pause."""
    client = Client(link)
    while True:
        for path in pages().values():
            client.get(path)
            time.sleep(PAUSE_SECONDS)


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--explore", metavar="LINK", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.explore:
        explore(asked.explore)
        return
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as connection_string:
        control = Control.at(Path(folder) / SOCKET)
        fill_account(connection_string)
        get = getter(connection_string)
        rate = closed_rate(get, asked.seconds / 2) / 2
        print(f"point GETs at {rate:,.0f}/s, in ms: p50, p99")
        alone = report("explorer closed", paced(get, rate, asked.seconds))
        with closing(control.stream(OPEN_UI, OpenUiArguments())) as items:
            opened: Any = next(items)

            def link() -> str:
                answer: Any = control.ask(OPEN_UI, OpenUiArguments())
                return str(answer["url"])

            client = Client(opened["url"])
            report("open and idle", paced(get, rate, asked.seconds))
            command = [sys.executable, "-m", "benchmarks.explorer", "--explore"]
            scripts = [subprocess.Popen([*command, link()]) for _ in range(2)]
            time.sleep(3)
            report("two scripts", paced(get, rate, asked.seconds))
            with importing(Path(folder), asked.seconds):
                busy = report("and an import", paced(get, rate, asked.seconds))
            print(
                f"{busy / alone:.2f} times the 99th percentile of alone: {'met' if busy <= 1.5 * alone else 'missed'}"
            )
            for script in scripts:
                script.kill()
                script.wait()
            print("pages: median and longest of 20")
            for line in page_rows(client, 20):
                print(line)
            for line in browser_rows(link):
                print(line)


def fill_account(connection_string: str) -> None:
    """Put data of the browser's tests into the account, and more rows."""

    class Filled:
        def __init__(self) -> None:
            self.connection_string = connection_string

        def account(self, _: str) -> None:
            """Add no account: this server is another process."""

    filled: Any = Filled()
    fill(filled, ROWS)


@contextmanager
def importing(location: Path, seconds: float) -> Iterator[None]:
    """Have a command import rows of 1 KB while the block runs.

    Raises:
        RuntimeError: the import has ended before the block.
    """
    file = location.parent / f"{location.name}.jsonl"
    try:
        with file.open("w", encoding="ascii") as rows:
            for number in range(int(seconds * IMPORT_ROWS)):
                row = {"PartitionKey": f"p{number // 1000}", "RowKey": str(number), "Text": "x" * 900}
                rows.write(json.dumps(row) + "\n")
        command = [sys.executable, "-m", "lazulite", "import", "Imported", str(file), "--location", str(location)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(3)
            yield
            has_ended = process.poll() is not None
            process.kill()
    finally:
        for path in file.parent.glob(f"{file.name}*"):
            path.unlink()
    if has_ended:
        raise RuntimeError("the import has ended before the measurement: raise IMPORT_ROWS")


def report(name: str, took: Sequence[float]) -> float:
    """Print the median and the 99th percentile of a measurement, and return the latter."""
    last = percentile(took, 0.99)
    print(f"{name:16} {percentile(took, 0.5):8.2f} {last:8.2f}", flush=True)
    return last


if __name__ == "__main__":
    main()
