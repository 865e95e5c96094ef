"""`lazulite serve --engine`: on a real database, alone, beside another process, and with workers."""

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from azure.core.exceptions import AzureError
from azure.data.tables import TableServiceClient

from lazulite.app import clock as app_clock
from lazulite.auth.accounts.account import LAST_REMOVED
from lazulite.cli import main
from lazulite.protocol.clock import TICKS_PER_DAY, system_clock
from lazulite.settings.config import DEVELOPMENT_OFF
from tests.postgres.server import Postgres, PostgresServer, shared, until
from tests.server_process import FREE_PORTS, SECONDS_MAX, ServerProcess, running

from .test_serve import get, lazulite, table_names
from .test_serve_workers import children


@pytest.fixture(name="dsn")
def _dsn() -> Iterator[str]:
    with shared().database() as dsn:
        if not urlsplit(dsn).password:
            pytest.skip("no password in LAZULITE_TEST_POSTGRES")
        yield dsn


def password_of(dsn: str) -> str:
    password = urlsplit(dsn).password
    assert password
    return password


def bare(dsn: str) -> str:
    return dsn.replace(f":{password_of(dsn)}@", "@")


def seen(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def wait(condition: Callable[[], object]) -> None:
    """Wait for what other processes do in their own time; of several workers, any may answer."""
    deadline = time.monotonic() + SECONDS_MAX
    while not all(condition() for _ in range(4)):
        assert time.monotonic() < deadline


def lists(connection_string: str, server: ServerProcess) -> list[str] | None:
    """The tables that a server names to an account, None if it does not know it."""
    try:
        return table_names(re.sub(r":\d+/", f":{server.port}/", connection_string))
    except AzureError:
        return None


def test_it_serves_what_it_prints_and_keeps_what_it_took(dsn: str) -> None:
    with running("--engine", dsn) as server:
        name = bare(dsn)
        assert server.lines[0].endswith(f" listens on {server.url} (PostgreSQL, {name})\n")
        assert get(server.url + "health") == 200
        with TableServiceClient.from_connection_string(server.lines[1].strip(), retry_total=0) as client:
            client.create_table("orders").create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert name.encode() in seen(server.process.pid)
        assert password_of(dsn).encode() not in seen(server.process.pid)
        code, log = server.stop()
        assert code == 0
        assert '"status":201' in log
        assert password_of(dsn) not in "".join(server.lines) + log
    with running("--silent", LAZULITE_ENGINE=bare(dsn), LAZULITE_ENGINE_PASSWORD=password_of(dsn)) as server:
        assert table_names(server.lines[1]) == ["orders"]
        assert server.stop() == (0, "")


def test_a_password_in_a_file(dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(password_of(dsn) + "\n")
    with running("--silent", "--engine", bare(dsn), "--engine-password-file", str(file)) as server:
        assert get(server.url + "health") == 200
        assert server.stop() == (0, "")
    assert lazulite("account", "list", "--engine", bare(dsn), PGPASSWORD=password_of(dsn)).returncode == 0


def test_accounts_and_tables_are_shared_by_all_processes(dsn: str) -> None:
    with (
        running("--silent", "--engine", dsn) as one,
        running("--silent", "--engine", dsn, "--workers", "2") as other,
    ):
        public = one.lines[1]
        assert lists(public, other) == []
        added = lazulite("account", "add", "orders", "--engine", dsn).stdout
        for server in (one, other):
            wait(lambda server=server: lists(added, server) == [])  # type: ignore[misc]  # a lambda's default
            wait(lambda server=server: lists(public, server) is None)  # type: ignore[misc]  # likewise
        with TableServiceClient.from_connection_string(re.sub(r":\d+/", f":{one.port}/", added.strip())) as client:
            client.create_table("items")
        wait(lambda: lists(added, other) == ["items"])
        rotated = lazulite("account", "rotate-key", "orders", "--key", "1", "--engine", dsn).stdout
        wait(lambda: lists(added, other) is None)
        wait(lambda: lists(rotated, other) == ["items"])
        again = lazulite("connection-string", "--account", "orders", "--engine", dsn).stdout
        assert again == rotated
        token = lazulite("sas", "account", "--permissions", "rl", "--expiry", "1h", "--engine", dsn).stdout.strip()
        wait(lambda: get(f"{other.url}orders/Tables?{token}") == 200)
        assert lazulite("account", "list", "--engine", dsn).stdout == "orders\n"
        wait(lambda: get(f"{other.url}orders/items?{token}") == 200)
        with TableServiceClient.from_connection_string(re.sub(r":\d+/", f":{one.port}/", rotated.strip())) as client:
            client.delete_table("items")
        wait(lambda: get(f"{other.url}orders/items?{token}") == 404)
        for server in (other, one):
            code, log = server.stop()
            assert (code, set(log.splitlines())) == (0, {f"lazulite: {DEVELOPMENT_OFF}"})


def test_an_account_is_removed_with_its_data(dsn: str) -> None:
    added = lazulite("account", "add", "orders", "--engine", dsn).stdout
    with running("--silent", "--engine", dsn) as server:
        with TableServiceClient.from_connection_string(re.sub(r":\d+/", f":{server.port}/", added.strip())) as client:
            client.create_table("items")
        rejected = lazulite("account", "remove", "orders", "--engine", dsn)
        assert (rejected.returncode, rejected.stdout) == (1, "")
        assert "account orders has 1 table; pass --with-data" in rejected.stderr
        assert lazulite("account", "remove", "orders", "--with-data", "--engine", dsn).returncode == 0
        wait(lambda: lists(added, server) is None)
        again = lazulite("account", "add", "orders", "--engine", dsn).stdout
        wait(lambda: lists(again, server) == [])
        assert lazulite("account", "list", "--engine", dsn).stdout == "orders\n"
        assert server.stop() == (0, f"lazulite: {LAST_REMOVED}\n")


def test_workers_are_not_reported_the_password_in_sight(dsn: str) -> None:
    with running("--silent", "--engine", dsn, "--workers", "2") as server:
        processes = [server.process.pid, *children(server.process.pid)]
        assert len(processes) == 3
        for pid in processes:
            assert password_of(dsn).encode() not in seen(pid)
        os.kill(processes[1], 9)
        assert server.process.stderr is not None
        assert "another one replaces it" in server.process.stderr.readline()
        wait(lambda: len(children(server.process.pid)) == 2)
        assert all(get(server.url + "health") == 200 for _ in range(4))
        assert server.stop() == (0, "")


def test_server_recovers_after_a_database_outage() -> None:
    """Also with what it looks for in the background."""
    with PostgresServer.make() as database:
        dsn = database.dsn("postgres")
        with running("--silent", "--engine", dsn) as server:
            database.kill()
            wait(lambda: get(server.url + "health") == 503)
            assert lists(server.lines[1], server) is None
            database.start()
            wait(lambda: get(server.url + "health") == 200)
            added = lazulite("account", "add", "orders", "--engine", dsn).stdout
            wait(lambda: lists(added, server) == [])
            code, err = server.stop()
            assert code == 0
            assert password_of(dsn) not in err
            assert "Traceback" not in err


COMMANDS = (
    ["serve", *FREE_PORTS],
    ["serve", *FREE_PORTS, "--workers", "2"],
    ["account", "list"],
    ["account", "add", "orders"],
    ["connection-string"],
    ["upgrade"],
)


@pytest.fixture(name="rejection")
def _rejection(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must be rejected, in this process, which is quicker; return its one line."""

    def rejection(*arguments: str) -> str:
        assert main(arguments) == 1
        output = capsys.readouterr()
        assert output.out == ""
        assert re.fullmatch(r"lazulite: .+\n", output.err), output.err
        return output.err

    return rejection


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_database_that_cannot_be_used_is_one_line(
    command: list[str], dsn: str, rejection: Callable[..., str]
) -> None:
    for why, url in {
        "password authentication failed": dsn.replace(password_of(dsn), "wr0ng"),
        'database "none" does not exist': f"{dsn.rpartition('/')[0]}/none",
        "Connect": dsn.replace(f":{urlsplit(dsn).port}/", ":1/"),
        "sslmode": f"{dsn}?sslmode=nonsense",
    }.items():
        line = rejection(*command, "--engine", url)
        assert line.startswith(f"lazulite: {bare(dsn).rpartition(':')[0]}:"), line
        assert why in line
        assert "wr0ng" not in line
        assert password_of(dsn) not in line


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_tables_of_another_format_are_rejected_with_the_remedy(
    command: list[str], dsn: str, rejection: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    if command == ["upgrade"]:
        assert "no tables" in rejection("upgrade", "--engine", dsn)
    assert main(["account", "list", "--engine", dsn]) == 0
    capsys.readouterr()
    Postgres(dsn).execute("UPDATE lazulite.store SET value = '99' WHERE name = 'format'")
    assert "newer than this program knows" in rejection(*command, "--engine", dsn)
    Postgres(dsn).execute("UPDATE lazulite.store SET value = '0' WHERE name = 'format'")
    if command != ["upgrade"]:
        assert "lazulite upgrade --engine" in rejection(*command, "--engine", dsn)


def test_upgrade_prints_both_formats(
    dsn: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["account", "list", "--engine", dsn]) == 0
    capsys.readouterr()
    assert main(["upgrade", "--engine", dsn]) == 0
    assert capsys.readouterr().out == f"{bare(dsn)} is of format 1 already\n"

    async def upgrade(_: object, begin: Callable[[int, int], None]) -> tuple[int, int]:
        begin(0, 2)
        begin(1, 2)
        return 1, 3

    monkeypatch.setattr("lazulite.engine.postgres.schema.upgrade", upgrade)
    assert main(["upgrade", "--engine", dsn]) == 0
    out, err = capsys.readouterr()
    assert out == f"{bare(dsn)} was of format 1, and is of 3 now\n"
    steps = [f"lazulite: upgrading {bare(dsn)}: step {number} of 2" for number in (1, 2)]
    assert err.splitlines()[-2:] == steps
    assert main(["upgrade"]) == 2


def test_commands_of_locations_reject_databases(
    dsn: str, tmp_path: Path, rejection: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "copy")
    commands = {"pg_dump": ["backup", place], "pg_restore": ["restore", place]}
    for instead, command in commands.items():
        assert instead in rejection(*command, "--engine", dsn)
    monkeypatch.setenv("LAZULITE_ENGINE", dsn)
    for instead, command in commands.items():
        assert instead in rejection(*command)
    assert "there is no store" in rejection("backup", place, "--location", place)


def test_the_development_key_stays_on_this_machine(dsn: str, rejection: Callable[..., str]) -> None:
    everywhere = ["--table-host", "0.0.0.0", "--table-port", "0"]
    for workers in ("1", "2"):
        assert "--allow-development-key" in rejection("serve", *everywhere, "--workers", workers, "--engine", dsn)
    assert main(["account", "add", "orders", "--engine", dsn]) == 0
    with running("--silent", *everywhere, "--engine", dsn, "--metrics-port", "0", lines=3) as server:
        assert server.lines[1].startswith("account orders: lazulite connection-string --account orders --engine ")
        assert password_of(dsn) not in server.lines[1]
        assert get(server.lines[2].split()[1]) == 200
        assert server.stop() == (0, "")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_clock_far_ahead_of_the_databases_is_rejected(
    workers: str, dsn: str, rejection: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ahead() -> int:
        return system_clock() + 2 * TICKS_PER_DAY

    monkeypatch.setattr(app_clock, "system_clock", ahead)
    serve = [
        "serve",
        *FREE_PORTS,
        "--workers",
        workers,
        "--engine",
        dsn,
    ]
    assert f"2.0 days ahead of the clock of {bare(dsn)}" in rejection(*serve)


def test_the_database_client_is_imported_only_when_used() -> None:
    modules = "lazulite.cli.serve, lazulite.app.worker, lazulite.cli.account, lazulite.cli.sas, lazulite.cli.backup"
    script = f"import sys, {modules}; print('asyncpg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def forwarded(page: str) -> float:
    """The rows that one worker has had another one commit, by a page of metrics."""
    with urlopen(page, timeout=SECONDS_MAX) as response:
        [found] = re.findall(r"^lazulite_forwarded_rows_total (\S+)$", response.read().decode(), re.MULTILINE) or ["0"]
        return float(found)


OTHER_AHEAD = f"""
    DO $$ BEGIN
        FOR turn IN 1..100 LOOP
            UPDATE lazulite.partitions SET stamp = stamp + {TICKS_PER_DAY // 24};
            COMMIT;
        END LOOP;
    END $$
"""
"""Commits of another process whose clock is ahead: each overtakes all statements that wait for the partition."""


def test_workers_commit_for_each_other_to_a_hot_partition(dsn: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    temporary = tmp_path_factory.mktemp("t")  # Its path is short, as those of sockets must be.
    flags = ("--silent", "--engine", dsn, "--workers", "3", "--metrics-port", "0")
    written: list[str] = []
    over = threading.Event()

    def write(connection_string: str, number: int) -> None:
        with TableServiceClient.from_connection_string(connection_string) as client:
            hot = client.get_table_client("hot")
            for at in count():
                if over.is_set():
                    return
                with suppress(AzureError):  # A worker is killed.
                    hot.upsert_entity({"PartitionKey": "p", "RowKey": f"{number} {at}"})
                    written.append(f"{number} {at}")

    with running(*flags, lines=3, TMPDIR=str(temporary)) as server, ThreadPoolExecutor(12) as threads:
        connection_string, page = server.lines[1].strip(), server.lines[2].removeprefix("metrics: ").strip()
        with TableServiceClient.from_connection_string(connection_string) as client:
            client.create_table("hot").create_entity({"PartitionKey": "p", "RowKey": "first"})
        writers = [threads.submit(write, connection_string, number) for number in range(12)]
        try:
            until(lambda: not Postgres(dsn).execute(OTHER_AHEAD) and forwarded(page) > 0, "a commit to be forwarded")
            os.kill(children(server.process.pid)[0], signal.SIGKILL)
            reached = len(written) + 100
            until(lambda: len(written) > reached, "the writers to go on")
        finally:
            over.set()
        for writer in writers:
            writer.result()
        with TableServiceClient.from_connection_string(connection_string) as client:
            found = {entity["RowKey"] for entity in client.get_table_client("hot").list_entities()}
        assert found >= set(written)
        assert stat.S_IMODE(next(temporary.iterdir()).stat().st_mode) == 0o700
        assert server.stop()[0] == 0
    assert list(temporary.iterdir()) == []
