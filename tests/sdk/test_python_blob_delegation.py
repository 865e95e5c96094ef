"""The Python SDK of blobs with token credentials and user delegation keys: what roles and SAS permit, over HTTPS."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from azure.storage.blob import (
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    UserDelegationKey,
    generate_blob_sas,
    generate_container_sas,
)
from tests.certificates import Authority
from tests.issuer import issuing
from tests.server_process import serving
from tests.tokens import signing_key

from .bearers import Credential, Secured
from .blob_clients import later, new_name
from .delegations import START, USER, status

OWNER = "Storage Blob Data Owner"
CONTRIBUTOR = "Storage Blob Data Contributor"
READER = "Storage Blob Data Reader"
DELEGATOR = "Storage Blob Delegator"
NAME = "d/ü b.txt"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A server of blobs; its endpoint is theirs."""
    directory = tmp_path_factory.mktemp("delegation")
    authority, key = Authority(directory), signing_key("first")
    with issuing(key) as issuer:
        flags = (*authority.issue().flags, "--oidc-issuer", issuer.url, "--services", "table,blob")
        with serving(directory / "data", *flags) as process:
            yield Secured(process.account.blob_endpoint, issuer, key, authority.root)


def service_of(server: Secured, *roles: str) -> BlobServiceClient:
    """Return a client with a token of the roles."""
    token = server.issuer.token(server.key, time.time(), roles=list(roles), **USER)
    return BlobServiceClient(server.endpoint, credential=Credential(lambda _: token), **server.options())


def key_of(server: Secured, *roles: str) -> UserDelegationKey:
    """Return a key for an hour."""
    with service_of(server, *roles) as service:
        return service.get_user_delegation_key(START, START + timedelta(hours=2))


@pytest.fixture
def container(server: Secured) -> Iterator[str]:
    """The name of a container with the blob `NAME`."""
    with service_of(server, OWNER) as service, service.create_container(new_name()) as client:
        client.upload_blob(NAME, b"hello")
        yield client.container_name
        client.delete_container()


class Signed(NamedTuple):
    """Makes clients with SAS that a delegation key signs."""

    server: Secured
    container: str
    key: UserDelegationKey

    @property
    def _account(self) -> str:
        return self.server.endpoint.rstrip("/").rsplit("/", 1)[-1]

    def blob(self, permission: str, **fields: Any) -> BlobClient:
        """Return a client of the blob."""
        terms: dict[str, Any] = {"permission": permission, "expiry": later(), "user_delegation_key": self.key, **fields}
        token = generate_blob_sas(self._account, self.container, NAME, **terms)
        return BlobClient(self.server.endpoint, self.container, NAME, credential=token, **self.server.options())

    def all(self, permission: str) -> ContainerClient:
        """Return a client of the container."""
        token = generate_container_sas(
            self._account, self.container, user_delegation_key=self.key, permission=permission, expiry=later()
        )
        return ContainerClient(self.server.endpoint, self.container, token, **self.server.options())


OPERATIONS: dict[str, tuple[Callable[[ContainerClient], object], tuple[str, ...]]] = {
    "read": (lambda container: container.download_blob(NAME), (OWNER, CONTRIBUTOR, READER)),
    "list": (lambda container: list(container.list_blobs()), (OWNER, CONTRIBUTOR, READER)),
    "write": (lambda container: container.upload_blob("new", b"", overwrite=True), (OWNER, CONTRIBUTOR)),
    "delete": (lambda container: container.delete_blob(NAME), (OWNER, CONTRIBUTOR)),
    "tags": (lambda container: container.get_blob_client(NAME).get_blob_tags(), (OWNER,)),
    "metadata": (lambda container: container.set_container_metadata({"a": "1"}), (OWNER, CONTRIBUTOR)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("role", [OWNER, CONTRIBUTOR, READER, DELEGATOR])
def test_the_roles(server: Secured, container: str, operation: str, role: str) -> None:
    perform, allowed = OPERATIONS[operation]
    with service_of(server, role) as service, service.get_container_client(container) as client:
        if role in allowed:
            perform(client)
        else:
            assert status(perform, client) == 403


def test_a_delegated_blob(server: Secured, container: str) -> None:
    key = key_of(server, CONTRIBUTOR)
    assert (key.signed_oid, key.signed_tid, key.signed_service) == (USER["oid"], USER["tid"], "b")
    signed = Signed(server, container, key)
    with signed.blob("r") as blob:
        assert blob.download_blob().readall() == b"hello"
        assert status(blob.delete_blob) == status(blob.set_blob_metadata, {"a": "1"}) == 403
    with signed.blob("rw", content_type="text/x") as blob:
        blob.upload_blob(b"new", overwrite=True)
        assert blob.get_blob_properties().content_settings.content_type == "text/x"
    with signed.blob("r", start=datetime.now(UTC) + timedelta(minutes=5)) as blob:
        assert status(blob.download_blob) == 403


def test_a_delegated_container(server: Secured, container: str) -> None:
    with Signed(server, container, key_of(server, CONTRIBUTOR)).all("rwdl") as client:
        client.upload_blob("a", b"x")
        assert [each.name for each in client.list_blobs()] == ["a", NAME]
        client.delete_blob("a")
        assert status(client.delete_container) == 403


def test_the_roles_of_the_user_bound_a_token(server: Secured, container: str) -> None:
    with Signed(server, container, key_of(server, READER)).all("rw") as client:
        client.download_blob(NAME)
        assert status(client.upload_blob, "a", b"x") == 403


def test_a_forged_key(server: Secured, container: str) -> None:
    key = key_of(server, CONTRIBUTOR)
    key.value = (key.value or "")[:-8] + "AAAAAAA="
    with Signed(server, container, key).all("r") as client:
        assert status(client.download_blob, NAME) == 403
