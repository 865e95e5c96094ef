"""`lazulite queue`: the queues of a running server, for people."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from azure.storage.queue import QueueClient

import lazulite.testing
from lazulite.cli import main
from lazulite.cli.queue import _duration
from tests.docs_support import free_port

Run = Callable[..., tuple[int, str, str]]


class Now:
    """The time of the server."""

    def __init__(self) -> None:
        self.time = datetime.now(UTC)


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def storage(now: Now) -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server(clock=lambda: now.time) as running:
        yield running


@pytest.fixture
def run(storage: lazulite.testing.Storage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command for the development account."""
    monkeypatch.delenv("LAZULITE_ACCOUNTS", raising=False)
    monkeypatch.delenv("AZURITE_ACCOUNTS", raising=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["queue", *arguments, "--queue-port", str(storage.queue_port)])
        return code, *capsys.readouterr()

    return command


@pytest.fixture
def jobs(storage: lazulite.testing.Storage) -> Iterator[QueueClient]:
    with QueueClient.from_connection_string(storage.connection_string, "jobs", retry_total=0) as client:
        client.create_queue()
        yield client


def test_lists_of_queues_have_all_pages(
    storage: lazulite.testing.Storage, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("list") == (0, "", "")
    names = [f"q-{number:02}" for number in range(7)]
    for name in names:
        with QueueClient.from_connection_string(storage.connection_string, name, retry_total=0) as client:
            client.create_queue()
    monkeypatch.setattr("lazulite.queue.limits.QUEUES_MAX", 3)
    assert run("list") == (0, "".join(f"{name}\n" for name in names), "")


def test_peek_prints_messages_and_keeps_them(jobs: QueueClient, run: Run, now: Now) -> None:
    texts = ["<sweep> & ünïcode", 'with "quotes"\nand a line', "third"]
    for text in texts:
        jobs.send_message(text)
        now.time += timedelta(milliseconds=1)
    for _ in range(2):
        code, out, err = run("peek", "jobs", "--count", "2")
        assert (code, err) == (0, "")
        messages = [json.loads(line) for line in out.splitlines()]
        assert [message["text"] for message in messages] == texts[:2]
        assert {message["dequeues"] for message in messages} == {0}
        assert all(message.keys() == {"id", "inserted", "expires", "dequeues", "text"} for message in messages)


def test_stats_count_and_tell_the_age_by_the_clock_of_the_server(
    jobs: QueueClient, run: Run, now: Now, storage: lazulite.testing.Storage
) -> None:
    with QueueClient.from_connection_string(storage.connection_string, "a-longer-name", retry_total=0) as empty:
        empty.create_queue()
    jobs.send_message("old")
    now.time += timedelta(minutes=3, seconds=5)
    jobs.send_message("new")
    assert run("stats") == (
        0,
        "queue          messages  oldest\na-longer-name         0  -\njobs                  2  3m 5s\n",
        "",
    )
    assert jobs.receive_message(visibility_timeout=60) is not None
    assert run("stats", "jobs")[1].splitlines()[1] == "jobs          2  0s", "the oldest is invisible"


def test_clear_deletes_all_messages(jobs: QueueClient, run: Run) -> None:
    for number in range(3):
        jobs.send_message(str(number))
    assert run("clear", "jobs") == (0, "", "")
    assert jobs.get_queue_properties().approximate_message_count == 0


@pytest.mark.parametrize("action", ["peek", "clear", "stats"])
def test_a_missing_queue_is_one_line(action: str, run: Run) -> None:
    code, out, err = run(action, "missing")
    assert (code, out) == (1, "")
    assert err.endswith("rejects the request: QueueNotFound: The specified queue does not exist.\n")


def test_a_wrong_key_is_one_line_without_a_signature(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAZULITE_ACCOUNTS", "devstoreaccount1:MTIz")
    code, _, err = run("list")
    assert code == 1
    assert "AuthenticationFailed" in err
    assert "sig=" not in err
    assert run("list", "--key", "2")[2] == "lazulite: account devstoreaccount1 has no key 2\n"


def test_without_a_server_the_flag_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", "list", "--queue-port", str(free_port())]) == 1
    assert "check --queue-host and --queue-port" in capsys.readouterr().err


@pytest.mark.parametrize("body", [b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"no XML", b"<a>%b</a>" % (b" " * 999)])
def test_a_document_that_no_queue_service_sends_is_rejected(
    body: bytes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lazulite.cli.service_client._DOCUMENT_BYTES_MAX", 1000)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert main(["queue", "list", "--queue-port", str(server.server_port)]) == 1
        thread.join()
    assert capsys.readouterr().err.startswith("lazulite: the response ")


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0s"), (0.9, "0s"), (59, "59s"), (3600, "1h 0m"), (90_061, "1d 1h"), (86_399, "23h 59m")]
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert _duration(seconds) == text


def test_the_verbs_of_all_services(run: Run, now: Now, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("create", "jobs") == (0, "", "")
    assert run("put", "jobs", "<a> & b") == (0, "", "")
    now.time += timedelta(milliseconds=1)
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe\n"))
    assert run("put", "jobs", "-") == (0, "", "")
    for verb in ("get", "peek"):
        code, out, err = run(verb, "jobs", "--count", "5")
        assert (code, err) == (0, "")
        assert [json.loads(line)["text"] for line in out.splitlines()] == ["<a> & b", "from a pipe\n"]
    assert run("ls") == run("list") == (0, "jobs\n", "")
    code, out, err = run("rm", "jobs")
    assert (code, out, err) == (2, "", "lazulite: pass --yes to delete the queue jobs; number of its messages: 2\n")
    assert run("rm", "jobs", "--yes") == (0, "", "")
    assert run("ls") == (0, "", "")
