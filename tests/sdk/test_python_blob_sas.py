"""The Python SDK of blobs with SAS and without credentials, against a server."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

import lazulite.testing
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT

ACCOUNT = DEVELOPMENT_ACCOUNT.name
KEY = base64.b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()
CONTAINER, NAME = "photos", "2026/é b.txt"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The endpoint of an account with a public container, which has one blob."""
    with lazulite.testing.server() as storage:
        url = storage.development.blob_endpoint
        with BlobServiceClient(url, KEY) as service:
            container = service.create_container(CONTAINER, {"a_b": "x  y", "a1": "z"}, "container")
            container.upload_blob(NAME, b"hello", metadata={"a_b": "1", "ab": "2", "a1": "3"})
        yield url


def terms(permission: str) -> dict[str, Any]:
    return {"account_key": KEY, "permission": permission, "expiry": datetime.now(UTC) + timedelta(hours=1)}


def test_a_blob(endpoint: str) -> None:
    token = generate_blob_sas(ACCOUNT, CONTAINER, NAME, content_type="image/png", **terms("r"))
    with BlobClient(endpoint, CONTAINER, NAME, credential=token) as blob:
        assert blob.download_blob().readall() == b"hello"
        assert blob.get_blob_properties().content_settings.content_type == "image/png"
        with pytest.raises(HttpResponseError, match="using this permission"):
            blob.delete_blob()


def test_a_backslash_in_a_name_is_a_slash(endpoint: str) -> None:
    """The newest SDKs of JavaScript sign the name with slashes and send it with backslashes."""
    with BlobClient(endpoint, CONTAINER, "back\\slash\\a.", credential=KEY) as blob:
        blob.upload_blob(b"hello")
    token = generate_blob_sas(ACCOUNT, CONTAINER, "back/slash/a", **terms("rd"))
    for name in ("back\\slash\\a", "back/slash\\a"):
        with BlobClient(endpoint, CONTAINER, name, credential=token) as blob:
            assert blob.download_blob().readall() == b"hello"
    with ContainerClient(endpoint, CONTAINER, credential=KEY) as container:
        assert [each.name for each in container.list_blobs("back")] == ["back/slash/a"]
    with BlobClient(endpoint, CONTAINER, "back/slash/a", credential=token) as blob:
        blob.delete_blob()


def test_a_snapshot(endpoint: str) -> None:
    with BlobClient(endpoint, CONTAINER, NAME, credential=KEY) as blob:
        time = str(blob.create_snapshot()["snapshot"])
    token = generate_blob_sas(ACCOUNT, CONTAINER, NAME, snapshot=time, **terms("r"))
    with BlobClient(endpoint, CONTAINER, NAME, snapshot=time, credential=token) as snapshot:
        assert snapshot.download_blob().readall() == b"hello"
    with BlobClient(endpoint, CONTAINER, NAME, credential=token) as blob, pytest.raises(HttpResponseError):
        blob.download_blob()


def test_a_container(endpoint: str) -> None:
    token = generate_container_sas(ACCOUNT, CONTAINER, **terms("rlc"))
    with ContainerClient(endpoint, CONTAINER, token) as container:
        assert [blob.name for blob in container.list_blobs()] == [NAME]
        with pytest.raises(HttpResponseError, match="blob overwrites"):
            container.upload_blob(NAME, b"x", overwrite=True)


def test_an_account(endpoint: str) -> None:
    token = generate_account_sas(ACCOUNT, KEY, "sco", "rl", datetime.now(UTC) + timedelta(hours=1))
    with BlobServiceClient(endpoint, token) as service:
        assert [container.name for container in service.list_containers()] == [CONTAINER]


def test_a_public_container(endpoint: str) -> None:
    with ContainerClient(endpoint, CONTAINER) as container:
        assert [blob.name for blob in container.list_blobs()] == [NAME]
        assert container.download_blob(NAME).readall() == b"hello"
        with pytest.raises(HttpResponseError) as caught:
            container.upload_blob("new", b"x")
    assert caught.value.status_code == 401
