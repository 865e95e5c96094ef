"""Blobs in the explorer, over its own listener, looked at with the official SDK afterwards."""

import html
import io
import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlencode
from zipfile import ZipFile

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import (
    AccessPolicy,
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    RetentionPolicy,
)

import lazulite.testing
from lazulite.ui.blobs import listing
from tests.ui.explorer import Client, Seen, explorer

SECONDS_MAX = 60
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted\" & 'more'",
    "a%2Fb",
    "dots/%2e/…/.x..y",
    "שלום\u202eabc",
    "  spaces  +&=#? ",
    "x" * 1024,
    "語" * 1024,
)


@pytest.fixture(scope="module")
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as found:
        yield found


@pytest.fixture(scope="module")
def client(storage: lazulite.testing.Storage) -> Iterator[Client]:
    with explorer(storage) as link:
        yield Client(link)


@pytest.fixture(scope="module")
def service(storage: lazulite.testing.Storage) -> Iterator[BlobServiceClient]:
    with BlobServiceClient.from_connection_string(storage.connection_string) as found:
        found.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=7))
        yield found


@pytest.fixture
def container(service: BlobServiceClient, request: pytest.FixtureRequest) -> ContainerClient:
    return service.create_container(f"c{abs(hash(request.node.name)) % 10**9}")


def url(container: ContainerClient, page: str = "", **query: str) -> str:
    return f"/{container.account_name}/blobs/{container.container_name}{page}?{urlencode(query, quote_via=quote)}"


def of(blob: BlobClient, page: str = "/blob", **query: str) -> str:
    place = f"/{blob.account_name}/blobs/{blob.container_name}{page}"
    return f"{place}?{urlencode({'name': blob.blob_name, **query}, quote_via=quote)}"


def raw(client: Client, path: str) -> tuple[dict[str, str], bytes]:
    connection = HTTPConnection(client.host, timeout=SECONDS_MAX)
    connection.request("GET", path, headers={"Cookie": client.cookie})
    response = connection.getresponse()
    assert response.status == 200
    found = {name.lower(): value for name, value in response.getheaders()}, response.read()
    connection.close()
    return found


