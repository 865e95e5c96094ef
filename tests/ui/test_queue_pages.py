"""Queues in the explorer, looked at with the official SDK afterwards."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from azure.storage.queue import QueueClient, QueueServiceClient

import lazulite.testing
from lazulite.ui.pages.queue_pages import shown_text
from tests.ui.explorer import Client, Seen, ended, explorer


@pytest.fixture(scope="module")
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as found:
        yield found


@pytest.fixture(scope="module")
def client(storage: lazulite.testing.Storage) -> Iterator[Client]:
    with explorer(storage) as link:
        yield Client(link)


@pytest.fixture
def queue(storage: lazulite.testing.Storage, request: pytest.FixtureRequest) -> Iterator[QueueClient]:
    with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        yield service.create_queue(f"q{abs(hash(request.node.name)) % 10**9}")


def url(queue: QueueClient, page: str = "", **query: str) -> str:
    return f"/devstoreaccount1/queues/{queue.queue_name}{page}?{urlencode(query)}"


def messages(client: Client, queue: QueueClient, **query: str) -> list[Any]:
    return [each["message"] for each in client.json(url(queue, **query))["messages"]]


def post(client: Client, path: str, *pairs: tuple[str, str]) -> Seen:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": client.origin}
    return client.send("POST", path, headers, urlencode([("csrf", client.csrf), *pairs]).encode())


def test_queues_are_listed_and_created(client: Client) -> None:
    path = "/devstoreaccount1/queues"
    assert client.post(f"{path}?do=create", {"name": "made-1"}).location == f"{path}/made-1"
    assert client.json(f"{path}?prefix=made")["queues"] == [{"name": "made-1", "messages": 0}]
    assert "No messages." in client.get(f"{path}/made-1").text
    assert client.post(f"{path}/made-1?do=drop", {"confirm": "made-1"}).status == 303
    assert client.get(f"{path}/made-1").status == 404


def test_the_states_of_messages_are_told_apart_and_a_look_takes_nothing(client: Client, queue: QueueClient) -> None:
    queue.send_message("first")
    taken = queue.receive_message(visibility_timeout=600)
    assert taken
    queue.send_message("later", visibility_timeout=300)
    queue.send_message("<b>now</b>", time_to_live=-1)
    for _ in range(2):
        found = {each["text"]: each for each in messages(client, queue)}
    assert {text: (each["state"], each["dequeues"]) for text, each in found.items()} == {
        "first": ("in flight", 1),
        "later": ("delayed", 0),
        "<b>now</b>": ("visible", 0),
    }
    assert 290 < found["later"]["hidden_seconds"] <= 300
    assert found["<b>now</b>"]["lives_seconds"] == -1
    assert "&lt;b&gt;now" in client.get(url(queue)).text
    received = queue.receive_message()
    assert received
    assert received.dequeue_count == 1


def test_a_message_is_put_edited_and_deleted(client: Client, queue: QueueClient) -> None:
    fields = {"text": "a\r\n<b>", "encoding": "base64", "delay": "60", "lives": "-1"}
    assert client.post(url(queue, do="put"), fields).status == 303
    (message,) = messages(client, queue)
    assert (message["text"], message["state"]) == (b64encode(b"a\n<b>").decode(), "delayed")
    page = client.get(url(queue, "/message", position=message["position"])).text
    assert "a\n&lt;b&gt;" in page
    edit = url(queue, "/message", position=message["position"], do="edit")
    assert client.post(edit, {"text": "new & old", "delay": "0"}).status == 303
    assert client.post(edit, {"text": "twice", "delay": "0"}).status == 409
    received = queue.receive_message()
    assert received
    assert (received.content, received.dequeue_count) == ("new & old", 1)
    (message,) = messages(client, queue)
    assert post(client, url(queue, do="delete-messages"), ("message", message["position"])).status == 303
    assert messages(client, queue) == []


def test_messages_in_flight_are_made_visible(client: Client, queue: QueueClient) -> None:
    for number in range(3):
        queue.send_message(str(number))
    list(queue.receive_messages(max_messages=3, visibility_timeout=600))
    positions = [each["position"] for each in messages(client, queue)]
    assert post(client, url(queue, do="requeue"), *(("message", each) for each in positions[:2])).status == 303
    assert sorted(each["state"] for each in messages(client, queue)) == ["in flight", "visible", "visible"]
    received = sorted(each.content for each in queue.receive_messages(max_messages=5))
    assert len(received) == 2


def test_poison_messages_go_back_page_by_page(
    client: Client, queue: QueueClient, storage: lazulite.testing.Storage
) -> None:
    with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        poison = service.create_queue(f"{queue.queue_name}-poison")
        for number in range(60):
            poison.send_message(f"message {number}", visibility_timeout=900 if number == 59 else None)
        first = client.json(url(poison))
        assert (len(first["messages"]), first["move_to"], first["count"]) == (50, queue.queue_name, 60)
        assert len(messages(client, poison, next=first["next"])) == 10
        assert post(client, url(poison, do="move"), ("which", "all"), ("target", "missing-queue")).status == 404
        pairs = (("which", "all"), ("target", queue.queue_name), ("count", ""))
        job = ended(client, post(client, url(poison, do="move"), *pairs))
        assert (job["done"], job["failed"]) == (60, 0)
        assert messages(client, poison) == []
        moved = [each.content for each in queue.peek_messages(max_messages=32)]
        assert len(moved) == 32
        assert client.json(url(queue))["count"] == 60
        (delayed,) = [
            each for each in messages(client, queue, next=client.json(url(queue))["next"]) if each["state"] == "delayed"
        ]
        assert delayed["text"] == "message 59"
        where, what = ("target", str(poison.queue_name)), ("message", delayed["position"])
        assert post(client, url(queue, do="move"), where, what).status == 303
        assert [each["text"] for each in messages(client, poison)] == ["message 59"]


def test_a_move_that_breaks_off_leaves_both_and_never_neither(
    client: Client, queue: QueueClient, storage: lazulite.testing.Storage
) -> None:
    with QueueServiceClient.from_connection_string(storage.connection_string) as service:
        target = service.create_queue(f"{queue.queue_name}-target")
        queue.send_message("one")
        what = ("message", messages(client, queue)[0]["position"])
        with storage.faults.rule(operation="DeleteMessage", error="ServerBusy"):
            seen = post(client, url(queue, do="move"), ("target", str(target.queue_name)), what)
        assert seen.status >= 400
        assert [[each["text"] for each in messages(client, where)] for where in (queue, target)] == [["one"], ["one"]]
        assert "one message is in both queues" in client.get(url(queue)).text


def test_a_queue_is_cleared_by_its_typed_name(client: Client, queue: QueueClient) -> None:
    queue.send_message("x")
    assert client.post(url(queue, do="clear"), {"confirm": "x"}).status == 400
    assert client.post(url(queue, do="clear"), {"confirm": queue.queue_name or ""}).status == 303
    assert messages(client, queue) == []


@pytest.mark.parametrize(
    ("text", "view", "shown", "form"),
    [
        ("abc", "auto", "abc", "text"),
        ("YWJj", "auto", "abc", "base64"),
        ("YWJj", "text", "YWJj", "text"),
        ("/w==", "base64", "/w==", "text"),
        (
            '{"a":9007199254740993,"b":[1.50,{}]}',
            "auto",
            '{\n  "a": 9007199254740993,\n  "b": [\n    1.50,\n    {}\n  ]\n}',
            "json",
        ),
        (b64encode(b"[1]").decode(), "json", "[\n  1\n]", "json"),
        ("[1", "json", "[1", "text"),
    ],
)
def test_a_text_is_shown_as_what_it_is(text: str, view: str, shown: str, form: str) -> None:
    assert shown_text(text, view, 1000) == (shown, form, 0)


def test_a_long_text_says_how_much_is_left_out() -> None:
    assert shown_text("x" * 1000, "auto", 400) == ("x" * 400, "text", 600)


def test_json_that_would_grow_by_its_depth_is_shown_as_it_is() -> None:
    flat, deep = ("[" * depth + "1," * 9 + "1" + "]" * depth for depth in (16, 17))
    assert shown_text(flat, "auto", 10_000).form == "json"
    assert shown_text(deep, "auto", 10_000) == (deep, "text", 0)
