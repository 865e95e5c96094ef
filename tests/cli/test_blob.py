"""`lazulite blob`: blobs of a running server, for people and scripts."""

import io
import json
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import md5
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContainerClient, StandardBlobTier

import lazulite.testing
from lazulite.cli import blob_client, main, progress_line
from lazulite.cli.service_client import ServiceClient, parse_error_message
from tests.blob.world import stored_names
from tests.docs_support import free_port

Run = Callable[..., tuple[int, str, str]]


BLOB_NOT_FOUND = "rejects the request: BlobNotFound: The specified blob does not exist.\n"
SNAPSHOTS_PRESENT = (
    "rejects the request: SnapshotsPresent: This operation is not permitted while the blob has snapshots.\n"
)


@pytest.fixture(scope="module")
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as running:
        yield running


@pytest.fixture
def account(storage: lazulite.testing.Storage) -> lazulite.testing.Account:
    return storage.account()


@pytest.fixture
def run(
    account: lazulite.testing.Account,
    storage: lazulite.testing.Storage,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Return a function that runs the command for the account."""
    monkeypatch.setenv("LAZULITE_ACCOUNTS", f"{account.name}:{account.key}")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["blob", *arguments, "--blob-port", str(storage.blob_port)])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def docs(account: lazulite.testing.Account) -> Iterator[ContainerClient]:
    with BlobServiceClient.from_connection_string(account.connection_string, retry_total=0) as service:
        yield service.create_container("docs")


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 300])
def test_a_file_comes_back_by_one_request_or_by_blocks(
    size: int, docs: ContainerClient, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob_client, "BLOCK_BYTES", 100)
    content = bytes(number % 251 for number in range(size))
    (tmp_path / "source").write_bytes(content)
    assert run("put", str(tmp_path / "source"), "docs/a/b c.json") == (0, "", "")
    properties = docs.get_blob_client("a/b c.json").get_blob_properties()
    assert (properties.size, properties.content_settings.content_type) == (size, "application/json")
    assert bytes(properties.content_settings.content_md5 or b"") == md5(content, usedforsecurity=False).digest()
    target = tmp_path / "target"
    target.write_bytes(b"before")
    assert run("get", "docs/a/b c.json", str(target)) == (0, "", "")
    assert target.read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]


def test_standard_input_and_output(docs: ContainerClient, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\x00\xffbytes")))
    assert run("put", "-", "docs/raw", "--content-type", "text/x-raw")[0] == 0
    settings = docs.get_blob_client("raw").get_blob_properties().content_settings
    assert settings.content_type == "text/x-raw"
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
    assert run("get", "docs/raw")[0] == 0
    assert out.getvalue() == b"\x00\xffbytes"


def test_a_blob_is_overwritten_unless_that_is_forbidden(docs: ContainerClient, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"first")
    assert run("put", str(source), "docs/a", "--no-overwrite") == (0, "", "")
    source.write_bytes(b"second")
    code, _, err = run("put", str(source), "docs/a", "--no-overwrite")
    assert code == 1
    assert err.endswith("rejects the request: BlobAlreadyExists: The specified blob already exists.\n")
    assert docs.download_blob("a").readall() == b"first"
    assert run("put", str(source), "docs/a")[0] == 0
    assert docs.download_blob("a").readall() == b"second"


def test_a_container_is_created_if_asked_to(run: Run, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x")
    code, _, err = run("put", str(tmp_path / "source"), "new/a")
    assert code == 1
    assert err.endswith("rejects the request: ContainerNotFound: The specified container does not exist.\n")
    for _ in range(2):
        assert run("put", str(tmp_path / "source"), "new/a", "--create-container") == (0, "", "")
    assert run("ls") == (0, "new\n", "")


def test_lists_have_all_pages(docs: ContainerClient, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    send = ServiceClient.send

    def paged(self: ServiceClient, method: str, path: str, parameters: dict[str, str]) -> object:
        return send(self, method, path, {**parameters, "maxresults": "2"})

    names = ["2025/a", "2026/01/a", "2026/01/b", "2026/02/a", "2026/z", "3"]
    for name in names:
        docs.upload_blob(name, b"x")
    monkeypatch.setattr(ServiceClient, "send", paged)
    assert run("ls", "docs") == (0, "".join(f"{name}\n" for name in names), "")
    assert run("ls", "docs", "--prefix", "2026/")[1].splitlines() == names[1:5]
    folders = run("ls", "docs", "--prefix", "2026/", "--delimiter", "/")[1].splitlines()
    assert folders == ["2026/01/", "2026/02/", "2026/z"]
    assert run("ls", "docs", "--prefix", "none") == (0, "", "")


def test_a_line_of_json_tells_the_properties(docs: ContainerClient, run: Run) -> None:
    name = "ünï <code> & \uffff"
    docs.upload_blob("a/b", b"x")
    client = docs.upload_blob(name, b"12345")
    prefix, blob = [json.loads(line) for line in run("ls", "docs", "--delimiter", "/", "--json")[1].splitlines()]
    assert prefix == {"prefix": "a/"}
    assert (blob["name"], blob["bytes"], blob["type"]) == (name, 5, "BlockBlob")
    properties = client.get_blob_properties()
    assert blob["etag"] == properties.etag.strip('"')
    assert blob["modified"] == properties.last_modified.isoformat()
    assert json.loads(run("ls", "--json")[1]) == {"container": "docs"}


def test_one_blob_is_deleted(docs: ContainerClient, run: Run) -> None:
    blob = docs.upload_blob("a/b", b"x")
    assert run("rm", "docs/a/b") == (0, "", "")
    with pytest.raises(ResourceNotFoundError):
        blob.get_blob_properties()
    code, out, err = run("rm", "docs/a/b")
    assert (code, out) == (1, "")
    assert err.endswith(BLOB_NOT_FOUND)


def test_snapshots_are_deleted_if_asked_to(docs: ContainerClient, run: Run) -> None:
    docs.upload_blob("a", b"x").create_snapshot()
    assert run("rm", "docs/a")[2].endswith(SNAPSHOTS_PRESENT)
    assert run("rm", "docs/a", "--snapshots") == (0, "", "")


def test_a_blob_is_moved(docs: ContainerClient, run: Run) -> None:
    tags = {"a b": "c=d+", "e": ""}
    blob = docs.get_blob_client("a/b")
    blob.upload_blob(b"x", metadata={"colour": "red"}, tags=tags, standard_blob_tier=StandardBlobTier.COOL)
    assert run("mv", "docs/a/b", "docs/c") == (0, "", "")
    moved = docs.get_blob_client("c")
    properties = moved.get_blob_properties()
    assert moved.download_blob().readall() == b"x"
    assert (properties.metadata, properties.blob_tier) == ({"colour": "red"}, "Cool")
    assert moved.get_blob_tags() == tags
    assert "sig=" not in (properties.copy.source or "")
    assert [each.name for each in docs.list_blobs()] == ["c"]


def test_a_move_overwrites_unless_that_is_forbidden(docs: ContainerClient, run: Run) -> None:
    docs.upload_blob("a", b"first")
    docs.upload_blob("b", b"second")
    code, _, err = run("mv", "docs/a", "docs/b", "--no-overwrite")
    assert code == 1
    assert "rejects the request: BlobAlreadyExists: " in err
    assert [each.name for each in docs.list_blobs()] == ["a", "b"]
    assert run("mv", "docs/a", "docs/b") == (0, "", "")
    assert docs.download_blob("b").readall() == b"first"
    assert run("mv", "docs/a", "docs/b")[2].endswith(BLOB_NOT_FOUND)


def test_a_move_loses_no_snapshots_unasked(docs: ContainerClient, run: Run) -> None:
    docs.upload_blob("a", b"x").create_snapshot()
    assert run("mv", "docs/a", "docs/b")[2].endswith(SNAPSHOTS_PRESENT)
    assert docs.download_blob("a").readall() == b"x"
    assert run("mv", "docs/a", "docs/b", "--snapshots") == (0, "", "")
    assert [each.name for each in docs.list_blobs()] == ["b"]


def test_names_that_no_url_has_are_reached(docs: ContainerClient, run: Run, tmp_path: Path) -> None:
    names = ["a\\b", "a\\c", "a\x01", "b."]
    for name in names:
        with stored_names():
            docs.upload_blob(name, name.encode(), tags={"t": "1"})
    docs.upload_blob("a/b", b"another")
    assert [each.name for each in docs.list_blobs()] == sorted([*names, "a/b"])
    for name in names:
        assert run("get", f"docs/{name}", str(tmp_path / "file")) == (0, "", "")
        assert (tmp_path / "file").read_bytes() == name.encode()
    assert run("rm", "docs/a\x01") == (0, "", "")
    assert run("mv", "docs/a\\b", "docs/moved") == (0, "", "")
    assert docs.download_blob("moved").readall() == b"a\\b"
    assert docs.get_blob_client("moved").get_blob_tags() == {"t": "1"}
    assert run("rm", "docs", "--prefix", "a\\", "--yes") == (0, "a\\c\n", "")
    assert [each.name for each in docs.list_blobs()] == ["a/b", "b.", "moved"]
    assert docs.download_blob("a/b").readall() == b"another"


def test_a_slash_leaves_the_root_container(docs: ContainerClient, run: Run, account: lazulite.testing.Account) -> None:
    with BlobServiceClient.from_connection_string(account.connection_string, retry_total=0) as service:
        root = service.create_container("$root")
        with stored_names():
            root.upload_blob("a/b", b"x")
        assert run("ls", "$root") == (0, "a/b\n", "")
        assert run("mv", "$root/a/b", "docs/a/b") == (0, "", "")
        assert [each.name for each in root.list_blobs()] == []
    assert docs.download_blob("a/b").readall() == b"x"


def test_check_names_them_and_finds_no_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [("docs", "a\\b"), ("docs", "b."), ("docs", "a\x01"), ("$root", "a/b")]
    with lazulite.testing.server(tmp_path) as storage, stored_names():
        service = BlobServiceClient.from_connection_string(storage.development.connection_string, retry_total=0)
        for container in ("docs", "$root"):
            service.create_container(container)
        for container, name in names:
            blob = service.get_blob_client(container, name)
            blob.upload_blob(b"x")
            blob.create_snapshot()
        service.get_blob_client("docs", "a/b").upload_blob(b"x")
    assert main(["check", "--location", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "unreachable 4\n" in out
    assert out.endswith("no damage found\n")
    for container, name in names:
        assert f"container {container}: {name!r} has a name that no URL has; lazulite blob mv moves it\n" in err
    assert err.count("no URL") == len(names)


@pytest.mark.parametrize("name", ["a\\b", "a/../b", "b.", "a\x01"])
def test_names_that_no_url_has_are_given_to_no_blob(name: str, docs: ContainerClient, run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    docs.upload_blob("a", b"x")
    for command in (("put", str(tmp_path / "file")), ("mv", "docs/a")):
        code, _, err = run(*command, f"docs/{name}")
        assert (code, err.count("\n")) == (2, 1)
        assert "no URL names" in err
    assert run("mv", "docs/a", "docs/a")[0] == 2
    assert [each.name for each in docs.list_blobs()] == ["a"]


def test_blobs_of_a_prefix_are_deleted_once_that_is_confirmed(docs: ContainerClient, run: Run) -> None:
    for name in ("2025/a", "2026/a", "2026/b"):
        docs.upload_blob(name, b"x")
    code, out, err = run("rm", "docs", "--prefix", "2026/")
    assert (code, out) == (2, "")
    assert err == "lazulite: 2 blobs of docs begin with '2026/'; pass --yes to delete them\n"
    assert run("rm", "docs", "--prefix", "2026/", "--yes") == (0, "2026/a\n2026/b\n", "")
    assert [blob.name for blob in docs.list_blobs()] == ["2025/a"]


@pytest.mark.parametrize(
    "arguments",
    [("put", "FILE", "docs"), ("get", "docs/"), ("rm", "/a"), ("rm", "docs"), ("rm", "docs/a", "--prefix", "b")],
)
def test_names_of_no_blob_are_rejected(arguments: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    (tmp_path / "FILE").touch()
    code, out, err = run(*(str(tmp_path / each) if each == "FILE" else each for each in arguments))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_a_missing_blob_leaves_the_file_as_it_was(docs: ContainerClient, run: Run, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"before")
    code, out, err = run("get", f"{docs.container_name}/missing", str(target))
    assert (code, out) == (1, "")
    assert err.endswith(BLOB_NOT_FOUND)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert target.read_bytes() == b"before"


def test_a_missing_file_is_one_line(docs: ContainerClient, run: Run, tmp_path: Path) -> None:
    code, _, err = run("put", str(tmp_path / "missing"), f"{docs.container_name}/a")
    assert code == 1
    assert "No such file" in err


def test_without_a_server_the_flag_is_named(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blob", "ls", "--blob-port", str(free_port())]) == 1
    assert "check --blob-host and --blob-port" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ({"Content-Length": "9"}, b"short", "ended after 5 of 9 bytes"),
        ({"Content-Length": "3", "Content-MD5": b64encode(b"0" * 16).decode()}, b"abc", "do not have the MD5"),
    ],
)
def test_bytes_that_are_not_those_of_the_blob_are_no_file(
    headers: dict[str, str], body: bytes, said: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        port = str(server.server_port)
        assert main(["blob", "get", "docs/a", str(tmp_path / "target"), "--blob-port", port]) == 1
        thread.join()
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_container_is_created_and_deleted_once_that_is_confirmed(run: Run) -> None:
    assert run("create", "new") == (0, "", "")
    code, _, err = run("create", "new")
    assert code == 1
    assert err.endswith("rejects the request: ContainerAlreadyExists: The specified container already exists.\n")
    code, _, err = run("rm", "new")
    assert (code, err) == (2, "lazulite: new is a container; pass --yes to delete it with all its blobs\n")
    assert run("ls")[1] == "new\n"
    assert run("rm", "new", "--yes") == (0, "", "")
    assert run("ls")[1] == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"no XML", ""),
        (b"{}", ""),
        (b"[1]", ""),
        (b'{"odata.error": {"message": {"value": "A sentence.\\nRequestId:1"}}}', "A sentence."),
        (b'{"odata.error": {"message": 7}}', ""),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><Error><Message>&b;</Message></Error>", ""),
        (
            b"\xef\xbb\xbf<Error><Code>X</Code><Message>A sentence.\nRequestId:1\nTime:2</Message></Error>",
            "A sentence.",
        ),
        (b"<Error><Message>" + b"x" * 10_000 + b"</Message></Error>", "x" * 500),
        (b'<error xmlns="http://m"><code>X</code><message xml:lang="en-US">Of Atom.</message></error>', "Of Atom."),
    ],
)
def test_the_message_of_an_error(body: bytes, message: str) -> None:
    assert parse_error_message(body) == message


class Terminal(io.StringIO):
    """Standard error of a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_of_a_terminal_and_never_among_the_bytes(
    docs: ContainerClient, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blob_client, "BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr(progress_line, "DRAW_SECONDS", 0.0)
    (tmp_path / "source").write_bytes(bytes(3 << 20))
    terminal, out = Terminal(), io.BytesIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run("put", str(tmp_path / "source"), "docs/a")[0] == 0
    assert "\n" not in terminal.getvalue()
    assert "] stored 3.0 MiB of 3.0 MiB (" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K"), "the line is cleared"
    terminal.truncate(0)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
    assert run("get", "docs/a")[0] == 0
    assert "] received 3.0 MiB of 3.0 MiB (" in terminal.getvalue()
    assert out.getvalue() == bytes(3 << 20)
