"""User delegation keys of several processes: whichever gives out a key, all accept its SAS, at once."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.storage.queue import UserDelegationKey
from tests.certificates import Authority
from tests.issuer import issuing
from tests.postgres.server import shared, until
from tests.server_process import running
from tests.tokens import signing_key

from lazulite.auth.delegation.key import SECRET_SECONDS
from lazulite.engine.commit import Decision, change_row
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock
from lazulite.records.spaces import DELEGATIONS

from .delegations import CONTRIBUTOR, Server, own_endpoint, run_command, status

SERVICES = ("--services", "table,queue", "--queue-port", "0", "--table-port", "0")
CONNECTIONS = 8
"""So many new connections reach both workers, as a rule."""
SECRETS = "queue!secrets"
"""The row of the account's secrets."""


@contextmanager
def processes(directory: Path, *stores: tuple[str, ...]) -> Iterator[list[Server]]:
    """Run a process on each store, which have the account `orders`."""
    authority, signing = Authority(directory), signing_key("first")
    with issuing(signing) as issuer, ExitStack() as stack:
        flags = (*authority.issue().flags, "--oidc-issuer", issuer.url, *SERVICES)
        found = []
        for store in stores:
            process = stack.enter_context(running(*store, *flags, lines=3))
            found.append(Server(own_endpoint(process), issuer, signing, authority.root))
        yield found


@pytest.fixture
def dsn() -> Iterator[str]:
    with shared().database() as found:
        run_command("account", "add", "orders", "--engine", found)
        yield found


def forged() -> UserDelegationKey:
    """Return a key that no server gave out."""
    key = UserDelegationKey()  # type: ignore[no-untyped-call]  # of the SDK
    key.signed_oid = key.signed_tid = "x"
    key.signed_start, key.signed_expiry = "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
    key.signed_service, key.signed_version, key.value = "q", "2026-02-06", "0" * 43 + "="
    return key


def put(server: Server, *keys: UserDelegationKey) -> None:
    """Put a message with a SAS of each key."""
    for key in keys:
        with server.queue("jobs", key) as queue:
            queue.send_message("a")


def rejects(server: Server, key: UserDelegationKey) -> bool:
    """Tell whether a SAS of a key is rejected."""
    with server.queue("jobs", key) as queue:
        try:
            queue.peek_messages()
        except ClientAuthenticationError:
            return True
        return False


def rotate(dsn: str) -> None:
    """Make the account's secrets so old that they make no keys any more."""

    def age(current: bytes | None) -> Decision[None]:
        assert current is not None
        entries = json.loads(current)
        for entry in entries:
            entry["created"] -= SECRET_SECONDS * TICKS_PER_SECOND
        return Decision({SECRETS: json.dumps(entries).encode()}, None)

    async def change() -> None:
        engine = PostgresEngine(PostgresSettings(dsn=dsn), system_clock)
        try:
            await engine.commit(DELEGATIONS, "orders", change_row(SECRETS, age))
        finally:
            await engine.close()

    asyncio.run(change())


def test_both_workers_accept_the_key_of_one(tmp_path: Path) -> None:
    store = ("--location", str(tmp_path / "data"))
    run_command("account", "add", "orders", *store)
    with processes(tmp_path, (*store, "--workers", "2")) as [server]:
        with server.service(CONTRIBUTOR) as service:
            service.create_queue("jobs")
        with server.queue("jobs", forged()) as queue:
            assert status(queue.peek_messages) == 403
        for number in range(CONNECTIONS):
            put(server, *[server.delegation_key(CONTRIBUTOR, oid=f"user {number}")] * 2)


def test_each_process_on_a_database_accepts_the_key_of_another_at_once(tmp_path: Path, dsn: str) -> None:
    store = ("--engine", dsn)
    with processes(tmp_path, store, store) as [one, other]:
        with one.service(CONTRIBUTOR) as service:
            service.create_queue("jobs")
        with other.queue("jobs", forged()) as queue:
            assert status(queue.peek_messages) == 403, "it knows now that there is no secret"
        first = one.delegation_key(CONTRIBUTOR)
        put(other, first)
        rotate(dsn)
        until(lambda: one.delegation_key(CONTRIBUTOR).value != first.value, "a new secret")
        second = one.delegation_key(CONTRIBUTOR)
        for server in (other, one):
            put(server, second, first)
        put(one, other.delegation_key(CONTRIBUTOR, oid="new"))
    with processes(tmp_path, store, store) as [one, other]:
        for server in (one, other):
            put(server, first, second)
        run_command("account", "revoke-delegation-keys", "orders", *store)

        for server in (one, other):
            until(lambda server=server: rejects(server, second), "the revocation")  # type: ignore[misc]  # of a default
