"""Bytes mutated at random, to a server with templates and to one without: the same responses, and the same log lines.

The mutations are of heads that have templates, so most of them are one step away from a hit.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random

import pytest

from lazulite.auth.accounts.document import StoredAccount
from lazulite.protocol.clock import TICKS_PER_SECOND
from tests.table.plan.test_mutations import CORS
from tests.table.plan.world import KEYS, NAME, NOW, World

from .side import Side, in_memory

SEEDS = 4
STEPS = 400
HITS_MIN, MISSES_MIN = 0.1, 0.1
"""The least shares of hits, and of requests that a mutation kept from one."""

PIECES = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b"'", b"%27", b"\xe9", b"0", b"9", b"*", b"?", b"&", b"/"),
    *(b"Connection: close\r\n", b"Host: h\r\n", b"x-ms-version: 2013-08-15\r\n", b"Expect: 100-continue\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n", b"Origin: http://a\r\n", b"If-Match: *\r\n"),
    *(b"$select=A&", b"timeout=1&", b"x-forwarded-for: 10.0.0.1\r\n", b"Prefer: return-content\r\n"),
)

Mutation = Callable[[Random, bytes], Sequence[bytes]]
"""From a request to the reads in which it comes."""


def _at(random: Random, data: bytes) -> int:
    return random.randrange(len(data))


def _flip(random: Random, data: bytes) -> Sequence[bytes]:
    at = _at(random, data)
    return [data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]]


def _replace(random: Random, data: bytes) -> Sequence[bytes]:
    at = _at(random, data)
    piece = random.choice(PIECES)
    return [data[:at] + piece + data[at + len(piece) :]]


def _insert(random: Random, data: bytes) -> Sequence[bytes]:
    lines = [at + 2 for at in range(len(data)) if data[at : at + 2] == b"\r\n"]
    at = random.choice([random.choice(lines), _at(random, data)])
    return [data[:at] + random.choice(PIECES) + data[at:]]


def _delete(random: Random, data: bytes) -> Sequence[bytes]:
    at = _at(random, data)
    return [data[:at] + data[at + random.choice([1, 2, 8]) :]]


def _swap_lines(random: Random, data: bytes) -> Sequence[bytes]:
    head, end, body = data.partition(b"\r\n\r\n")
    line, *lines = head.split(b"\r\n")
    random.shuffle(lines)
    return [b"\r\n".join([line, *lines]) + end + body]


def _repeat_line(random: Random, data: bytes) -> Sequence[bytes]:
    head, end, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    return [b"\r\n".join([*lines, random.choice(lines[1:])]) + end + body]


def _case(random: Random, data: bytes) -> Sequence[bytes]:
    at = _at(random, data)
    return [data[:at] + data[at : at + 9].swapcase() + data[at + 9 :]]


def _split(random: Random, data: bytes) -> Sequence[bytes]:
    at = _at(random, data)
    return [data[:at], data[at:]]


def _pipeline(random: Random, data: bytes) -> Sequence[bytes]:
    at = _at(random, data)
    return random.choice([[data + data], [data + data[:at], data[at:]]])


def _none(_: Random, data: bytes) -> Sequence[bytes]:
    return [data]


MUTATIONS: Sequence[Mutation] = (
    *(_flip, _replace, _insert, _delete, _swap_lines, _repeat_line, _case, _split, _pipeline),
    *(_none,) * 9,
)


async def _change(sides: Iterable[Side], *changes: str) -> None:
    """Change what templates do not look for in a head."""
    for world in (side.world for side in sides):
        for change in changes:
            await _change_one(world, change)


async def _change_one(world: World, change: str) -> None:
    match change:
        case "cors" | "no cors":
            rules = CORS % b"a" if change == "cors" else b"<StorageServiceProperties><Cors/></StorageServiceProperties>"
            await world.ask("PUT", "", f"restype=service&comp=properties&{world.sas()}", rules)
        case "rotate":
            world.accounts.replace({NAME: StoredAccount((b"third", b"fourth") if world.account.keys == KEYS else KEYS)})
        case "delete":
            await world.ask("DELETE", "Tables('orders')")
        case "create":
            await world.ask("POST", "Tables", body={"TableName": "orders"})
            await world.ask("PUT", body={"A": 3})
        case "old":
            world.now = NOW + 100_000 * TICKS_PER_SECOND
        case "now":
            world.now = NOW + TICKS_PER_SECOND


CHANGES = ("cors", "rotate", "delete", "old")
REPAIRS = ("no cors", "now", "create")


def _request(random: Random, side: Side) -> bytes:
    """Return a request that has a template once it came twice."""
    path = f"orders(PartitionKey='p',RowKey='{random.choice(['r'] * 5 + ['second'] * 4 + ['none'])}')"
    fields, body = {}, b""
    if random.random() < 0.5:
        fields["x-ms-client-request-id"] = f"{random.getrandbits(64):016x}"
    match random.choice(["GET", "GET", "POST", "PUT", "MERGE", "DELETE"]):
        case "POST":
            method, path, body = "POST", "orders", _entity(random, PartitionKey="p", RowKey=f"{random.random()}")
            fields["Prefer"] = random.choice(["return-no-content", "return-content"])
        case "PUT" | "MERGE" as method:
            body = _entity(random)
            if random.random() < 0.3:
                fields["If-Match"] = random.choice(["*", "*", "W/\"datetime'2031-01-01T00%3A00%3A00.0000000Z'\"", "x"])
        case "DELETE" as method:
            path = f"orders(PartitionKey='p',RowKey='{random.random()}')"
            fields["If-Match"] = "*"
        case method:
            pass
    return side.head(method, path, random.choice(["", None]), body, fields)


def _entity(random: Random, **keys: str) -> bytes:
    values = {**keys, "A": random.randrange(3), "B": "x" * random.randrange(3)}
    return json.dumps(values).encode() if random.random() < 0.95 else b"{"


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_templates_change_no_byte(seed: int) -> None:
    random, counts = Random(seed), Counter[str]()
    sides = quick, usual = [
        await Side(templates=templates, open_engine=in_memory).prepare() for templates in (True, False)
    ]
    for step in range(STEPS):
        if random.random() < 0.015:
            await _change(sides, random.choice(CHANGES))
        if step % 8 == 0:
            await _change(sides, *REPAIRS)
        data = _request(random, quick)
        mutation = random.choice(MUTATIONS)
        reads = mutation(random, data)
        hits = quick.templates.hits
        response, expected = await quick.send(*reads), await usual.send(*reads)
        assert response == expected, (mutation.__name__, reads)
        assert quick.log.lines == usual.log.lines, reads
        counts["hit" if quick.templates.hits > hits else mutation.__name__] += 1
    for side in sides:
        await side.world.engine.close()
    assert counts["hit"] > HITS_MIN * STEPS, (counts, quick.templates.outcomes)
    assert counts.total() - counts["hit"] - counts["_none"] > MISSES_MIN * STEPS, counts
