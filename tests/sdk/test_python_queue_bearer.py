"""The Python SDK of queues with token credentials: what each role permits, over HTTPS."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.queue import QueueClient, QueueServiceClient
from tests.certificates import Authority
from tests.issuer import issuing
from tests.server_process import serving
from tests.tokens import signing_key

from .bearers import Credential, Secured

CONTRIBUTOR = "Storage Queue Data Contributor"
READER = "Storage Queue Data Reader"
PROCESSOR = "Storage Queue Data Message Processor"
SENDER = "Storage Queue Data Message Sender"
ROLES = (CONTRIBUTOR, READER, PROCESSOR, SENDER)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A server of queues; its endpoint is theirs."""
    directory = tmp_path_factory.mktemp("queue")
    authority, key = Authority(directory), signing_key("first")
    with issuing(key) as issuer:
        flags = (
            *authority.issue().flags,
            "--oidc-issuer",
            issuer.url,
            "--services",
            "table,queue",
            "--queue-port",
            "0",
        )
        with serving(directory / "data", *flags) as running:
            yield Secured(running.account.queue_endpoint, issuer, key, authority.root)


def service_of(server: Secured, *roles: str, **claims: Any) -> QueueServiceClient:
    token = server.issuer.token(server.key, time.time(), roles=list(roles), **claims)
    return QueueServiceClient(server.endpoint, credential=Credential(lambda _: token), **server.options())


OPERATIONS: dict[str, tuple[Callable[[QueueClient], object], tuple[str, ...]]] = {
    "put": (lambda queue: queue.send_message("x"), (CONTRIBUTOR, SENDER)),
    "peek": (lambda queue: queue.peek_messages(), (CONTRIBUTOR, READER, PROCESSOR)),
    "get": (lambda queue: queue.receive_message(), (CONTRIBUTOR, PROCESSOR)),
    "metadata": (lambda queue: queue.get_queue_properties(), (CONTRIBUTOR, READER)),
    "clear": (lambda queue: queue.clear_messages(), (CONTRIBUTOR,)),
    "policies": (lambda queue: queue.get_queue_access_policy(), ()),
    "delete": (lambda queue: queue.delete_queue(), (CONTRIBUTOR,)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_roles(server: Secured, operation: str) -> None:
    run, allowed = OPERATIONS[operation]
    with service_of(server, CONTRIBUTOR) as owner:
        name = owner.create_queue(f"q{uuid4().hex}").queue_name
        for role in sorted(ROLES, key=lambda role: role in allowed):
            with service_of(server, role) as service:
                if role in allowed:
                    run(service.get_queue_client(name))
                else:
                    with pytest.raises(HttpResponseError) as caught:
                        run(service.get_queue_client(name))
                    assert caught.value.status_code == 403


def test_a_processor_deletes_and_cannot_update(server: Secured) -> None:
    with service_of(server, CONTRIBUTOR) as owner, service_of(server, PROCESSOR) as service:
        name = owner.create_queue(f"q{uuid4().hex}").queue_name
        owner.get_queue_client(name).send_message("x")
        queue = service.get_queue_client(name)
        message = queue.receive_message()
        assert message is not None
        with pytest.raises(HttpResponseError) as caught:
            queue.update_message(message, content="y")
        assert caught.value.status_code == 403
        queue.delete_message(message)
        assert owner.get_queue_client(name).get_queue_properties().approximate_message_count == 0


def test_lists_and_properties(server: Secured) -> None:
    with service_of(server, READER) as service:
        list(service.list_queues())
        with pytest.raises(HttpResponseError) as caught:
            service.get_service_properties()
        assert caught.value.status_code == 403


def test_the_audience_of_the_account(server: Secured) -> None:
    account = server.endpoint.rstrip("/").rsplit("/", 1)[-1]
    with service_of(server, READER, aud=f"https://{account}.queue.core.windows.net") as service:
        list(service.list_queues())


@pytest.mark.parametrize("claims", [{"aud": "https://other.queue.core.windows.net"}, {"exp": 5}])
def test_a_rejected_token_is_challenged(server: Secured, claims: dict[str, Any]) -> None:
    with service_of(server, CONTRIBUTOR, **claims) as service, pytest.raises(ClientAuthenticationError) as caught:
        list(service.list_queues())
    response: Any = caught.value.response
    assert response.headers["x-ms-error-code"] == "NoAuthenticationInformation"
    assert response.headers["WWW-Authenticate"].endswith("resource_id=https://storage.azure.com")
