"""Commands find the running server of a location by its control socket, whatever its ports are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lazulite.testing
from lazulite.app.commands import ADDRESSES
from lazulite.cli import main
from lazulite.control.command import NoArguments
from lazulite.control.socket_file import SOCKET
from lazulite.settings.addresses import DEFAULT_PORTS

PORTS = {"table": 10002, "queue": 10001, "blob": 10000}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("served")
    with lazulite.testing.server(place) as storage:
        found: list[Any] = list(storage.control.stream(ADDRESSES, NoArguments()))
        assert [(each["service"], each["host"], each["https"]) for each in found] == [
            (service, "127.0.0.1", None) for service in PORTS
        ]
        assert all(each["http"] not in (None, 0, PORTS[each["service"]]) for each in found)
        yield place


def test_tables_queues_blobs_and_files_are_reached_by_a_location_alone(
    location: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        code = main([*arguments, "--location", str(location)])
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    run("table", "create", "Orders")
    run("table", "put", "Orders", '{"PartitionKey": "a", "RowKey": "b"}')
    assert run("table", "ls") == "Orders\n"
    run("queue", "create", "jobs")
    assert run("queue", "ls") == "jobs\n"
    run("blob", "create", "files")
    assert run("blob", "ls") == "files\n"
    assert '"a"' in run("export", "Orders", "--format", "jsonl", "-o", "-")
    run("export", "--state", str(tmp_path / "state"))
    assert "Orders" in (tmp_path / "state" / "state.toml").read_text()
    run("apply", str(tmp_path / "state" / "state.toml"))


def test_a_flag_of_an_address_goes_before(location: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", "ls", "--location", str(location), "--table-port", "1"]) == 1
    err = capsys.readouterr().err
    assert "no response from http://127.0.0.1:1/devstoreaccount1" in err
    assert err.endswith("check --table-host and --table-port\n")


@pytest.mark.parametrize(
    "command", [("queue", "ls"), ("export", "T", "-o", "-", "--format", "jsonl"), ("export", "--state", "new")]
)
def test_without_a_server_the_error_says_so(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lazulite.cli.http_sender._RETRY_SECONDS", ())
    for service in PORTS:  # A server may run at the ports of the emulator.
        monkeypatch.setitem(DEFAULT_PORTS, service, 1)
    assert main([*command, "--location", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert f"no server takes commands at {tmp_path}/lazulite.sock; start lazulite serve, or check --" in err
    assert err.count("\n") == 1


def test_a_socket_names_the_server_and_without_it_nothing_is_asked(
    location: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So a server in memory, or of a database, is reached: neither has a socket in a location."""

    def run(*arguments: str, socket: Path = location / SOCKET) -> tuple[int, str, str]:
        code = main([*arguments, "--control-socket", str(socket), "--location", str(tmp_path / "none")])
        return code, *capsys.readouterr()

    assert run("queue", "create", "by-socket")[0] == 0
    assert run("queue", "put", "by-socket", "kept")[0] == 0
    assert "by-socket\n" in run("queue", "ls")[1]
    assert run("export", "--state", str(tmp_path / "state"))[0] == 0
    assert '"kept"' in (tmp_path / "state" / "state.toml").read_text(encoding="utf-8")
    missing = tmp_path / "missing"
    assert run("queue", "ls", socket=missing) == (1, "", f"lazulite: no server takes commands at {missing}\n")
