"""`lazulite faults` and `serve --faults`: rules of a running server, with workers and without."""

import json
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableServiceClient

from lazulite.testing import server as storage_server
from tests.certificates import Authority
from tests.postgres.server import shared
from tests.server_process import running

from .test_serve import lazulite, rejected, serving
from .test_serve_workers import BOTH

RULE = '[[rule]]\nname = "busy"\noperation = "QueryTables"\nerror = "ServerBusy"\n'


def status(connection_string: str) -> int:
    """List tables on a new connection, which any worker may get."""
    with TableServiceClient.from_connection_string(connection_string, retry_total=0) as service:
        try:
            list(service.list_tables())
        except HttpResponseError as error:
            return error.status_code or 0
        return 200


def check_secondary(connection_string: str, tmp_path: Path, *here: str) -> None:
    """The secondary answers from the rows from before a rule, whichever worker is asked."""
    lazulite("faults", "clear", *here)
    secondary = connection_string.replace("/devstoreaccount1;", "/devstoreaccount1-secondary;")
    with TableServiceClient.from_connection_string(connection_string, retry_total=0) as service:
        table = service.create_table("Orders")
        for row in "ab":
            table.create_entity({"PartitionKey": "p", "RowKey": row, "A": 1})
        rule = rules_file(tmp_path, '[[rule]]\nname = "old"\nstale = true')
        assert lazulite("faults", "add", rule, *here).stdout == "1 rule in force\n"
        table.update_entity({"PartitionKey": "p", "RowKey": "a", "A": 2})
        table.delete_entity("p", "b")
        for _ in range(4):  # As many connections, some at each worker.
            with TableServiceClient.from_connection_string(secondary, retry_total=0) as other:
                behind = other.get_table_client("Orders")
                assert behind.get_entity("p", "a")["A"] == 1
                assert [each["RowKey"] for each in behind.list_entities()] == ["a", "b"]
        lazulite("faults", "clear", *here)
        with TableServiceClient.from_connection_string(secondary, retry_total=0) as other:
            assert [each["A"] for each in other.get_table_client("Orders").list_entities()] == [2]


def rules_file(tmp_path: Path, text: str = RULE) -> str:
    path = tmp_path / "faults.toml"
    path.write_text(text)
    return str(path)


def test_rules_of_a_location_are_listed_added_and_removed(tmp_path: Path) -> None:
    location = tmp_path / "data"
    here = ("-l", str(location))
    with storage_server(location) as storage:
        assert lazulite("faults", "add", rules_file(tmp_path), *here).stdout == "1 rule in force\n"
        assert status(storage.connection_string) == 503
        line = 'busy: 1 of 1 requests, operation = "QueryTables", error = "ServerBusy"\n'
        assert lazulite("faults", "list", *here).stdout == line
        listed = json.loads(lazulite("faults", "list", "--json", *here).stdout)
        assert (listed["rule"]["name"], listed["hits"]) == ("busy", 1)
        assert lazulite("faults", "add", "flaky-network", *here).stdout == "7 rules in force\n"
        assert lazulite("faults", "remove", "busy", *here).stdout == "6 rules in force\n"
        assert "no rule 'busy'" in lazulite("faults", "remove", "busy", *here).stderr
        assert lazulite("faults", "clear", *here).stdout == "0 rules in force\n"
        assert status(storage.connection_string) == 200
        wrong = lazulite("faults", "add", rules_file(tmp_path, RULE + "\nevery = 0"), *here)
        assert "faults.toml:6: every must be an integer from 1" in wrong.stderr
        assert "cannot read" in lazulite("faults", "add", str(tmp_path / "none"), *here).stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule]]", ":1: name is missing"),
        (RULE + RULE, ":6: name busy is that of another rule"),
        ('[[rule]]\nname = "r"\nerror = "Nonsense"', ":3: error must be an error code"),
    ],
)
def test_wrong_rules_end_the_start(tmp_path: Path, text: str, message: str) -> None:
    path = rules_file(tmp_path, text)
    assert f"--faults: {path}{message}" in rejected(1, "serve", "--in-memory", "--faults", path)
    assert "cannot read" in rejected(1, "serve", "--in-memory", "--faults", str(tmp_path / "none"))


