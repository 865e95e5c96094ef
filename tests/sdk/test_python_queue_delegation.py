"""The Python SDK of queues with user delegation keys: what their SAS permit, and how they end."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.storage.queue import QueueClient
from tests.certificates import Authority
from tests.issuer import issuing
from tests.server_process import running, serving
from tests.tokens import signing_key

from .delegations import (
    CONTRIBUTOR,
    DELEGATOR,
    READER,
    START,
    USER,
    Server,
    own_endpoint,
    queue_endpoint,
    run_command,
    status,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("delegation")
    authority, key = Authority(directory), signing_key("first")
    with issuing(key) as issuer:
        services = ("--services", "table,queue", "--queue-port", "0")
        flags = (*authority.issue().flags, "--oidc-issuer", issuer.url, *services)
        with serving(directory / "data", *flags) as process:
            yield Server(queue_endpoint(process.account), issuer, key, authority.root)


@pytest.fixture
def name(server: Server) -> str:
    """The name of a queue."""
    with server.service(CONTRIBUTOR, oid="owner") as service:
        return service.create_queue(f"q{uuid4().hex}").queue_name


def test_a_contributor_delegates_its_rights(server: Server, name: str) -> None:
    key = server.delegation_key(CONTRIBUTOR)
    assert (key.signed_oid, key.signed_tid, key.signed_service) == (USER["oid"], USER["tid"], "q")
    with server.queue(name, key) as queue:
        queue.send_message("a")
        [message] = queue.receive_messages()
        queue.update_message(message, visibility_timeout=0)
        assert [each.content for each in queue.peek_messages()] == ["a"]
        assert queue.get_queue_properties().approximate_message_count == 1
        assert status(queue.clear_messages) == status(queue.delete_queue) == 403
    with server.queue(name, key, "r") as queue:
        queue.peek_messages()
        assert status(queue.send_message, "b") == 403


def test_the_roles_of_the_user_bound_a_token(server: Server, name: str) -> None:
    key = server.delegation_key(READER)
    with server.queue(name, key) as queue:
        queue.peek_messages()
        assert status(queue.send_message, "b") == 403
    with server.queue(name, server.delegation_key(DELEGATOR, oid="delegator")) as queue:
        assert status(queue.peek_messages) == 403
    with server.queue(name, server.delegation_key(READER, CONTRIBUTOR)) as queue:
        queue.send_message("b")


def test_the_newest_token_of_the_user_has_the_roles(server: Server, name: str) -> None:
    claims = {"oid": "changing"}
    key = server.delegation_key(CONTRIBUTOR, **claims)
    with server.queue(name, key) as queue:
        queue.send_message("a")
        with server.service(READER, iat=time.time() + 5, **claims) as service:
            list(service.list_queues())
        assert status(queue.send_message, "b") == 403
        with server.service(CONTRIBUTOR, iat=time.time() - 5, **claims) as service:
            list(service.list_queues())
        assert status(queue.send_message, "b") == 403


def test_a_token_is_for_its_queue_and_ends(server: Server, name: str) -> None:
    key = server.delegation_key(CONTRIBUTOR)
    token = server.sas(name, key)
    with QueueClient(server.endpoint, f"{name}-other", credential=token, **server.options()) as queue:
        assert status(queue.peek_messages) == 403
    with QueueClient(server.endpoint, name, credential=f"{token}&skoid=x", **server.options()) as queue:
        assert status(queue.peek_messages) == 403
    with server.queue(name, key, start=datetime.now(UTC) + timedelta(minutes=5)) as queue:
        assert status(queue.peek_messages) == 403
    for field, value in (
        ("value", (key.value or "")[:-8] + "AAAAAAA="),
        ("signed_oid", "x"),
        ("signed_expiry", "2100-01-01"),
    ):
        forged = server.delegation_key(CONTRIBUTOR)
        setattr(forged, field, value)
        with server.queue(name, forged) as queue:
            assert status(queue.peek_messages) == 403


def test_a_token_for_one_user(server: Server, name: str) -> None:
    account_token = server.issuer.token(server.key, time.time(), roles=[], **(USER | {"oid": "friend"}))
    key = server.delegation_key(CONTRIBUTOR)
    with server.queue(name, key, user_delegation_oid="friend") as queue:
        assert status(queue.send_message, "a") == 403
        queue.send_message("a", headers={"Authorization": f"Bearer {account_token}"})
    with server.queue(name, key, user_delegation_oid="enemy") as queue:
        assert status(queue.send_message, "a", headers={"Authorization": f"Bearer {account_token}"}) == 403


def test_only_a_bearer_gets_a_key(server: Server, name: str) -> None:
    expiry = START + timedelta(hours=2)
    with server.service() as service:
        assert status(service.get_user_delegation_key, start=START, expiry=expiry) == 403
    with server.service(CONTRIBUTOR) as service:
        assert status(service.get_user_delegation_key, start=START, expiry=expiry + timedelta(days=8)) == 400
        assert status(service.get_user_delegation_key, start=START, expiry=expiry - timedelta(hours=3)) == 400
    del name


def test_keys_outlive_a_restart_and_not_a_revocation(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("revocation")
    authority, signing, data = Authority(directory), signing_key("first"), str(directory / "data")
    run_command("account", "add", "orders", "--location", data)
    with issuing(signing) as issuer:
        services = ("--services", "table,queue", "--queue-port", "0", "--table-port", "0")
        flags = ("--location", data, *authority.issue().flags, "--oidc-issuer", issuer.url, *services)
        with running(*flags, lines=3) as process:
            server = Server(own_endpoint(process), issuer, signing, authority.root)
            with server.service(CONTRIBUTOR) as service:
                service.create_queue("jobs")
            key = server.delegation_key(CONTRIBUTOR)
        with running(*flags, lines=3) as process:
            server = server._replace(endpoint=own_endpoint(process))
            with server.queue("jobs", key) as queue:
                queue.send_message("a")
                run_command("account", "revoke-delegation-keys", "orders", "--location", data)
                assert status(queue.send_message, "b") == 403
            with server.queue("jobs", server.delegation_key(CONTRIBUTOR)) as queue:
                queue.send_message("c")
