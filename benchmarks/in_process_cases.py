"""The cases of the benchmark without sockets: what is sent, and how much at a time."""

import json
from collections.abc import Callable, Set
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import NamedTuple

from benchmarks.blobs import PAGE, Blobs
from benchmarks.cycles import QUEUE, delete_request, put_request
from benchmarks.entities import PARTITION_ROWS, TRANSACTION_ROWS, entity, row_key
from benchmarks.requests import MINIMAL, TABLE, Requests

_BUILD = Requests("127.0.0.1:10002", datetime.now(UTC))
_QUEUES = Requests("127.0.0.1:10001", datetime.now(UTC), "q", "rwdlacup")
_BLOBS = Blobs("127.0.0.1:10000", 2 * PAGE)
_POINT = f"{TABLE}(PartitionKey='p',RowKey='000000')"
_SDK = {
    "User_Agent": "azsdk-python-data-tables/12.5.0 Python/3.11.2 (Linux)",
    "Accept_Encoding": "gzip, deflate",
    "Connection": "keep-alive",
    "DataServiceVersion": "3.0",
    "x_ms_client_request_id": "5e7c1f9a-8d3b-11ef-b864-0242ac120002",
}
"""The fields of an SDK's requests beside those of every request."""


def _sdk_entity(partition: str, row: str) -> bytes:
    """Return an entity as Azure's SDK for Python writes it: seven properties, types after the values."""
    typed = {"Ratio": "Edm.Double", "Count": "Edm.Int64", "Seen": "Edm.DateTime"}
    values = {"PartitionKey": partition, "RowKey": row, "Name": f"name of {row}", "Age": 23, "Active": True}
    values |= {"Ratio": 1.5, "Count": "9007199254740993", "Seen": "2024-02-29T12:34:56.789000Z"}
    members: dict[str, object] = {}
    for name, value in values.items():
        members[name] = value
        if isinstance(value, str) or name in typed:
            members[f"{name}@odata.type"] = typed.get(name, "Edm.String")
    return json.dumps(members).encode()


def _batch(method: str, partition: str) -> bytes:
    """Return a transaction of 100 as that SDK writes it."""
    keys = [(partition, row_key(number) + "x" * (number % 3)) for number in range(TRANSACTION_ROWS)]
    return _BUILD.transaction([_sdk_entity(*key) for key in keys], method, keys, **_SDK)


def _inserts(partition: str, first: int = 0) -> bytes:
    rows = range(first, first + TRANSACTION_ROWS)
    return _BUILD.transaction([entity(partition, row_key(row)) for row in rows])


class Case(NamedTuple):
    """A kind of request: how many at a time, the entities of one, and its bytes by its number."""

    together: int
    units: int
    make: Callable[[int], bytes]
    whole: bool = False
    service: str = "table"
    before: Callable[[int], bytes] | None = None
    """A request that is not measured and comes first, by the same number."""
    after: Callable[[bytes], bytes | None] | None = None
    """The request that follows a response, and counts with the first one."""


GET = Case(64, 1, lambda _: _BUILD.raw("GET", _POINT, "", b"", MINIMAL, **_SDK))
_SIGNED_GET = Case(64, 1, lambda _: _BUILD.signed("GET", _POINT, "", b"", "", **_SDK))
_PUT = Case(64, 1, lambda _: put_request(_QUEUES), service="queue")
_CYCLE = Case(
    64,
    1,
    lambda _: _QUEUES.raw("GET", f"{QUEUE}/messages"),
    service="queue",
    before=_PUT.make,
    after=partial(delete_request, _QUEUES),
)
CASES = {
    "point GET by SAS": GET,
    "point GET by Shared Key": _SIGNED_GET,
    "point GET by SAS, whole": GET._replace(together=1, whole=True),
    "point GET by Shared Key, whole": _SIGNED_GET._replace(together=1, whole=True),
    "insert, 64 connections, whole": Case(64, 1, lambda at: _BUILD.insert(entity(f"w{at}", "r")), whole=True),
    "insert of 1 KB": Case(64, 1, lambda at: _BUILD.insert(entity(f"i{at}", "r"))),
    "insert by the SDK": Case(64, 1, lambda at: _BUILD.insert(_sdk_entity(f"s{at}", "r"))),
    "merge of 1 KB": Case(64, 1, lambda at: _BUILD.merge(f"m{at % 64}", "r", entity(f"m{at % 64}", "r"))),
    "100 inserts of 1 KB": Case(1, TRANSACTION_ROWS, lambda at: _inserts(f"t{at}")),
    "100 inserts by the SDK": Case(1, TRANSACTION_ROWS, lambda at: _batch("POST", f"u{at}")),
    "100 upserts by the SDK": Case(1, TRANSACTION_ROWS, lambda _: _batch("PUT", "v")),
    "100 merges by the SDK": Case(1, TRANSACTION_ROWS, lambda _: _batch("PATCH", "w")),
    "page of 1,000": Case(
        1, PARTITION_ROWS, lambda _: _BUILD.raw("GET", f"{TABLE}()", "$filter=PartitionKey%20eq%20'p'")
    ),
    "put of 1 KB": _PUT,
    "put of 1 KB, whole": _PUT._replace(whole=True),
    "put of 1 KB, one at a time, whole": _PUT._replace(together=1, whole=True),
    "page of 5,000 blobs": Case(1, PAGE, lambda _: _BLOBS.list_names().requests[0], service="blob"),
    "page of 5,000 prefixes": Case(1, PAGE, lambda _: _BLOBS.list_prefixes().requests[0], service="blob"),
    "get and delete of 1 KB": _CYCLE,
    "get and delete of 1 KB, whole": _CYCLE._replace(whole=True),
}


def fill(services: Set[str]) -> dict[str, list[bytes]]:
    """Return by service the requests that come before the cases of some services."""
    table = [_BUILD.create_table(), *(_inserts("p", start) for start in range(0, PARTITION_ROWS, TRANSACTION_ROWS))]
    queue = [_QUEUES.raw("PUT", QUEUE, Content_Length="0")]
    blobs = islice(_BLOBS.preload().numbered(0), _BLOBS.entities) if "blob" in services else ()
    return {"table": table, "queue": queue, "blob": [_BLOBS.create(), *blobs]}
