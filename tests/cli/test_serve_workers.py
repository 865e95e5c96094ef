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

from lazulite.app import worker_supervisor
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.write_check import WriteCheck
from lazulite.settings.config import Settings
from lazulite.table.remote_codec import TableWording
from tests.certificates import Authority

from .test_serve import SECONDS_MAX, get, lazulite, refused, serving, table_names

BOTH = ("--workers", "2")
REQUESTS = 60


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_it_announces_itself_once_and_every_line_of_its_log_is_whole(tmp_path: Path) -> None:
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


def test_accounts_change_for_all_of_them(tmp_path: Path) -> None:
    with serving(tmp_path / "data", *BOTH, "--silent") as server:
        here = ["-l", str(tmp_path / "data"), "--table-port", server.port]
        added = lazulite("account", "add", "orders", *here).stdout
        for _ in range(10):  # As many connections, some at each.
            assert table_names(added) == []
        assert server.stop() == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_of_its_processes_ends_it_well(number: signal.Signals, tmp_path: Path) -> None:
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


def test_sighup_reaches_all_of_them(tmp_path: Path) -> None:
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


def test_what_one_process_refuses_several_do(tmp_path: Path) -> None:
    where = ["-l", str(tmp_path / "data"), "--table-port"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert port in refused(1, "serve", *BOTH, *where, port)
    with serving(tmp_path / "data", *BOTH, "--silent") as server:
        assert "in use" in refused(1, "serve", *BOTH, "-l", str(tmp_path / "other"), "--table-port", server.port)
        assert "another process" in refused(1, "serve", *BOTH, *where, "0")
        assert server.stop() == (0, "")
    assert "--workers" in refused(2, "serve", *BOTH, "--metrics-port", "0")
    for number in ("0", "65", "two"):
        assert "number from 1 to 64" in refused(2, "serve", "--workers", number)


def test_nobody_else_can_start_a_front_end() -> None:
    command = ["-m", "lazulite.app.worker", "0", "0", "-", "-"]
    done = subprocess.run([sys.executable, *command], stdin=subprocess.DEVNULL, check=False, timeout=SECONDS_MAX)
    assert done.returncode == 1


async def test_front_ends_share_the_durable_write_of_their_health(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0
    check_writable = RocksEngine.check_writable

    async def counted(engine: RocksEngine) -> None:
        nonlocal runs
        runs += 1
        await check_writable(engine)

    monkeypatch.setattr(RocksEngine, "check_writable", counted)
    monkeypatch.setattr(worker_supervisor, "WriteCheck", partial(WriteCheck, clock=lambda: 0.0))
    settings = Settings(location=None, host="127.0.0.1", port=0, workers=2)
    async with worker_supervisor._behind(settings) as (_, attach):
        engines = [RemoteEngine(TableWording()) for _ in range(settings.workers)]
        for engine in engines:
            ours, theirs = socket.socketpair()
            for end in (ours, theirs):
                end.setblocking(False)
            await attach(ours, lambda: None)
            await asyncio.get_running_loop().create_unix_connection(partial(getattr, engine, "link"), sock=theirs)
        for _ in range(2):
            await asyncio.gather(*(engine.check_writable() for engine in engines for _ in range(20)))
        assert runs == 1
        for engine in engines:
            await engine.close()
