"""The explorer of a server on PostgreSQL: all its pages, and what differs from a location."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from lazulite.app.commands import OPEN_UI, OpenUiArguments
from lazulite.control.client import Client as Control
from tests.postgres.server import shared
from tests.server_process import running
from tests.ui.browser.data import ACCOUNT, VALUES, pages
from tests.ui.explorer import Client, ended

ROOT = f"/{ACCOUNT}"


class Explored(NamedTuple):
    client: Client
    dsn: str


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explored]:
    socket = tmp_path_factory.mktemp("control") / "control"
    flags = ("--silent", "--meter", "--services", "table,queue,blob", "--ui-port", "0", "--control-socket", str(socket))
    with shared().database() as dsn, running(*flags, "--engine", dsn, lines=5):
        opened: Any = Control.at(socket).ask(OPEN_UI, OpenUiArguments())
        client = Client(opened["url"])
        for path, name in (("tables", "Orders"), ("queues", "work"), ("queues", "work-poison"), ("blobs", "photos")):
            assert client.post(f"{ROOT}/{path}?do=create", {"name": name}).status == 303
        yield Explored(client, dsn)


def test_every_page_is_there(explored: Explored) -> None:
    client = explored.client
    found = {name: client.get(path).status for name, path in pages().items() if name != "blob"}
    assert found == dict.fromkeys(found, 200)
    assert VALUES["container"] in client.get(f"{ROOT}/blobs").text
    assert client.json("/")["services"] == ["table", "queue", "blob"]


def test_rows_and_messages_are_changed(explored: Explored) -> None:
    client = explored.client
    for row in ("1", "2"):
        fields = {"partition": "p", "row": row, "etag": "", "name": "Big", "type": "Int64", "text": "9007199254740993"}
        assert client.post(f"{ROOT}/tables/Orders/new?do=save", fields).status == 303
    assert "9007199254740993" in client.get(f"{ROOT}/tables/Orders").text
    job = ended(client, client.post(f"{ROOT}/tables/Orders?do=count"))
    assert job["lines"] == ["2 rows in 1 partition"]
    poison = f"{ROOT}/queues/work-poison"
    assert client.post(f"{poison}?do=put", {"text": "one", "encoding": "text"}).status == 303
    moved = ended(client, client.post(f"{poison}?do=move", {"which": "all", "target": "work"}))
    assert (moved["done"], moved["failed"]) == (1, 0)
    assert [each["message"]["text"] for each in client.json(f"{ROOT}/queues/work")["messages"]] == ["one"]


def test_a_new_account_is_there_at_once_and_its_command_names_the_database(explored: Explored) -> None:
    client, url = explored.client, urlsplit(explored.dsn)
    assert client.post("/accounts?do=add", {"name": "orders"}).status == 303
    command = client.json("/orders/account")["connection_command"]
    assert f"--engine {url._replace(netloc=url.netloc.replace(f':{url.password}@', '@')).geturl()}" in command
    assert client.post("/orders/account?do=rotate", {"key": "1", "confirm": "orders"}).status == 303