def done(client: Client, seen: Seen) -> Any:
    """Wait for the job of a redirect."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        found = client.json(seen.location)
        if found["has_ended"]:
            return found["job"]
        time.sleep(0.01)
    raise AssertionError("the job does not end")


def test_containers_are_created_listed_and_deleted_by_their_number(client: Client, service: BlobServiceClient) -> None:
    path = "/devstoreaccount1/blobs"
    for name, access in (("made-1", ""), ("made-2", "blob")):
        seen = client.post(f"{path}?do=create", {"name": name, "access": access})
        assert seen.location == f"{path}/{name}"
    found = client.json(f"{path}?prefix=made-")
    assert [(each["name"], each["public_access"]) for each in found["containers"]] == [
        ("made-1", ""),
        ("made-2", "blob"),
    ]
    assert service.get_container_client("made-2").get_container_properties().public_access == "blob"
    body = f"csrf={client.csrf}&container=made-1&container=made-2&confirm={{}}"
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": client.origin}
    assert client.send("POST", f"{path}?do=delete", headers, body.format(1).encode()).status == 400
    assert client.send("POST", f"{path}?do=delete", headers, body.format(2).encode()).status == 303
    assert client.json(f"{path}?prefix=made-")["containers"] == []
    assert "No container starts with made-." in client.get(f"{path}?prefix=made-").text


def test_a_container_has_settings(client: Client, container: ContainerClient) -> None:
    container.set_container_access_policy({"reader": AccessPolicy(permission="r")})
    place = url(container, "/settings")
    assert client.post(f"{place}do=metadata", {"metadata": "Owner = Ada\nKind=x = y\n"}).status == 303
    assert client.post(f"{place}do=access", {"access": "container"}).status == 303
    properties = container.get_container_properties()
    assert properties.metadata == {"Owner": "Ada", "Kind": "x = y"}
    policies = container.get_container_access_policy()
    assert (policies["public_access"], [each.id for each in policies["signed_identifiers"]]) == (
        "container",
        ["reader"],
    )
    found = client.json(place)
    assert (found["metadata_text"], found["policies"][0]["permission"]) == ("Kind = x = y\nOwner = Ada", "r")
    container.acquire_lease()
    assert client.post(f"{place}do=break-lease").status == 303
    assert container.get_container_properties().lease.state == "broken"
    assert client.post(f"{place}do=delete", {"confirm": "other"}).status == 400
    assert client.post(f"{place}do=delete", {"confirm": container.container_name}).status == 303
    assert not container.exists()
    assert client.get(place).status == 404


def test_blobs_are_listed_as_folders_by_pages(
    client: Client, container: ContainerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/1", "a/2", "a/b/3", "c", "d"):
        container.upload_blob(name, name)
    monkeypatch.setattr(
        listing.list_blobs, "__kwdefaults__", {**(listing.list_blobs.__kwdefaults__ or {}), "results_max": 2}
    )
    first = client.json(url(container))
    second = client.json(url(container, next=first["next"], seen=str(first["seen"])))
    assert [first["prefixes"], [each["name"] for each in first["rows"]]] == [["a/"], ["c"]]
    assert ([each["name"] for each in second["rows"]], second["next"], second["seen"]) == (["d"], "", 3)
    inside = client.json(url(container, prefix="a/"))
    assert ([each["name"] for each in inside["rows"]], inside["folder"]) == (["a/1", "a/2"], "a/")
    assert client.json(url(container, prefix="a/b"))["prefixes"] == ["a/b/"]
    assert "begins with zz" in client.get(url(container, prefix="zz")).text


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_shown_and_followed(client: Client, service: BlobServiceClient, name: str) -> None:
    container = service.get_container_client("hostile")
    if not container.exists():
        container.create_container()
    blob = container.get_blob_client(name)
    blob.upload_blob(b"content", overwrite=True)
    stored = next(each.name for each in container.list_blobs() if each.name.endswith(blob.blob_name[-4:]))
    folder = stored[: stored.rfind("/") + 1]
    page = client.get(url(container, prefix=folder)).text
    assert "<script>alert" not in page
    query = urlencode({"name": stored}, quote_via=quote)
    assert f'/blob?{query}"' in page
    found = client.get(f"/devstoreaccount1/blobs/hostile/blob?{query}")
    assert (found.status, "<script>alert" in found.text) == (200, False)
    assert raw(client, f"/devstoreaccount1/blobs/hostile/content?{query}")[1] == b"content"
    etag = client.json(f"/devstoreaccount1/blobs/hostile/blob?{query}")["etag"]
    assert client.post(f"/devstoreaccount1/blobs/hostile/blob?{query}&do=delete", {"etag": etag}).status == 303
    assert stored not in [each.name for each in container.list_blobs()]


def upload(client: Client, container: ContainerClient, name: str, blocks: list[bytes], **fields: str) -> Seen:
    """Upload as the script of the page does."""
    headers = {"X-CSRF-Token": client.csrf, "Origin": client.origin}
    for number, block in enumerate(blocks):
        path = url(container, do="block", name=name, upload="0123456789abcdef", number=str(number))
        assert client.send("POST", path, headers, block).status == 201
    form = {"name": name, "upload": "0123456789abcdef", "count": str(len(blocks)), **fields}
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    return client.send("POST", url(container, do="commit"), headers, urlencode(form).encode())


def test_files_are_uploaded_in_blocks(client: Client, container: ContainerClient) -> None:
    assert upload(client, container, "dir/a b", [b"1" * 70_000, b"2"], type="text/plain").status == 201
    blob = container.get_blob_client("dir/a b")
    assert blob.download_blob().readall() == b"1" * 70_000 + b"2"
    assert blob.get_blob_properties().content_settings.content_type == "text/plain"
    seen = upload(client, container, "dir/a b", [b"3"])
    assert (seen.status, "BlobAlreadyExists" in seen.text) == (409, True)
    assert upload(client, container, "dir/a b", [], replace="true").status == 201
    assert blob.get_blob_properties().size == 0
    headers = {"X-CSRF-Token": "no", "Origin": client.origin}
    path = url(container, do="block", name="x", upload="0123456789abcdef", number="0")
    assert client.send("POST", path, headers, b"x").status == 403
    headers["X-CSRF-Token"] = client.csrf
    for wrong in ({"number": "99999"}, {"upload": "x"}, {"number": "-1"}):
        given = {"do": "block", "name": "x", "upload": "0123456789abcdef", "number": "0", **wrong}
        assert client.send("POST", url(container, **given), headers, b"x").status == 400


def test_a_content_is_downloaded_as_a_file_that_nothing_runs(client: Client, container: ContainerClient) -> None:
    data = bytes(range(256)) * 2000
    stated = ContentSettings(content_type="text/html")
    blob = container.upload_blob("a/page.html", data, content_settings=stated)
    headers, content = raw(client, of(blob, "/content"))
    assert content == data
    assert headers["content-disposition"].startswith('attachment; filename="page.html"')
    assert headers["content-type"] == "application/octet-stream"
    assert "sandbox" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert client.get(of(blob, "/content", **{"as": "image"})).status == 415
    headers, content = raw(
        client, of(container.upload_blob("p.html", PNG, content_settings=stated), "/content", **{"as": "image"})
    )
    assert (headers["content-type"], content) == ("image/png", PNG)
    assert client.get(of(container.get_blob_client("gone"), "/content")).status == 404


def test_a_folder_is_downloaded_as_one_archive(client: Client, container: ContainerClient) -> None:
    for name in ("a/1", "a/b/2", "c"):
        container.upload_blob(name, name)
    headers, content = raw(client, url(container, "/zip", prefix="a/"))
    assert headers["content-disposition"].startswith('attachment; filename="a.zip"')
    with ZipFile(io.BytesIO(content)) as file:
        assert {name: file.read(name) for name in file.namelist()} == {"1": b"a/1", "b/2": b"a/b/2"}
    assert client.get(url(container, "/zip", prefix="zz")).status == 404


def test_selected_blobs_are_deleted_as_they_were_shown(client: Client, container: ContainerClient) -> None:
    for name in ("a", "b"):
        container.upload_blob(name, b"").create_snapshot()
    rows = {each["name"]: each for each in client.json(url(container))["rows"]}
    container.upload_blob("a", b"new", overwrite=True)
    body = urlencode(
        [("csrf", client.csrf), ("snapshots", "include")]
        + [("blob", json.dumps([name, '"' + row["properties"]["Etag"].strip('"') + '"'])) for name, row in rows.items()]
    )
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": client.origin}
    assert client.send("POST", url(container, do="delete-blobs"), headers, body.encode()).status == 303
    page = client.get(url(container)).text
    assert "1 blob was deleted. Not deleted: a: ConditionNotMet" in page
    assert [each.name for each in container.list_blobs()] == ["a"]


def test_blobs_of_a_prefix_are_counted_and_deleted_by_jobs(client: Client, container: ContainerClient) -> None:
    for number in range(30):
        container.upload_blob(f"a/{number:02}", b"x" * 10)
    container.upload_blob("b", b"").create_snapshot()
    leased = container.get_blob_client("a/07")
    leased.acquire_lease()
    counted = done(client, client.post(url(container, prefix="a/", do="count")))
    assert counted["lines"] == ["30 blobs, 300 bytes (300 bytes)", "Block: 30 blobs, 300 bytes"]
    path, name = url(container, prefix="a/", do="empty"), container.container_name
    assert client.post(path, {"confirm": name}).status == 400
    job = done(client, client.post(path, {"confirm": f"{name}/a/"}))
    assert (job["done"], job["failed"]) == (30, 1)
    assert "LeaseIdMissing" in job["lines"][0]
    assert [each.name for each in container.list_blobs()] == ["a/07", "b"]
    assert client.post(of(leased, do="break-lease")).status == 303
    assert done(client, client.post(url(container, do="empty"), {"confirm": name}))["failed"] == 0
    assert list(container.list_blobs(include=["snapshots"])) == []


def test_properties_metadata_and_tags_are_changed_under_the_etag(client: Client, container: ContainerClient) -> None:
    blob = container.upload_blob("a", b"text", metadata={"Old": "1"}, tags={"t": "1"})
    md5 = blob.get_blob_properties().content_settings.content_md5
    place = of(blob)
    fields = {"etag": client.json(place)["etag"], "md5": client.json(place)["blob"]["properties"]["Content-MD5"]}
    assert (
        client.post(f"{place}&do=properties", {**fields, "content-type": "text/x", "cache-control": "no-store"}).status
        == 303
    )
    stored = blob.get_blob_properties().content_settings
    assert (stored.content_type, stored.cache_control, stored.content_md5) == ("text/x", "no-store", md5)
    stale = client.post(f"{place}&do=metadata", {**fields, "metadata": "Mine = 1"})
    assert stale.status == 412
    assert "has changed since this page was loaded" in stale.text
    assert "Mine = 1" in stale.text
    etag = client.json(place)["etag"]
    assert client.post(f"{place}&do=metadata", {"etag": etag, "metadata": "Mine = 1\nNumber = 2"}).status == 303
    assert client.json(place)["metadata_text"] == "Mine = 1\nNumber = 2"
    assert "Mine" in blob.get_blob_properties().metadata
    wrong = client.post(f"{place}&do=metadata", {"etag": etag, "metadata": "no value"})
    assert (wrong.status, "no value" in wrong.text) == (400, True)
    found = client.json(place)
    tags = {"etag": found["etag"], "before": found["tags_before"], "tags": "t = 2\nmore = x y"}
    assert client.post(f"{place}&do=tags", tags).status == 303
    assert blob.get_blob_tags() == {"t": "2", "more": "x y"}
    assert client.post(f"{place}&do=tags", tags).status == 412
    assert client.post(f"{place}&do=tier", {"tier": "Cool"}).status == 303
    assert blob.get_blob_properties().blob_tier == "Cool"


def test_snapshots_are_taken_shown_promoted_and_deleted(client: Client, container: ContainerClient) -> None:
    blob = container.upload_blob("a", b"first")
    place = of(blob)
    assert client.post(f"{place}&do=snapshot").status == 303
    blob.upload_blob(b"second", overwrite=True)
    found = client.json(place)
    time = found["snapshots"][0]["snapshot"]
    assert "1 snapshot, which is deleted with it. For 7 days" in found["fate"]
    past = of(blob, snapshot=time)
    assert client.json(past)["preview"]["text"] == "first"
    assert "This is a snapshot of" in client.get(past).text
    assert raw(client, of(blob, "/content", snapshot=time))[1] == b"first"
    assert client.post(f"{place}&do=promote", {"snapshot": time}).location == place
    assert blob.download_blob().readall() == b"first"
    assert client.post(f"{place}&do=delete-past", {"snapshot": time}).status == 303
    assert [each.snapshot for each in container.list_blobs(include=["snapshots"])] == [None]
    blob.create_snapshot()
    assert client.post(f"{place}&do=delete", {"etag": client.json(place)["etag"], "mode": "only"}).location == place
    assert client.json(place)["snapshots"] == []
    assert client.post(f"{place}&do=delete", {"etag": '"0x1"'}).status == 412
    assert client.post(f"{place}&do=delete", {"etag": client.json(place)["etag"]}).status == 303
    assert not blob.exists()
    assert "The blob is deleted. Soft delete still keeps it." in client.get(place).text
    assert [each["is_deleted"] for each in client.json(url(container, show="deleted"))["rows"]] == [True]
    assert client.post(f"{place}&do=undelete").status == 303
    assert blob.download_blob().readall() == b"first"


def test_versions_are_shown_and_promoted(storage: lazulite.testing.Storage, client: Client) -> None:
    account = storage.account("versioned", versioning=True)
    with BlobServiceClient.from_connection_string(account.connection_string) as service:
        blob = service.create_container("box").upload_blob("a", b"first")
        blob.upload_blob(b"second", overwrite=True)
        place = of(blob)
        found = client.json(place)
        assert "stays as one" in found["fate"]
        version = found["versions"][0]["version"]
        assert client.json(of(blob, versionid=version))["preview"]["text"] == "first"
        blob.delete_blob()
        page = client.get(place).text
        assert "Its versions are kept" in page
        assert client.post(f"{place}&do=promote", {"version": version}).status == 303
        assert blob.download_blob().readall() == b"first"


def test_a_shared_url_opens_for_what_it_permits_and_is_kept_nowhere(client: Client, container: ContainerClient) -> None:
    blob = container.upload_blob("a b/%2F<x>", b"content")
    form = {"permission": "r", "expiry": "2030-01-01T10:00", "start": "", "ip": "", "policy": ""}
    seen = client.post(of(blob, do="share"), form)
    assert seen.status == 200
    shared = _url_in(seen.text)
    with BlobClient.from_blob_url(shared) as fresh:
        assert fresh.download_blob().readall() == b"content"
        with pytest.raises(HttpResponseError, match="not authorized"):
            fresh.delete_blob()
    assert "sig=" not in client.get(of(blob)).text
    assert "sig=" not in client.get("/jobs").text
    refused = client.post(of(blob, do="share"), {**form, "expiry": ""})
    assert (refused.status, "no URL was made" in refused.text) == (400, True)
    assert client.post(of(blob, do="share"), {**form, "ip": "x"}).status == 400
    container.set_container_access_policy({"lister": AccessPolicy(permission="rl", expiry="2030-01-01T00:00:00Z")})
    policy = {"expiry": "", "policy": "lister"}
    with ContainerClient.from_container_url(
        _url_in(client.post(url(container, "/settings", do="share"), policy).text)
    ) as fresh:
        assert [each.name for each in fresh.list_blobs()] == [blob.blob_name]
    container.set_container_access_policy({})


def _url_in(page: str) -> str:
    return html.unescape(page.partition('id="sas-url"')[2].partition(">")[2].partition("</textarea>")[0])


def test_what_is_not_there_is_told(client: Client, container: ContainerClient) -> None:
    assert client.get(of(container.get_blob_client("gone"))).status == 404
    assert client.get("/devstoreaccount1/blobs/no-such").status == 404
    assert client.get(url(container, "/blob")).status == 404
    assert "The container is empty." in client.get(url(container)).text
    with pytest.raises(ResourceNotFoundError):
        container.get_blob_client("gone").get_blob_properties()


def test_a_text_is_previewed_by_its_beginning(client: Client, container: ContainerClient) -> None:
    blob = container.upload_blob("a.txt", b"x" * 300_000)
    found = client.json(of(blob))["preview"]
    assert (found["kind"], len(found["text"])) == ("text", 262_144)
    assert "262,144 of 300,000 bytes" in found["note"]
    image = client.get(of(container.upload_blob("a.svg", PNG))).text
    assert "as=image" in image
