"""`lazulite serve --workers N`: the command, and what it shares with the service in one process."""

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest
from azure.storage.queue import QueueClient

from lazulite.app import worker_supervisor
from lazulite.app.registry import CODEC
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.write_check import WriteCheck
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import DEVELOPMENT_OFF, Settings
from tests.certificates import Authority
from tests.server_process import SECONDS_MAX, running

from .test_serve import get, lazulite, rejected, serving, table_names
from .test_serve_telemetry import scrape, series

BOTH = ("--workers", "2")
REQUESTS = 60


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_workers_announce_once_and_log_whole_lines(tmp_path: Path) -> None:
    debug = tmp_path / "debug.log"
    with serving(tmp_path / "data", *BOTH, "--debug", str(debug)) as server:
        assert len(children(server.process.pid)) == 2
        assert {get(f"{server.url}health") for _ in range(REQUESTS)} == {200}
        code, log = server.stop()
    assert code == 0
    assert len(server.lines) == 2
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line["operation"] for line in lines] == ["Health"] * REQUESTS
    assert debug.read_text().count("> GET /health") == REQUESTS


def test_account_changes_reach_all_workers(tmp_path: Path) -> None:
    with serving(tmp_path / "data", *BOTH, "--silent") as server:
        here = ["-l", str(tmp_path / "data"), "--table-port", server.port]
        added = lazulite("account", "add", "orders", *here).stdout
        for _ in range(10):  # As many connections, some at each.
            assert table_names(added) == []
        assert server.stop() == (0, f"lazulite: {DEVELOPMENT_OFF}\n"), "the primary alone says it"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_to_all_processes_stops_them_with_exit_code_0(number: signal.Signals, tmp_path: Path) -> None:
    with serving(tmp_path / "data", *BOTH, "--silent") as server:
        for pid in children(server.process.pid):
            os.kill(pid, number)
        assert get(f"{server.url}health") == 200
        server.process.send_signal(number)
        out, err = server.process.communicate(timeout=SECONDS_MAX)
        assert (server.process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize("workers", [BOTH, ()], ids=["workers", "alone"])
def test_a_stop_is_announced_by_the_health_of_all_until_a_second_signal(
    workers: tuple[str, ...], tmp_path: Path
) -> None:
    flags = (*workers, "--silent", "--drain-delay-seconds", "600")
    with serving(tmp_path / "data", *flags) as server:
        assert get(f"{server.url}health") == 200
        server.process.terminate()
        deadline = time.monotonic() + SECONDS_MAX
        while {get(f"{server.url}health") for _ in range(10)} != {503}:
            assert time.monotonic() < deadline
        assert table_names(server.lines[1]) == []
        assert server.stop() == (0, "")


def test_a_backup_is_made_while_it_serves(tmp_path: Path) -> None:
    with serving(tmp_path / "data", *BOTH, "--silent") as server:
        done = lazulite("backup", str(tmp_path / "copy"), "-l", str(tmp_path / "data"), "--verify")
        assert done.returncode == 0, done.stderr
        assert server.stop() == (0, "")


def test_sighup_reaches_all_workers(tmp_path: Path) -> None:
    (tmp_path / "renewed").mkdir()
    authority, renewed = Authority(tmp_path), Authority(tmp_path / "renewed")
    files, other = authority.issue(), renewed.issue()
    with serving(tmp_path / "data", *BOTH, *files.flags, "--silent") as server:
        url = server.lines[0].split("listens on ")[1].split()[0]
        files.cert.write_bytes(other.cert.read_bytes())
        files.key.write_bytes(other.key.read_bytes())
        server.process.send_signal(signal.SIGHUP)
        assert server.process.stderr is not None
        for _ in range(2):
            assert server.process.stderr.readline() == "lazulite: the certificate was reloaded\n"
        for _ in range(10):
            trusted = ssl.create_default_context(cafile=renewed.root)
            with urlopen(f"{url}health", timeout=SECONDS_MAX, context=trusted) as answer:
                assert answer.status == 200
        assert server.stop() == (0, "")


def test_workers_reject_what_one_process_rejects(tmp_path: Path) -> None:
    where = ["-l", str(tmp_path / "data"), "--table-port"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert port in rejected(1, "serve", *BOTH, *where, port)
    with serving(tmp_path / "data", *BOTH, "--silent") as server:
        assert "in use" in rejected(1, "serve", *BOTH, "-l", str(tmp_path / "other"), "--table-port", server.port)
        assert "another process" in rejected(1, "serve", *BOTH, *where, "0")
        assert server.stop() == (0, "")
    for number in ("0", "65", "two"):
        assert "number from 1 to 64" in rejected(2, "serve", "--workers", number)


def test_metrics_of_all_workers_outlive_each_of_them(tmp_path: Path) -> None:
    count = ("requests_total", "Health", "200")
    with serving(tmp_path / "data", *BOTH, "--silent", "--metrics-port", "0", lines=3) as server:
        assert {get(f"{server.url}health") for _ in range(REQUESTS)} == {200}
        found = series(scrape(server))
        assert (found[count], found["connections_max",], found["store_writable",]) == (REQUESTS, 2 * 20_000, 1)
        assert found["flush_commits_count",] >= 1, "the primary's"
        assert [found["worker_up", number] for number in "12"] == [1, 1]
        for pid in children(server.process.pid):
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + SECONDS_MAX
        while series(scrape(server))["worker_restarts_total",] < 2:
            assert time.monotonic() < deadline
        assert get(f"{server.url}health") == 200
        found = series(scrape(server))
        assert found[count] == REQUESTS + 1
        assert [found["worker_up", number] for number in "12"] == [1, 1]
        server.process.terminate()
        assert server.process.wait(SECONDS_MAX) == 0


def test_a_worker_started_by_hand_exits_with_1() -> None:
    command = ["-m", "lazulite.app.worker", "0", "0", "-", "0", "0", "-", "-"]
    done = subprocess.run([sys.executable, *command], stdin=subprocess.DEVNULL, check=False, timeout=SECONDS_MAX)
    assert done.returncode == 1


async def test_workers_share_the_durable_write_of_their_health(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0
    check_writable = RocksEngine.check_writable

    async def counted(engine: RocksEngine) -> None:
        nonlocal runs
        runs += 1
        await check_writable(engine)

    monkeypatch.setattr(RocksEngine, "check_writable", counted)
    monkeypatch.setattr(worker_supervisor, "WriteCheck", partial(WriteCheck, clock=lambda: 0.0))
    settings = Settings(workers=2)
    async with worker_supervisor._behind(settings) as (_, attach):
        engines = [RemoteEngine(CODEC, system_clock) for _ in range(settings.workers)]
        for engine in engines:
            ours, theirs = socket.socketpair()
            for end in (ours, theirs):
                end.setblocking(False)
            await attach(ours, lambda: None)
            await asyncio.get_running_loop().create_unix_connection(partial(getattr, engine, "channel"), sock=theirs)
        for _ in range(2):
            await asyncio.gather(*(engine.check_writable() for engine in engines for _ in range(20)))
        assert runs == 1
        for engine in engines:
            await engine.close()


def test_two_services_share_workers_log_and_metrics(tmp_path: Path) -> None:
    location = ["-l", str(tmp_path / "data")]
    services = ("--services", "table,queue", "--queue-port", "0")
    with running(*location, *BOTH, *services, "--metrics-port", "0", lines=4) as server:
        connection_string, queues, _ = (line.strip() for line in server.lines[1:])
        with QueueClient.from_connection_string(connection_string, "jobs", retry_total=0) as queue:
            queue.create_queue()
            for number in range(REQUESTS):
                queue.send_message(str(number))
            clients = [QueueClient.from_connection_string(connection_string, "jobs", retry_total=0) for _ in range(8)]
            got: list[str] = []
            while some := [message for each in clients if (message := each.receive_message()) is not None]:
                got += [message.content for message in some]
            for each in clients:
                each.close()
        assert sorted(map(int, got)) == list(range(REQUESTS)), "each message once"
        assert table_names(connection_string) == []
        assert {get(f"{queues.removeprefix('queues: ')}health") for _ in range(8)} == {200}
        found = series(scrape(server))
        assert found["requests_total", "PutMessage", "201"] == REQUESTS
        assert found["requests_total", "QueryTables", "200"] == 1
        code, log = server.stop()
        assert code == 0
        operations = {json.loads(line)["operation"] for line in log.splitlines()}
        assert {"PutMessage", "GetMessages", "QueryTables", "Health"} <= operations
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = rejected(
            1, "serve", *BOTH, *location, "--table-port", "0", "--services", "table,queue", "--queue-port", port
        )
        assert f"port {port}" in said
        assert "(--services table)" in said
