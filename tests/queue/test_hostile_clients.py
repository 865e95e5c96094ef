"""What a hostile client can make the Queue service hold, and how long a step of its work can be.

Steps are counted and their inputs bounded, not timed: a step writes one message or one queue.
"""

from xml.etree import ElementTree as ET

import pytest

from lazulite.auth import canonicalize
from lazulite.auth.canonicalize import string_to_sign
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.message import Request
from lazulite.queue import limits
from lazulite.queue.catalog import Queue
from lazulite.queue.lookahead import _MESSAGE_BYTES, ReadAheadBudget
from lazulite.queue.model.message import Message, id_of
from lazulite.queue.payload import write_got, write_peeked, write_queues
from tests.fuzz.queue_world import QueueWorld
from tests.fuzz.world import ROOT

from .world import opened

VERSION = "2021-02-12"
ADDRESS = Addressing().locate(Request("GET", "/acct/", "", headers={"host": "127.0.0.1"}))


def messages(count: int) -> list[Message]:
    return [Message(id_of(number + 1), 10**17, 10**17, 10**17, b"<\n" * 32_768) for number in range(count)]


@pytest.mark.parametrize("write", [write_got, write_peeked])
def test_each_message_of_a_response_is_a_step(write: object) -> None:
    assert callable(write)
    steps = write(messages(32), VERSION)
    assert sum(1 for _ in steps) == 32


def test_each_queue_of_a_list_is_a_step() -> None:
    queues = [Queue(f"q{number}", number, shards=1) for number in range(100)]
    steps = write_queues(ADDRESS, VERSION, [], queues, with_metadata=False, marker="")
    assert sum(1 for _ in steps) == 100


def test_the_query_is_read_once_for_all_spellings_of_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    decoded = canonicalize._decoded

    def counted(text: str) -> str:
        read.append(text)
        return decoded(text)

    monkeypatch.setattr(canonicalize, "_decoded", counted)
    request = Request("GET", "/acct/q", "spellings=%41&b=2", headers={"x-ms-version": VERSION})
    texts = {string_to_sign("SharedKey", request, "acct", f"/acct/q{number}", None) for number in range(12)}
    assert len(texts) == 12
    assert len(read) == 4


async def test_what_is_read_ahead_is_bounded_over_all_queues() -> None:
    async with opened() as world:
        budget = world.messages._read_ahead = ReadAheadBudget(10 * (1000 + _MESSAGE_BYTES))
        queues = [Queue(f"q{number}", 3000 + number, shards=1) for number in range(8)]
        for queue in queues:
            for _ in range(5):
                await world.messages.put(queue, b"x" * 1000, 0, None)
        for queue in queues:
            assert len(await world.messages.get(queue, 1, 30)) == 1
            ready = sum(len(known.ahead._ready) for known in world.messages._queues.values())
            assert ready * (1000 + _MESSAGE_BYTES) == budget.held_bytes <= 10 * (1000 + _MESSAGE_BYTES)
        for queue in queues:
            assert len(await world.messages.get(queue, 32, 30)) == 4, "what was dropped is read again"
        assert budget.held_bytes == 0
        assert budget._held == {}


def test_a_page_of_queues_ends_after_so_much_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_METADATA_BYTES_MAX", 1000)
    world = QueueWorld()
    try:
        for number in range(5):
            made = world.ask("PUT", f"{ROOT}many-{number}", headers={"x-ms-meta-a": "x" * 400})
            assert made.status == 201
        pages: list[list[str | None]] = []
        marker = ""
        while not pages or marker:
            query = f"comp=list&prefix=many&include=metadata&marker={marker}"
            root = ET.fromstring(world.ask("GET", ROOT, query).response.body)
            pages.append([node.text for node in root.iter("Name")])
            marker = root.findtext("NextMarker") or ""
        assert pages == [["many-0", "many-1", "many-2"], ["many-3", "many-4"]]
        whole = ET.fromstring(world.ask("GET", ROOT, "comp=list&prefix=many").response.body)
        assert len(list(whole.iter("Name"))) == 5, "names alone are short"
    finally:
        world.close()
