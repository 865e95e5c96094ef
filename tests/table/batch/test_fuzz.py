"""Batches as SDKs send them, mutated at random, to a service whose parts share heads and to one whose parts do not.

Both give the same bytes.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.sas import sign_account_sas
from lazulite.engine.contract import Engine
from lazulite.protocol import multipart
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response, response_of
from lazulite.protocol.multipart import read_batch
from lazulite.protocol.steps import finish
from lazulite.service.definition import ServiceDependencies
from lazulite.table.batch.inner_calls import KEYED_URL
from lazulite.table.credentials import TableSas, sign_table_sas
from lazulite.table.service import TableService
from tests.fuzz.memory import MemoryEngine
from tests.table.client import ACCOUNT, ALL_PERMISSIONS, FOREVER
from tests.table.plan.world import NOW

SEEDS, BATCHES = 4, 300
SHARED_MIN, ANSWERED_MIN, REJECTED_MIN = 0.3, 0.2, 0.2
"""The least shares: of parts that share a head, of batches that succeed, of batches that do not."""

BASE = f"http://h/{ACCOUNT}/"
CONTENT_TYPE = "multipart/mixed; boundary=batch_b"
JSON = "application/json;odata=minimalmetadata"
ETAGS = ("*", "*", "*", "W/\"datetime'2031-01-01T00%3A00%3A00.0000000Z'\"", 'W/"x"', "x", "")
PIECES = (
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b" ",
        b"\t",
        b":",
        b",",
        b"'",
        b"%27",
        b"\xe9",
        b"0",
        b"9",
        b"*",
        b"?",
        b"(",
        b"--",
    ),
    *(
        b"Content-ID: 5\r\n",
        b"If-Match: *\r\n",
        b"Content-Length: 0\r\n",
        b"Content-MD5: x\r\n",
        b"\r\n--changeset_c\r\n",
    ),
    *(b"x-ms-version: 2013-08-15\r\n", b"Prefer: return-content\r\n", b"X-HTTP-Method: MERGE\r\n", b"')", b"T"),
)


def _python(number: int, body: str) -> tuple[Mapping[str, object], Mapping[str, object], str]:
    fields = {"Content-Type": "application/json", "Content-Length": len(body)} if body else {}
    return {"Content-ID": number}, {**fields, "x-ms-version": "2019-02-02", "DataServiceVersion": "3.0"}, ""


def _node(number: int, body: str) -> tuple[Mapping[str, object], Mapping[str, object], str]:
    own = {"content-id": number + 1, "accept": JSON, "prefer": "return-no-content"}
    return {}, {**own, "content-type": "application/json"} if body else own, ""


def _dotnet(_: int, body: str) -> tuple[Mapping[str, object], Mapping[str, object], str]:
    fields = {"Content-Type": "application/json", "Content-Length": len(body)} if body else {}
    format_option = "?$format=application%2Fjson%3Bodata%3Dminimalmetadata"
    return {}, {"Host": "h", "Prefer": "return-no-content", "Accept": JSON, **fields}, format_option


STYLES = (_python, _node, _dotnet)


def _part(random: Random, number: int, style: int, methods: Sequence[str]) -> str:
    """Return a part, which most often differs from its neighbours in its values only."""
    method, row = random.choice(methods), random.choice(["a", "b.c", "d", "e-f", "g h", "it's"] + [str(number)] * 9)
    partition = "q" if random.random() < 0.01 else "p's"
    keys = {"PartitionKey": partition, "RowKey": row} if method == "POST" else {}
    text = json.dumps({**keys, "A": random.randrange(3), "B": "x" * random.randrange(3)})
    body = "" if method == "DELETE" else text if random.random() < 0.98 else "{"
    own, fields, query = STYLES[style](number, body)
    if method in ("PUT", "DELETE") and random.random() < 0.95:
        fields = {**fields, "If-Match": random.choice(ETAGS[: 3 if random.random() < 0.9 else len(ETAGS)])}
    quoted = row.replace("'", "''").replace(" ", "%20") if random.random() < 0.95 else f"%{ord(row[0]):X}{row[1:]}"
    target = "" if method == "POST" else f"(PartitionKey='{partition.replace(chr(39), chr(39) * 2)}',RowKey='{quoted}')"
    lines = {"Content-Type": "application/http", "Content-Transfer-Encoding": "binary", **own}
    first, second = ("".join(f"{name}: {value}\r\n" for name, value in some.items()) for some in (lines, fields))
    url = f"{BASE}orders{target}{query}"
    return f"--changeset_c\r\n{first}\r\n{method} {url} HTTP/1.1\r\n{second}\r\n{body}\r\n"


def _batch(random: Random) -> bytes:
    style, methods = random.randrange(len(STYLES)), random.choice([["POST"], ["MERGE"], ["POST", "PUT", "DELETE"]])
    count = random.choice([1, 2, 3, 4, 8, 8, 101 if random.random() < 0.1 else 8])
    parts = "".join(_part(random, number, style, methods) for number in range(count))
    opening = "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n"
    return f"{opening}{parts}--changeset_c--\r\n\r\n--batch_b--\r\n".encode()


def _mutated(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    match random.randrange(8):
        case 0:
            return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]
        case 1:
            lines = [at + 2 for at in range(len(data)) if data[at : at + 2] == b"\r\n"]
            at = random.choice([random.choice(lines), at])
            return data[:at] + random.choice(PIECES) + data[at:]
        case 2:
            return data[:at] + data[at + random.choice([1, 2, 8]) :]
        case 3:
            return data[:at] + data[at : at + 9].swapcase() + data[at + 9 :]
    return data


class World:
    """A service whose clock stands still."""

    def __init__(self) -> None:
        self.engine: Engine = MemoryEngine(lambda: NOW)
        self.service = TableService(
            ServiceDependencies(
                engine=self.engine, accounts=AccountDirectory({}, None), clock=lambda: NOW, random=Random(1)
            )
        )

    async def send(self, path: str, query: str, body: bytes, content_type: str = CONTENT_TYPE) -> Response:
        headers = {"host": "h", "content-type": content_type, "x-ms-version": "2019-02-02"}
        request = Request("POST", f"/{ACCOUNT}/{path}", query, headers, body, id="id")
        return await response_of(self.service, request)

    async def stored(self) -> bytes:
        """Return all entities."""
        headers = {"host": "h", "accept": JSON, "x-ms-version": "2019-02-02"}
        return (await response_of(self.service, Request("GET", f"/{ACCOUNT}/orders()", QUERY, headers))).body


QUERY = sign_account_sas(DEVELOPMENT_ACCOUNT, ALL_PERMISSIONS)
RANGE = sign_table_sas(
    DEVELOPMENT_ACCOUNT,
    TableSas(
        table="orders",
        permission="au",
        expiry=FOREVER,
        start_partition="p",
        start_row="",
        end_partition="p's",
        end_row="d",
    ),
)


def _count(counts: Counter[str], body: bytes, response: Response) -> None:
    counts["batches"] += 1
    counts[" 4" if b"HTTP/1.1 4" in response.body or response.status != 202 else " 2"] += 1
    try:
        parts = finish(read_batch(CONTENT_TYPE, body, KEYED_URL)).parts
    except ServiceError:
        return
    counts["parts"] += len(parts)
    counts["shared"] += sum(1 for part in parts if part.values)


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_shared_head_changes_no_byte(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, counts, forms_max = Random(seed), Counter[str](), multipart._FORMS_MAX
    worlds = [World(), World()]
    for world in worlds:
        assert (await world.send("Tables", QUERY, b'{"TableName":"orders"}', "application/json")).status == 201
    for _ in range(BATCHES):
        body = _mutated(random, _batch(random))
        query = RANGE if random.random() < 0.1 else QUERY
        responses = []
        for world, forms in zip(worlds, (forms_max, 0), strict=True):
            monkeypatch.setattr(multipart, "_FORMS_MAX", forms)
            responses.append(await world.send("$batch", query, body))
        shared, usual = responses
        assert (shared.status, shared.fields(), shared.body) == (usual.status, usual.fields(), usual.body), body
        monkeypatch.setattr(multipart, "_FORMS_MAX", forms_max)
        _count(counts, body, shared)
    stored, expected = [await world.stored() for world in worlds]
    assert stored == expected
    assert counts["shared"] > SHARED_MIN * counts["parts"], counts
    assert counts[" 2"] > ANSWERED_MIN * counts["batches"], counts
    assert counts[" 4"] > REJECTED_MIN * counts["batches"], counts