def test_workers_do_what_the_primary_decides(tmp_path: Path) -> None:
    """Every second request is hit, whichever worker gets it."""
    path = rules_file(tmp_path, RULE + "every = 2\n")
    here = ("-l", str(tmp_path / "data"))
    with serving(tmp_path / "data", *BOTH, "--silent", "--faults", path) as server:
        connection = server.lines[1]
        assert [status(connection) for _ in range(8)] == [200, 503] * 4
        assert "busy: 4 of 8 requests" in lazulite("faults", "list", *here).stdout
        lazulite("faults", "clear", *here)
        assert [status(connection) for _ in range(6)] == [200] * 6
        lazulite("faults", "add", path, *here)
        assert [status(connection) for _ in range(8)] == [200, 503] * 4
        other = rules_file(tmp_path, '[[rule]]\nname = "other"\nclock_seconds = 5')
        assert "without workers" in lazulite("faults", "add", other, *here).stderr
        check_secondary(connection, tmp_path, *here)
        assert server.stop()[0] == 0


def test_workers_on_a_database_do_what_the_primary_decides(tmp_path: Path) -> None:
    path = rules_file(tmp_path, RULE + "every = 2\n")
    here = ("--control-socket", str(tmp_path / "control.sock"))
    with (
        shared().database() as dsn,
        running("--silent", "--engine", dsn, *BOTH, *here, "--faults", path) as server,
    ):
        connection = server.lines[1]
        assert [status(connection) for _ in range(8)] == [200, 503] * 4
        assert "busy: 4 of 8 requests" in lazulite("faults", "list", *here).stdout
        lazulite("faults", "clear", *here)
        assert [status(connection) for _ in range(6)] == [200] * 6
        lazulite("faults", "add", path, *here)
        assert [status(connection) for _ in range(4)] == [200, 503] * 2
        check_secondary(connection, tmp_path, *here)
        assert server.stop() == (0, f"lazulite: 1 rule of {path} injects faults into requests\n")


def test_workers_cannot_have_some_rules(tmp_path: Path) -> None:
    path = rules_file(tmp_path, '[[rule]]\nname = "r"\nclock_seconds = 5')
    flags: tuple[Any, ...] = ("--workers", "2", "--location", str(tmp_path / "data"), "--faults", path)
    assert "--faults: rule r: clock_seconds needs a server" in rejected(1, "serve", *flags)


@pytest.mark.parametrize("keys", ['reset = "answer"', 'reset = "middle"', "truncate = 0.5"])
def test_connections_break_over_tls_too(tmp_path: Path, keys: str) -> None:
    """A large entity, so that some of it waits encrypted."""
    authority = Authority(tmp_path)
    path = rules_file(tmp_path, f'[[rule]]\nname = "r"\noperation = "QueryEntity"\nfirst = 1\n{keys}')
    entity = {"PartitionKey": "p", "RowKey": "r", **{f"Text{n}": "x" * 30_000 for n in range(10)}}
    with serving(tmp_path / "data", *authority.issue().flags, "--silent", "--faults", path) as server:
        with TableServiceClient.from_connection_string(
            server.lines[1], connection_verify=str(authority.root), retry_total=0
        ) as service:
            table = service.create_table("Orders")
            table.create_entity(entity)
            with pytest.raises(Exception) as raised:  # noqa: PT011 - the SDK raises what is no error of its own, too
                table.get_entity("p", "r")
            assert isinstance(raised.value, AzureError | AttributeError)
            assert table.get_entity("p", "r")["Text9"] == entity["Text9"]
        assert server.stop()[0] == 0
