"""Several workers on one store are one service: a response of one worker holds at all of them, through crashes."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.transport import RequestsTransport
from azure.data.tables import (
    TableAccessPolicy,
    TableCorsRule,
    TableServiceClient,
    generate_table_sas,
)
from tests.postgres.engine_under_test import VARIABLE
from tests.server_process import Account, ServerProcess, serving

from .load import Worker
from .test_kill import WORKERS, load_until_killed, verify

WORKER_FLAGS = ("--workers", "2", "--services", "table,queue")
SECONDS_MAX = 60
TRIES_MAX = 200
"""Connections made to find both workers: the kernel chooses, so one misses both with a chance of 2**-199."""


class Seat:
    """A connection that stays with one worker; `identity` is that one's part of its request ids."""

    def __init__(self, account: Account) -> None:
        self.connection = HTTPConnection(account.host, timeout=SECONDS_MAX)
        self.identity = self.get(f"/{account.name}/Tables")[1]  # A rejection, but with an id.

    def get(self, path: str) -> tuple[int, str]:
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status, str(answer.headers["x-ms-request-id"] or "")[:8]


def two_seats(account: Account) -> list[Seat]:
    """Connections to both workers."""
    seats: dict[str, Seat] = {}
    for _ in range(TRIES_MAX):
        seat = Seat(account)
        if seats.setdefault(seat.identity, seat) is not seat:
            seat.connection.close()
        if len(seats) == 2:
            return list(seats.values())
    raise AssertionError("all connections are at one worker")


@contextmanager
def both(account: Account) -> Iterator[tuple[TableServiceClient, TableServiceClient]]:
    """Yield clients that are at different workers and stay there."""
    with ExitStack() as stack:
        found: dict[str, TableServiceClient] = {}
        for _ in range(TRIES_MAX):
            client = stack.enter_context(
                TableServiceClient.from_connection_string(
                    account.connection_string, retry_total=0, transport=RequestsTransport()
                )
            )
            found.setdefault(_identity(client), client)
            if len(found) == 2:
                one, other = found.values()
                yield one, other
                return
        raise AssertionError("all connections are at one worker")


def _identity(client: TableServiceClient) -> str:
    ids: list[str] = []

    def note(answer: Any) -> None:
        ids.append(str(answer.http_response.headers["x-ms-request-id"])[:8])

    list(client.list_tables(raw_response_hook=note))
    return ids[0]


def children(server: ServerProcess) -> list[int]:
    """The workers of a server."""
    pid = server.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while any(Path(f"/proc/{pid}").exists() and "Z" not in _state(pid) for pid in pids):
        assert time.monotonic() < deadline, f"{pids} outlive their primary"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


at_once = pytest.mark.skipif(
    os.environ.get(VARIABLE) == "postgres", reason="workers on a database know within two seconds, not at once"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("workers") / "data", *WORKER_FLAGS) as started:
        yield started


@at_once
def test_table_changes_are_visible_at_all_workers_at_once(server: ServerProcess) -> None:
    with both(server.account) as clients:
        for round_ in range(10):
            one, other = clients[round_ % 2], clients[1 - round_ % 2]
            table = one.create_table("people")
            assert [each.name for each in other.list_tables()] == ["people"]
            mirror = other.get_table_client("people")
            assert list(mirror.list_entities()) == []
            mirror.create_entity({"PartitionKey": "p", "RowKey": "r", "N": round_})
            assert table.get_entity("p", "r")["N"] == round_
            other.delete_table("people")
            with pytest.raises(ResourceNotFoundError, match="TableNotFound"):
                table.get_entity("p", "r")
            with pytest.raises(HttpResponseError, match="TableNotFound"):
                table.upsert_entity({"PartitionKey": "p", "RowKey": "r"})


