"""`azure-storage-queue` with a SAS as its only credential: of the account, of a queue, by a stored access policy."""

from collections.abc import Callable

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    QueueClient,
    QueueSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_queue_sas,
)

from .queue_clients import Account, connect, later, new_name, queue_client


def queue_sas(account: Account, name: str, **terms: object) -> str:
    """Return a token of a queue that is good for an hour, unless a policy says otherwise."""
    if "policy_id" not in terms:
        terms = {"expiry": later(), **terms}
    return generate_queue_sas(account.name, name, account.key, **terms)  # type: ignore[arg-type]  # its own arguments


def denied(error: pytest.ExceptionInfo[HttpResponseError]) -> str:
    """Return the code of a rejection, which must be 403."""
    assert error.value.status_code == 403
    found = vars(error.value)["error_code"]
    return str(getattr(found, "value", found))


def test_account_sas_of_messages(queue_account: Account, queue: QueueClient) -> None:
    allowed = AccountSasPermissions(add=True, process=True)
    token = generate_account_sas(queue_account.name, queue_account.key, ResourceTypes(object=True), allowed, later())
    for credential in (token, AzureSasCredential(token)):
        with queue_client(queue_account, queue.queue_name, credential) as client:
            client.send_message("a")
            got = client.receive_message()
            assert got is not None
            client.delete_message(got)
            with pytest.raises(HttpResponseError) as rejected:
                client.peek_messages()
            assert denied(rejected) == "AuthorizationPermissionMismatch"
            with pytest.raises(HttpResponseError) as rejected:
                client.get_queue_properties()
            assert denied(rejected) == "AuthorizationResourceTypeMismatch"


def test_account_sas_of_queues(queue_account: Account) -> None:
    kinds = ResourceTypes(service=True, container=True, object=True)
    allowed = AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True)
    token = generate_account_sas(queue_account.name, queue_account.key, kinds, allowed, later())
    with connect(queue_account, token) as service:
        name = new_name()
        with service.create_queue(name) as client:
            client.set_queue_metadata({"a": "1"})
            assert [each.name for each in service.list_queues(name)] == [name]
            client.clear_messages()
            assert service.get_service_properties()["cors"] == []
            with pytest.raises(HttpResponseError) as rejected:
                client.send_message("a")
            assert denied(rejected) == "AuthorizationPermissionMismatch"
            client.delete_queue()


OPERATIONS: dict[str, Callable[[QueueClient], object]] = {
    "read": lambda queue: queue.peek_messages(),
    "add": lambda queue: queue.send_message("b"),
    "process": lambda queue: queue.receive_message(),
}


@pytest.mark.parametrize("permission", OPERATIONS)
def test_service_sas(queue_account: Account, queue: QueueClient, permission: str) -> None:
    queue.send_message("a")
    token = queue_sas(queue_account, queue.queue_name, permission=QueueSasPermissions(**{permission: True}))
    with queue_client(queue_account, queue.queue_name, token) as client:
        for name, run in OPERATIONS.items():
            if name == permission:
                run(client)
                continue
            with pytest.raises(HttpResponseError) as rejected:
                run(client)
            assert denied(rejected) == "AuthorizationPermissionMismatch"


def test_update_by_service_sas(queue_account: Account, queue: QueueClient) -> None:
    sent = queue.send_message("a")
    token = queue_sas(queue_account, queue.queue_name, permission=QueueSasPermissions(update=True))
    with queue_client(queue_account, queue.queue_name, token) as client:
        client.update_message(sent, content="b", visibility_timeout=0)
    assert [message.content for message in queue.peek_messages()] == ["b"]


def test_stored_access_policy(queue_account: Account, queue: QueueClient) -> None:
    queue.set_queue_access_policy({"add": AccessPolicy(QueueSasPermissions(add=True), later())})
    token = queue_sas(queue_account, queue.queue_name, policy_id="add")
    with queue_client(queue_account, queue.queue_name, token) as client:
        client.send_message("a")
        with pytest.raises(HttpResponseError) as rejected:
            client.peek_messages()
        assert denied(rejected) == "AuthorizationPermissionMismatch"
        queue.set_queue_access_policy({})
        with pytest.raises(ClientAuthenticationError) as revoked:
            client.send_message("a")
        assert denied(revoked) == "AuthenticationFailed"


def test_tokens_of_other_queues_times_and_addresses(queue_account: Account, queue: QueueClient) -> None:
    read = QueueSasPermissions(read=True)
    others = {
        "of another queue": queue_sas(queue_account, new_name(), permission=read),
        "expired": queue_sas(queue_account, queue.queue_name, permission=read, expiry=later(-1)),
        "not yet": queue_sas(queue_account, queue.queue_name, permission=read, start=later(0.5)),
        "elsewhere": queue_sas(queue_account, queue.queue_name, permission=read, ip="203.0.113.1"),
        "https": queue_sas(queue_account, queue.queue_name, permission=read, protocol="https"),
    }
    for token in others.values():
        with (
            queue_client(queue_account, queue.queue_name, token) as client,
            pytest.raises(HttpResponseError) as rejected,
        ):
            client.peek_messages()
        assert denied(rejected)


def test_a_url_with_a_token(queue_account: Account, queue: QueueClient) -> None:
    queue.send_message("a")
    token = queue_sas(queue_account, queue.queue_name, permission=QueueSasPermissions(read=True))
    url = f"{queue_account.queue_endpoint}/{queue.queue_name}?{token}"
    with QueueClient.from_queue_url(url, retry_total=0) as client:
        assert [message.content for message in client.peek_messages()] == ["a"]


def test_keys(queue_account: Account, queue: QueueClient) -> None:
    named = AzureNamedKeyCredential(queue_account.name, queue_account.key)
    with queue_client(queue_account, queue.queue_name, named) as client:
        client.send_message("a")
    named.update(queue_account.name, "d3Jvbmc=")
    with queue_client(queue_account, queue.queue_name, named) as client, pytest.raises(HttpResponseError) as rejected:
        client.send_message("a")
    assert denied(rejected) == "AuthenticationFailed"
