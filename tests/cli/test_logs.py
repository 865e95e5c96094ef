"""`lazulite logs`: the lines of `$logs` of a server that stands for the cloud."""

import io
import json
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.storage.blob import BlobAnalyticsLogging, BlobServiceClient

import lazulite.testing
from lazulite.cli import main
from lazulite.cli.connection_string import read_connection_string
from lazulite.cli.errors import CommandError

KEY = b64encode(b"a key of an account").decode()
Run = Callable[..., tuple[int, str, str]]
SECONDS_MAX = 300
"""How long lines may take to be published, however loaded the machine is."""


class Cloud(ThreadingHTTPServer):
    """Answers lists of `$logs`, a name a page, and reads of its blobs; closes each connection after a response."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.blobs: dict[str, bytes] = {}
        self.deleted: set[str] = set()
        self.has_logs = True
        self.paths: list[str] = []

    @property
    def connection_string(self) -> str:
        endpoint = f"http://127.0.0.1:{self.server_port}/acct"
        return f"DefaultEndpointsProtocol=http;AccountName=acct;AccountKey={KEY};BlobEndpoint={endpoint}/;"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    server: Cloud

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if not self.server.has_logs:
            self._send(404, b"", "ContainerNotFound")
        elif query.get("comp") == "list":
            self._send(200, self._listed(query["prefix"], query.get("marker", "")))
        else:
            name = url.path.removeprefix("/acct/$logs/").removeprefix("/acct/%24logs/")
            if name in self.server.deleted:
                self._send(404, b"", "BlobNotFound")
            else:
                self._send(200, self.server.blobs[name])
        self.close_connection = True  # Without saying so, as a server does that has waited long enough.

    def _listed(self, prefix: str, marker: str) -> bytes:
        names = [name for name in sorted(self.server.blobs) if name.startswith(prefix) and name >= marker]
        found = "".join(f"<Blob><Name>{name}</Name></Blob>" for name in names[:1])
        following = names[1] if len(names) > 1 else ""
        return (
            f"<EnumerationResults><Blobs>{found}</Blobs><NextMarker>{following}</NextMarker></EnumerationResults>"
        ).encode()

    def _send(self, status: int, body: bytes, code: str = "") -> None:
        self.send_response(status)
        if code:
            self.send_header("x-ms-error-code", code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def run(cloud: Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command for the account of the cloud."""
    file = tmp_path / "cloud.txt"
    file.write_text(cloud.connection_string + "\n")

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["logs", *arguments, "--connection-string-file", str(file)])
        return code, *capsys.readouterr()

    return command


def line(
    start: datetime,
    service: str = "blob",
    operation: str = "GetBlob",
    status: str = "Success",
    key: str = "/acct/c/b",
    url: str = "https://x/c/b?sig=XXXXX",
    version: str = "1.0",
) -> str:
    code = 200 if status.endswith("Success") else 404
    text = (
        f"{version};{start:%Y-%m-%dT%H:%M:%S.%f}0Z;{operation};{status};{code};5;4;authenticated;acct;acct;{service};"
        f'"{url}";"{key}";c675930e-f01e-0016-2e66-2b5b8a000000;0;127.0.0.1:9;2018-03-28;1;2;3;4;5;;;;;;"agent";;'
    )
    return text + (";" * 8 if version == "2.0" else "") + "\n"


def name(start: datetime, service: str = "blob", number: int = 0) -> str:
    return f"{service}/{start:%Y/%m/%d/%H}00/{number:06}.log"


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC)


