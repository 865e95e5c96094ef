"""The real command, in a process of its own. A test waits for the line that it prints, never for a time."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableServiceClient
from benchmarks.processes import Server as MeasuredProcess

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, LAST_REMOVED, Account, AccountDirectory
from lazulite.cli import main
from lazulite.cli.announcement import announcement
from lazulite.cli.parser import build_parser
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.rocksdb.rollback_journal import FORMAT_KEY
from lazulite.server.server import Ports
from lazulite.settings.config import DEVELOPMENT_OFF, account_file, settings_from
from tests.server_process import FREE_PORTS, LAZULITE, SECONDS_MAX, Program, ServerProcess, environment, running

COMMAND = [sys.executable, "-m", "lazulite"]
STARTS_OF_PYTHON = 20
"""With `asyncio`; the server takes about ten."""
PUBLIC_KEY = b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()


def lazulite(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command that ends by itself."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )


@contextmanager
def serving(
    location: Path, *arguments: str, lines: int = 2, program: Program = LAZULITE, **variables: str
) -> Iterator[ServerProcess]:
    """Run `lazulite serve` on a location until the block ends; it begins once `lines` lines are printed."""
    with running("--location", str(location), *arguments, lines=lines, program=program, **variables) as server:
        yield server


def get(url: str | Request) -> int:
    try:
        with urlopen(url, timeout=SECONDS_MAX) as response:
            return int(response.status)
    except HTTPError as error:
        with error:
            return error.code


def table_names(connection_string: str) -> list[str]:
    with TableServiceClient.from_connection_string(connection_string.strip(), retry_total=0) as client:
        return [table.name for table in client.list_tables()]


def test_announced_endpoint_serves_and_data_survives_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        assert server.lines[0].startswith("Lazulite ")
        assert str(tmp_path / "data") in server.lines[0]
        with TableServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as client:
            client.create_table("orders")
        assert get(server.url + "health") == 200
        code, log = server.stop()
        assert code == 0
        assert '"status":201' in log
        assert PUBLIC_KEY not in log
    with serving(tmp_path / "data", "--silent") as server:
        assert table_names(server.lines[1]) == ["orders"]
        assert server.stop() == (0, "")
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0


def test_start_costs_few_starts_of_python(tmp_path: Path) -> None:
    """CPU time does not depend on other work. The least of each counts: a first start may compile modules."""
    starts, pythons = [], []
    for _ in range(3):
        with serving(tmp_path / "data", "--silent") as server:
            assert server.lines[1]
            used_s = MeasuredProcess(0, server.pid).cpu_seconds()
            assert used_s is not None
            starts.append(used_s)
            server.stop()
        pythons.append(cpu_seconds_of(sys.executable, "-c", "import asyncio"))
    assert min(starts) < STARTS_OF_PYTHON * min(pythons)


def cpu_seconds_of(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, timeout=SECONDS_MAX)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_limit_of_open_files_bounds_the_store(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 4 * RocksSettings().open_files_max:
        pytest.skip("this machine allows no more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        with serving(tmp_path / "data", "-s") as server:
            server.stop()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    newest = max((tmp_path / "data").rglob("OPTIONS-*"))
    assert f"max_open_files={RocksSettings().open_files_max}\n" in newest.read_text()


def test_in_memory_no_file_is_written(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--in-memory", "-s") as server:
        assert "memory" in server.lines[0]
        assert table_names(server.lines[1]) == []
        assert server.stop() == (0, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_server_with_exit_code_0(number: signal.Signals, tmp_path: Path) -> None:
    with serving(tmp_path / "data", "-s") as server:
        server.process.send_signal(number)
        out, err = server.process.communicate(timeout=SECONDS_MAX)
        assert (server.process.returncode, out, err) == (0, "", "")


def test_the_debug_file_holds_heads_without_secrets(tmp_path: Path) -> None:
    log = tmp_path / "debug.log"
    with serving(tmp_path / "data", "-s", "-d", str(log)) as server:
        token = lazulite("sas", "account", "--permissions", "l", "--expiry", "1h", "-l", str(tmp_path / "data")).stdout
        assert get(f"{server.url}devstoreaccount1/Tables?{token.strip()}") == 200
        assert server.stop() == (0, "")
    text = log.read_text()
    assert "/devstoreaccount1/Tables" in text
    assert token.strip().rsplit("sig=", 1)[1] not in text


def test_keys_are_rotated_while_it_serves(tmp_path: Path) -> None:
    location = tmp_path / "data"
    where = ["--location", str(location)]
    lazulite("account", "add", "orders", *where)
    with serving(location, "--silent") as server:
        assert server.lines[1] == (
            f"account orders: lazulite connection-string --account orders --location {location}"
            f" --table-port {server.port}\n"
        )
        here = [*where, "--table-port", server.port]
        first, second = (lazulite("connection-string", "--key", key, *here).stdout for key in "12")
        assert table_names(first) == table_names(second) == []
        rotated = lazulite("account", "rotate-key", "orders", "--key", "1", *here).stdout
        assert table_names(second) == table_names(rotated) == []
        with pytest.raises(ClientAuthenticationError):
            table_names(first)
        assert server.stop() == (0, "")


def test_an_account_is_added_while_it_serves_and_the_public_one_goes(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--silent") as server:
        assert table_names(server.lines[1]) == []
        here = ["--location", str(tmp_path / "data"), "--table-port", server.port]
        added = lazulite("account", "add", "orders", *here).stdout
        assert table_names(added) == []
        with pytest.raises(HttpResponseError):
            table_names(server.lines[1])
        assert server.stop() == (0, f"lazulite: {DEVELOPMENT_OFF}\n")


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_an_account_with_data_is_removed_while_it_serves_only_with_its_data(
    workers: tuple[str, ...], tmp_path: Path
) -> None:
    here = ["--location", str(tmp_path / "data")]
    lazulite("account", "add", "orders", *here)
    with serving(tmp_path / "data", "--silent", *workers) as server:
        reached = [*here, "--table-port", server.port]
        first = lazulite("connection-string", *reached).stdout
        with TableServiceClient.from_connection_string(first.strip()) as client:
            client.create_table("Items").create_entity({"PartitionKey": "p", "RowKey": "r"})
        rejected = lazulite("account", "remove", "orders", *here)
        assert rejected.returncode == 1
        assert rejected.stderr == "lazulite: account orders has 1 table; pass --with-data to delete them, too\n"
        assert table_names(first) == ["Items"]
        removed = lazulite("account", "remove", "orders", "--with-data", *here)
        assert (removed.returncode, removed.stdout) == (0, "")
        with pytest.raises(HttpResponseError):
            table_names(first)  # Which the server reports: there is no account now.
        again = lazulite("account", "add", "orders", *reached).stdout
        for _ in range(5):  # As many connections, some at each worker.
            assert table_names(again) == []
            with TableServiceClient.from_connection_string(again.strip()) as client:
                table = client.get_table_client("Items")
                with pytest.raises(ResourceNotFoundError):
                    list(table.list_entities())
        assert lazulite("account", "remove", "orders", *here).returncode == 0
        code, reported = server.stop()
        assert code == 0
        assert set(reported.splitlines()) == {f"lazulite: {LAST_REMOVED}"}


def test_a_signed_url_reads_its_table_and_no_other(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--silent") as server:
        with TableServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as client:
            for name in ("orders", "others"):
                client.create_table(name)
        terms = ["--permissions", "r", "--expiry", "1h", "--spk", "a", "--epk", "b", "--url"]
        here = ["--location", str(tmp_path / "data"), "--table-port", server.port]
        url = lazulite("sas", "table", "Orders", *terms, *here).stdout.strip()
        assert get(url) == 200
        assert get(url.replace("/Orders?", "/others?")) == 403
        assert server.stop() == (0, "")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_secret_keys_are_never_printed(tmp_path: Path, workers: str) -> None:
    with serving(
        tmp_path / "data", "--workers", workers, lines=3, LAZULITE_ACCOUNTS=f"b:c2VjcmV0;a:{PUBLIC_KEY}"
    ) as server:
        assert "AccountName=a;" in server.lines[1]
        assert server.lines[2].startswith("account b: lazulite connection-string --account b")
        code, err = server.stop()
        assert code == 0
        assert "c2VjcmV0" not in "".join(server.lines) + err


def rejected(code: int, *arguments: str, **variables: str) -> str:
    """Run a command in this process that must be rejected, and return its one line."""
    out, err = StringIO(), TextIOWrapper(BytesIO(), write_through=True)
    with redirect_stdout(out), redirect_stderr(err), patch.dict(os.environ, environment(**variables), clear=True):
        try:
            found: int | str | None = main(arguments)
        except SystemExit as error:  # By the parser of flags.
            found = error.code
    err.seek(0)
    line = err.read()
    assert (found, out.getvalue()) == (code, ""), line
    assert re.fullmatch(r"lazulite: .+\n", line)
    return line


def test_an_unknown_flag_is_rejected() -> None:
    assert "--nope" in rejected(2, "serve", "--nope")


def test_a_port_in_use_is_rejected(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert port in rejected(1, "serve", "-l", str(tmp_path / "data"), "--table-port", port)


def test_a_location_in_use_is_rejected(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "-s") as server:
        line = rejected(1, "serve", "-l", str(tmp_path / "data"), "--table-port", "0")
        assert "in use by another process" in line
        assert server.stop() == (0, "")


def test_a_location_that_is_no_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for location in ("file", "file/below"):
        assert "file" in rejected(1, "serve", "-l", str(tmp_path / location), "--table-port", "0")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to root")
def test_an_unreadable_location_is_rejected(tmp_path: Path) -> None:
    location = tmp_path / "data"
    location.mkdir(mode=0)
    assert str(location) in rejected(1, "serve", "-l", str(location), "--table-port", "0")


def test_a_store_of_a_newer_format_is_rejected(tmp_path: Path) -> None:
    location = DataDirectory(tmp_path / "store", RocksSettings())
    database = location.open()
    database[FORMAT_KEY] = b"99"
    location.close(database)
    assert "format 99" in rejected(1, "serve", "-l", str(tmp_path), "--table-port", "0")


def test_bad_accounts_are_rejected_without_being_shown(tmp_path: Path) -> None:
    line = rejected(1, "serve", "-l", str(tmp_path / "data"), LAZULITE_ACCOUNTS="orders:not!base64")
    assert "LAZULITE_ACCOUNTS" in line
    assert "base64" in line
    assert "not!" not in line


def test_a_damaged_account_file_is_rejected(tmp_path: Path) -> None:
    account_file(tmp_path).path.write_text("{")
    assert "accounts.json is damaged" in rejected(1, "serve", "-l", str(tmp_path))


def test_an_unreadable_account_file_is_rejected(tmp_path: Path) -> None:
    account_file(tmp_path).path.mkdir()
    assert "cannot read" in rejected(1, "serve", "-l", str(tmp_path))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "tables.example"])
def test_the_development_key_stays_on_this_machine(host: str, tmp_path: Path) -> None:
    location = tmp_path / "data"
    arguments = [
        "serve",
        "--table-host",
        host,
        *FREE_PORTS,
        "-l",
        str(location),
    ]
    for variables in ({}, {"LAZULITE_ACCOUNTS": f"innocent:{PUBLIC_KEY}"}):
        assert "--allow-development-key" in rejected(1, *arguments, **variables)
    # It was rejected before anything was done.
    assert not location.exists()


def test_the_development_key_is_served_elsewhere_when_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--silent", "--table-host", "0.0.0.0", "--allow-development-key") as server:
        assert server.lines[0].split(" (")[0].endswith(f" listens on http://0.0.0.0:{server.port}/")
        assert table_names(server.lines[1]) == []
        assert server.stop() == (0, "")


def test_an_unwritable_debug_file_is_rejected(tmp_path: Path) -> None:
    line = rejected(1, "serve", "-l", str(tmp_path / "data"), "-d", str(tmp_path / "missing" / "file"))
    assert "missing/file" in line


def test_an_unknown_host_is_rejected(tmp_path: Path) -> None:
    host = ["--table-host", "tables.invalid", "--allow-development-key", "--table-port", "0"]
    assert "tables.invalid" in rejected(1, "serve", "-l", str(tmp_path / "data"), *host)


def test_hints_can_be_pasted_into_a_shell() -> None:
    args = build_parser().parse_args(["serve", "--services", "table", "-l", "a b", "--table-host", "::1"])
    directory = AccountDirectory({"x;y": Account("x;y", (b"k",))})
    lines = list(announcement(settings_from(args, {}), directory, "RocksDB, store", {"table": Ports(10002, None)}))
    assert lines[0].endswith(" listens on http://[::1]:10002/ (RocksDB, store)")
    hint = "lazulite connection-string --account 'x;y' --location 'a b' --table-host ::1"
    assert lines[1:] == [f"account x;y: {hint}"]


def test_clients_at_the_wrong_port_leave_a_line(tmp_path: Path) -> None:
    agent = {"User-Agent": "azsdk-python-storage-blob/12.31.1", "x-ms-version": "2019-02-02"}
    with serving(tmp_path / "data", "--silent") as server:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", int(server.port)), timeout=SECONDS_MAX) as client:
                client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
                assert client.recv(64).startswith(b"HTTP/1.1 400 ")
            assert get(Request(f"{server.url}devstoreaccount1/box?restype=container", headers=agent)) >= 400
        browser = Request(server.url, headers={"Accept": "text/html"})
        with urlopen(browser, timeout=SECONDS_MAX) as page:
            assert b"This is Lazulite" in page.read()
        code, log = server.stop()
    assert code == 0
    https, blobs = log.splitlines()
    assert https.startswith("lazulite: a client (127.0.0.1) speaks HTTPS at the port of tables for HTTP: ")
    assert blobs.startswith("lazulite: a client (127.0.0.1) of blobs is at the port of tables: ")


def test_a_start_without_accounts_says_so(tmp_path: Path) -> None:
    file = account_file(tmp_path)
    file.edit(lambda _: {})
    settings = settings_from(build_parser().parse_args(["serve", "--services", "table", "-l", str(tmp_path)]), {})
    lines = list(announcement(settings, AccountDirectory({}, file), "store", {"table": Ports(1, None)}))
    assert lines[1:] == ["no account is left, so each request is rejected; create one: lazulite account add NAME"]
