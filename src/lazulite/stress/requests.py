"""Requests as bytes, authorized by the token in their query, and the workloads that consist of them.

A workload is a generator for each client: it yields a request, and is sent the response. A write has keys of its own:
the number of the client, and the number of the request. So no client waits for a key of another one.
"""

import base64
import json
import random
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5
from zlib import crc32

from lazulite.stress.plan import Plan

VERSION = "2021-12-02"
"""The protocol version of the requests."""
_ENTITY_BYTES = 120
"""About what an entity takes beside its payload."""
_APPEND_ROWS = 100
"""The rows that are read before the next one of rising partitions."""
_JSON = {"Accept": "application/json;odata=nometadata", "Content-Type": "application/json"}
_NO_ECHO = {**_JSON, "Prefer": "return-no-content"}


class Answer(NamedTuple):
    """A response."""

    status: int
    body: bytes
    """Empty, unless the workload reads bodies."""


Requests: TypeAlias = Generator[bytes, Answer, None]


class Sample(NamedTuple):
    """What a test works on: a table, a queue or a container of an account."""

    host: str
    """The value of the field `Host`."""
    path: str
    """The path of the endpoint, without a slash at its end."""
    url: str
    """The endpoint, as batches name it."""
    name: str
    """The name of the table, queue or container."""
    token: str
    """The shared access signature of all requests."""

    def request(
        self, method: str, resource: str, query: str = "", body: bytes = b"", fields: Mapping[str, str] | None = None
    ) -> bytes:
        """Return a request.

        Args:
            method: its method.
            resource: its path behind the endpoint, encoded.
            query: its query before the token, encoded.
            body: its body.
            fields: its fields beside those of every request.
        """
        given = {"Host": self.host, "x-ms-version": VERSION, **(fields or {})}
        if body or method != "GET":
            given["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        target = f"{self.path}/{resource}?{query}{'&' if query else ''}{self.token}"
        return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body


class Keys:
    """The keys of a plan's entities, by client and number."""

    def __init__(self, plan: Plan, sample: Sample, clock: Callable[[], float] = time.time) -> None:
        self._clock, self._scheme, self._count = clock, plan.keys, plan.partitions
        self.rows = max(1, -(-plan.entities // plan.partitions))
        """The entities of a partition that are stored before."""
        names: Mapping[str, Callable[[int], str]] = {
            "random": lambda index: str(uuid5(NAMESPACE_URL, f"{sample.name}/{index}")),
            "append": lambda index: f"{index:010}",
            "hash-prefix": lambda index: f"{index:04x}",
            "buckets": lambda index: f"stress-{index:04}",
        }
        self.partitions: Sequence[str] = [names[plan.keys](index) for index in range(plan.partitions)]
        self._random = random.Random(sample.name)  # noqa: S311 - it spreads load

    def written(self, client: int, number: int) -> tuple[str, str]:
        """Return new keys: those of the number-th write of a client."""
        row = f"{client:05}_{number:010}"
        if self._scheme == "append":
            return f"{int(self._clock()):010}", row
        return self._partition(client, row), row

    def stored(self, client: int, number: int) -> tuple[str, str]:
        """Return the keys of an entity that was stored before: rows one after the other, from the client's own on."""
        if self._scheme == "append":
            place = number // _APPEND_ROWS % self._count
            return self.partitions[place], f"{number % self.rows:010}"
        row = f"{(number + client * 7) % self.rows:010}"
        return self._partition(client, f"{row}{number}"), row

    def _partition(self, client: int, row: str) -> str:
        if self._scheme == "random":
            return self.partitions[client % self._count]
        if self._scheme == "hash-prefix":
            return self.partitions[crc32(row.encode()) % self._count]
        return self.partitions[self._random.randrange(self._count)]


def payload(size: int, seed: str) -> str:
    """Return random text of so many characters."""
    source = random.Random(seed)  # noqa: S311 - it is content of a test
    return base64.b64encode(source.randbytes(size)).decode()[:size]


def fill(plan: Plan, sample: Sample) -> Iterator[bytes]:
    """Yield the requests that store what a plan reads or updates."""
    if plan.workload not in ("get", "update", "page"):
        return
    keys, text = Keys(plan, sample), payload(max(1, plan.size - _ENTITY_BYTES), sample.name)
    for partition in keys.partitions:
        for first in range(0, keys.rows, 100):
            rows = range(first, min(first + 100, keys.rows))
            yield _batch(sample, [(partition, f"{row:010}") for row in rows], text)


def workload(plan: Plan, sample: Sample, client: int) -> Requests:
    """Return the requests of a client, without an end."""
    text = payload(max(1, plan.size - (_ENTITY_BYTES if plan.service == "table" else 0)), f"{sample.name}/{client}")
    return _WORKLOADS[plan.workload](plan, sample, client, text)


def _insert(plan: Plan, sample: Sample, client: int, text: str) -> Requests:
    keys, number = Keys(plan, sample), 0
    while True:
        yield sample.request("POST", sample.name, "", _entity(*keys.written(client, number), text), _NO_ECHO)
        number += 1


def _get(plan: Plan, sample: Sample, client: int, _: str) -> Requests:
    keys, number = Keys(plan, sample), 0
    while True:
        yield sample.request("GET", _path(sample.name, *keys.stored(client, number)), fields=_JSON)
        number += 1


def _update(plan: Plan, sample: Sample, client: int, text: str) -> Requests:
    keys, number, fields = Keys(plan, sample), 0, {**_NO_ECHO, "If-Match": "*"}
    while True:
        partition, row = keys.stored(client, number)
        body = _entity(partition, row, text)
        yield sample.request("PUT", _path(sample.name, partition, row), "", body, fields)
        number += 1


def _upsert(plan: Plan, sample: Sample, client: int, text: str) -> Requests:
    keys, number = Keys(plan, sample), 0
    while True:
        partition, row = keys.written(client, number)
        yield sample.request("PUT", _path(sample.name, partition, row), "", _entity(partition, row, text), _NO_ECHO)
        number += 1


def _batches(plan: Plan, sample: Sample, client: int, text: str) -> Requests:
    keys, number = Keys(plan, sample), 0
    while True:
        partition, row = keys.written(client, number)
        yield _batch(sample, [(partition, f"{row}_{index:03}") for index in range(plan.batch)], text)
        number += 1


def _page(plan: Plan, sample: Sample, client: int, _: str) -> Requests:
    keys, number = Keys(plan, sample), 0
    while True:
        condition = quote(f"PartitionKey eq '{keys.stored(client, number)[0]}'")
        query = f"%24filter={condition}&%24top={plan.batch}"
        yield sample.request("GET", f"{sample.name}()", query, fields=_JSON)
        number += 1


_RECEIPT = re.compile(rb"<MessageId>([^<]+)</MessageId>.*<PopReceipt>([^<]+)</PopReceipt>", re.DOTALL)


def _messages(_: Plan, sample: Sample, __: int, text: str) -> Requests:
    """Put a message, get one, and delete it."""
    body = f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()
    while True:
        yield sample.request("POST", f"{sample.name}/messages", "messagettl=3600", body)
        answer = yield sample.request("GET", f"{sample.name}/messages", "visibilitytimeout=60")
        receipt = _RECEIPT.search(answer.body)
        if receipt is not None:
            message, pop = (quote(each.decode(), safe="") for each in receipt.groups())
            yield sample.request("DELETE", f"{sample.name}/messages/{message}", f"popreceipt={pop}")


def _blobs(plan: Plan, sample: Sample, client: int, text: str) -> Requests:
    """Put a blob, and get it."""
    keys, number = Keys(plan, sample), 0
    fields = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/octet-stream"}
    while True:
        blob = f"{sample.name}/{keys.written(client, number)[0]}"
        yield sample.request("PUT", blob, "", text.encode(), fields)
        yield sample.request("GET", blob)
        number += 1


_WORKLOADS: Mapping[str, Callable[[Plan, Sample, int, str], Requests]] = {
    "insert": _insert,
    "get": _get,
    "update": _update,
    "upsert": _upsert,
    "batch": _batches,
    "page": _page,
    "queue": _messages,
    "blob": _blobs,
}
READ_BODIES = frozenset({"batch", "queue"})
"""The workloads that need the bodies of responses."""


def _path(table: str, partition: str, row: str) -> str:
    return f"{table}(PartitionKey='{partition}',RowKey='{row}')"


def _entity(partition: str, row: str, text: str) -> bytes:
    return json.dumps({"PartitionKey": partition, "RowKey": row, "Payload": text}).encode()


def _batch(sample: Sample, keys: Sequence[tuple[str, str]], text: str) -> bytes:
    """Return the transaction that inserts entities, or replaces them."""
    fields = "".join(f"{name}: {value}\r\n" for name, value in (_NO_ECHO | {"DataServiceVersion": "3.0"}).items())
    start = "--changeset_s\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    parts = []
    for partition, row in keys:
        body = _entity(partition, row, text)
        head = f"{start}PUT {sample.url}/{_path(sample.name, partition, row)} HTTP/1.1\r\n{fields}"
        parts.append(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n")
    opening = b"--batch_s\r\nContent-Type: multipart/mixed; boundary=changeset_s\r\n\r\n"
    body = opening + b"".join(parts) + b"--changeset_s--\r\n--batch_s--\r\n"
    kinds = {"Content-Type": "multipart/mixed; boundary=batch_s", "Accept": _JSON["Accept"]}
    return sample.request("POST", "$batch", "", body, {**kinds, "DataServiceVersion": "3.0"})