def test_a_server_that_is_not_reached_gets_no_head(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Cloud() as server:
        file = tmp_path / "cloud.txt"
        file.write_text(server.connection_string)
    assert main(["logs", "--connection-string-file", str(file)]) == 1
    assert capsys.readouterr().out == ""


def test_lines_of_all_services_in_their_order(cloud: Cloud, run: Run, now: datetime) -> None:
    times = [now - timedelta(seconds=seconds) for seconds in (5400, 60, 50, 40, 30)]
    old, first, second, third, last = times
    cloud.blobs[name(old)] = line(old, operation="PutBlob").encode()
    cloud.blobs[name(first, number=1)] = (line(first) + line(third, version="2.0")).encode()
    cloud.blobs[name(last, number=2)] = line(last, operation="DeleteBlob", status="ClientOtherError").encode()
    cloud.blobs[name(second, "table")] = line(second, "table", "InsertEntity", key="/acct/t/p/r").encode()
    cloud.blobs[name(first) + ".tmp"] = b"not a log"
    code, out, err = run()
    assert (code, err) == (0, "")
    titles, *rows = out.splitlines()
    assert titles.split() == ["TIME", "OF", "OPERATION", "STATUS", "HTTP", "MS", "SERVER", "MS", "OBJECT"]
    assert [row.split()[2] for row in rows] == ["GetBlob", "InsertEntity", "GetBlob", "DeleteBlob"]
    assert rows[1].split() == [
        f"{second:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
        *("table", "InsertEntity", "Success", "200", "5", "4", "/acct/t/p/r"),
    ]
    assert next(row.split()[2] for row in run("--since", "2h")[1].splitlines()[1:]) == "PutBlob"
    assert [row.split()[2] for row in run("--failed")[1].splitlines()[1:]] == ["DeleteBlob"]


def test_lines_of_json(cloud: Cloud, run: Run, now: datetime) -> None:
    cloud.blobs[name(now)] = line(now, key="/acct/c/a;b &quot;&#10;", url="http://x/?a=1&amp;sig=secret&amp;b").encode()
    code, out, _ = run("--json")
    found = json.loads(out)
    assert (code, found["object_key"], found["server_ms"]) == (0, '/acct/c/a;b "\n', 4)
    assert found["url"] == "http://x/?a=1&sig=XXXXX&b"
    assert datetime.fromisoformat(found["start"]) == now


def test_a_terminal_gets_no_control_characters(cloud: Cloud, run: Run, now: datetime) -> None:
    cloud.blobs[name(now)] = line(now, key="/acct/c/\x1b[31mb&#27;&#155;\x7f").encode()
    for flags in ((), ("--json",)):
        out = run(*flags)[1]
        assert out.replace("\n", "").isprintable()


def test_unreadable_lines_are_counted_and_the_others_printed(cloud: Cloud, run: Run, now: datetime) -> None:
    cloud.blobs[name(now)] = b"nonsense\n" + line(now).encode() + b"\xff\n"
    code, out, err = run()
    assert (code, len(out.splitlines())) == (1, 2)
    assert err == "lazulite: 2 lines are not of a known version\n"


def test_a_blob_that_is_deleted_meanwhile_is_left_out(cloud: Cloud, run: Run, now: datetime) -> None:
    for number in range(2):
        cloud.blobs[name(now, number=number)] = line(now).encode()
    cloud.deleted.add(name(now, number=0))
    code, out, err = run()
    assert (code, len(out.splitlines()), err) == (0, 2, "")


def test_an_account_that_never_logged(cloud: Cloud, run: Run) -> None:
    cloud.has_logs = False
    code, _, err = run()
    assert code == 1
    assert err.startswith("lazulite: the account has no $logs: ")


def test_no_key_is_printed(cloud: Cloud, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["", "AccountName=acct", f"AccountKey={KEY}", f"AccountName=acct;AccountKey={KEY}!", "AccountKey"]
    texts += [f"AccountName=acct;AccountKey={KEY};BlobEndpoint={url}" for url in ("x", "ftp://x", "http://x:y")]
    for text in texts:
        (tmp_path / "bad.txt").write_text(text)
        assert main(["logs", "--connection-string-file", str(tmp_path / "bad.txt")]) == 1
        err = capsys.readouterr().err
        assert err.startswith("lazulite: the ")
        assert KEY not in err
    cloud.shutdown()
    cloud.server_close()
    _, out, err = run()
    assert KEY not in out + err
    assert "check the blob endpoint of the connection string" in err


def test_a_connection_string_on_standard_input(
    cloud: Cloud, now: datetime, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.blobs[name(now)] = line(now).encode()
    monkeypatch.setattr(sys, "stdin", io.StringIO(cloud.connection_string))
    assert main(["logs", "--connection-string-file", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_signature_in_place_of_a_key(
    cloud: Cloud, now: datetime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.blobs[name(now)] = line(now).encode()
    endpoint = f"http://127.0.0.1:{cloud.server_port}/acct"
    (tmp_path / "sas.txt").write_text(f"BlobEndpoint={endpoint};SharedAccessSignature=?sv=1&sig=secret")
    assert main(["logs", "--connection-string-file", str(tmp_path / "sas.txt")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert all(path.endswith("sv=1&sig=secret") for path in cloud.paths)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        (f"AccountName=a;AccountKey={KEY}", "https://a.blob.core.windows.net"),
        (
            f"DefaultEndpointsProtocol=http;AccountName=a;AccountKey={KEY};EndpointSuffix=core.chinacloudapi.cn",
            "http://a.blob.core.chinacloudapi.cn",
        ),
        (f"accountname=a;accountkey={KEY};blobendpoint=https://custom.example/", "https://custom.example"),
        ("UseDevelopmentStorage=true", "http://127.0.0.1:10000/devstoreaccount1"),
        ("BlobEndpoint=https://x.example;SharedAccessSignature=sv=1", "https://x.example"),
    ],
)
def test_endpoints(text: str, endpoint: str) -> None:
    assert read_connection_string(text, "blob").endpoint == endpoint


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--connection-string-file", str(tmp_path / "missing")]) == 1
    assert "cannot read the connection string" in capsys.readouterr().err
    with pytest.raises(CommandError, match="needs AccountName"):
        read_connection_string("x", "blob")


def test_the_logs_of_this_server(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with lazulite.testing.server() as storage:
        account = storage.account()
        monkeypatch.setenv("LAZULITE_ACCOUNTS", f"{account.name}:{account.key}")
        with BlobServiceClient.from_connection_string(account.connection_string) as service:
            on = BlobAnalyticsLogging(read=True, write=True, delete=True)
            service.set_service_properties(analytics_logging=on)
            with service.create_container("docs") as docs:
                docs.upload_blob('a;"b', b"x")
                assert not docs.get_blob_client("none").exists()
        until, lines = time.monotonic() + SECONDS_MAX, list[dict[str, str]]()
        while not {"PutBlob", "GetBlobProperties"} <= {each["operation"] for each in lines}:
            assert time.monotonic() < until
            time.sleep(0.2)
            code = main(["logs", "--json", "--blob-port", str(storage.blob_port)])
            out, err = capsys.readouterr()
            assert code == 0 or "has no $logs" in err
            lines = [json.loads(text) for text in out.splitlines()]
        put = next(each for each in lines if each["operation"] == "PutBlob")
        assert (put["object_key"], put["status"]) == (f'/{account.name}/docs/a;"b', "Success")
        assert main(["logs", "--failed", "--blob-port", str(storage.blob_port)]) == 0
        failed = {row.split()[2] for row in capsys.readouterr().out.splitlines()[1:]}
        assert failed - {"ListBlobs"} == {"GetBlobProperties"}  # The command lists before there are any logs.