@at_once
def test_access_policy_changes_apply_at_all_workers_at_once(server: ServerProcess) -> None:
    account = server.account
    with both(account) as (one, other):
        here, there = one.create_table("policed"), other.get_table_client("policed")
        token = generate_table_sas(account.credential, "policed", policy_id="readers")
        seats = two_seats(account)
        for _ in range(5):
            there.set_table_access_policy({"readers": TableAccessPolicy(permission="r", expiry="2100-01-01T00:00:00Z")})
            assert {seat.get(f"/{account.name}/policed()?{token}")[0] for seat in seats} == {200}
            assert list(here.get_table_access_policy()) == ["readers"]
            here.set_table_access_policy({})
            assert {seat.get(f"/{account.name}/policed()?{token}")[0] for seat in seats} == {403}
        for seat in seats:
            seat.connection.close()
        other.delete_table("policed")


@at_once
def test_service_properties_are_one(server: ServerProcess) -> None:
    with both(server.account) as (one, other):
        for number in range(1, 6):
            other.get_service_properties()
            one.set_service_properties(
                cors=[TableCorsRule(["https://example.org"], ["GET"], max_age_in_seconds=number)]
            )
            assert other.get_service_properties()["cors"][0].max_age_in_seconds == number  # type: ignore[index]  # the SDK says object


def test_workers_serve_while_one_is_replaced(server: ServerProcess) -> None:
    seats = two_seats(server.account)
    victim = children(server)[0]
    os.kill(victim, signal.SIGKILL)
    outcomes = []
    for seat in seats:
        try:
            wait_until_gone([victim])
            outcomes.append(seat.get("/health")[0])
        except (ConnectionError, RemoteDisconnected):
            outcomes.append(0)
        seat.connection.close()
    assert sorted(outcomes) == [0, 200]
    known = {seat.identity for seat in seats}
    found = set(known)
    for seat in two_seats(server.account):  # One of them at the new one, which may have been waited for.
        found.add(seat.identity)
        seat.connection.close()
    assert len(found - known) == 1
    assert len(children(server)) == 2


class Victim:
    """What `load_until_killed` needs: a server whose workers die, all of them, in its stead."""

    def __init__(self, server: ServerProcess) -> None:
        self.account = server.account
        self._server = server

    def kill(self) -> bool:
        for pid in children(self._server):
            os.kill(pid, signal.SIGKILL)
        return False


def test_acknowledged_writes_survive_kills_of_workers_and_primary(tmp_path: Path) -> None:
    """Workers are killed, then the primary: the data they leave is whole, and port and store are free."""
    workers = [Worker(number) for number in range(WORKERS)]
    server = ServerProcess.start(tmp_path / "data", *WORKER_FLAGS)
    port = ("127.0.0.1", int(server.account.host.rpartition(":")[2]))
    try:
        assert verify(server.account, workers) == []
        for seed in range(2):
            load_until_killed(Victim(server), workers, seed)
            assert verify(server.account, workers) == [], f"after the workers' kill {seed}"
        orphans = children(server)
        load_until_killed(server, workers, 2)
    finally:
        server.kill()
        code = server.join()
    assert code == -signal.SIGKILL
    wait_until_gone(orphans)
    socket.create_server(port).close()
    with serving(tmp_path / "data") as plain:
        assert verify(plain.account, workers) == [], "after the primary's kill"


def test_stop_completes_requests_and_ends_all_workers(tmp_path: Path) -> None:
    server = ServerProcess.start(tmp_path / "data", *WORKER_FLAGS)
    try:
        pids = children(server)
        seats = [Seat(server.account) for _ in range(4)]
        body = b'{"TableName":"late"}'
        for seat in seats:  # Their heads have come, not their bodies.
            seat.connection.putrequest("POST", f"/{server.account.name}/Tables")
            seat.connection.putheader("Content-Length", str(len(body)))
            seat.connection.endheaders(body[:5])
        server.signal(signal.SIGTERM)
        _wait_until_rejected(server.account)
        for seat in seats:
            seat.connection.send(body[5:])
            answer = seat.connection.getresponse()
            assert answer.status == 401  # Its credentials are missing; an answer all the same.
            answer.read()
            seat.connection.close()
    finally:
        code = server.join()
    assert code == 0
    wait_until_gone(pids)


def _wait_until_rejected(account: Account) -> None:
    name, _, port = account.host.rpartition(":")
    while True:
        try:
            socket.create_connection((name, int(port)), SECONDS_MAX).close()
        except ConnectionError:
            return
