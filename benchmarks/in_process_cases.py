"""The cases of the benchmark without sockets: workloads of the other sections, and some of Azure's SDK for Python."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from benchmarks.blobs import PAGE, Blobs
from benchmarks.catalogue import Catalogue
from benchmarks.cycles import Queues
from benchmarks.entities import TRANSACTION_ROWS, row_key
from benchmarks.requests import ACCOUNT, MINIMAL, TABLE, Builder
from benchmarks.workload import MARK, Workload

_SDK = {
    "User_Agent": "azsdk-python-data-tables/12.5.0 Python/3.11.2 (Linux)",
    "Accept_Encoding": "gzip, deflate",
    "Connection": "keep-alive",
    "DataServiceVersion": "3.0",
    "x_ms_client_request_id": "5e7c1f9a-8d3b-11ef-b864-0242ac120002",
}
"""The fields of an SDK's requests beside those of every request."""
_MARKED = MARK.decode()
_ID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
_DATE = "Sat, 28 Nov 2026 04:30:38 GMT"


def _entity(partition: str, row: str) -> bytes:
    """Return an entity as that SDK writes it: seven properties, types after the values."""
    typed = {"Ratio": "Edm.Double", "Count": "Edm.Int64", "Seen": "Edm.DateTime"}
    values = {"PartitionKey": partition, "RowKey": row, "Name": f"name of {row}", "Age": 23, "Active": True}
    values |= {"Ratio": 1.5, "Count": "9007199254740993", "Seen": "2024-02-29T12:34:56.789000Z"}
    members: dict[str, object] = {}
    for name, value in values.items():
        members[name] = value
        if isinstance(value, str) or name in typed:
            members[f"{name}@odata.type"] = typed.get(name, "Edm.String")
    return json.dumps(members).encode()


class Tables(Catalogue):
    """Builds the workloads of a table as that SDK sends them."""

    def __init__(self, host: str, entities: int) -> None:
        super().__init__(host, entities)
        self.requests.fields |= _SDK

    def insert_by_sdk(self) -> Workload:
        """Insert small entities."""
        return Workload("insert by the SDK", 1, 64, 204, [self.requests.insert(_entity(_MARKED, "r"))])

    def transaction_by_sdk(self, method: str, partition: str, *, echoes: bool = False) -> Workload:
        """Write 100 small entities of a partition. Only the SDK for Python has inserts echoed."""
        keys = [(partition, row_key(number) + "x" * (number % 3)) for number in range(TRANSACTION_ROWS)]
        parts = [self._part(method, number, *each, echoes=echoes) for number, each in enumerate(keys)]
        opening = f"--batch_{_ID}\r\nContent-Type: multipart/mixed; boundary=changeset_{_ID}\r\n\r\n"
        body = "".join((opening, *parts, f"--changeset_{_ID}--\r\n\r\n--batch_{_ID}--\r\n")).encode()
        batch = self.requests.raw("POST", "$batch", body=body, Content_Type=f"multipart/mixed; boundary=batch_{_ID}")
        status = b" 201 Created" if echoes else b" 204 No Content"
        return Workload(f"100 × {method}", TRANSACTION_ROWS, 1, 202, [batch], status)

    def _part(self, method: str, number: int, partition: str, row: str, *, echoes: bool) -> str:
        entity = _entity(partition, row)
        target = "" if method == "POST" else f"(PartitionKey='{partition}',RowKey='{row}')"
        fields = {"Content-Type": "application/json", "Content-Length": len(entity), "x-ms-version": "2019-02-02"}
        fields |= {"DataServiceVersion": "3.0", "Accept": MINIMAL, "x-ms-date": _DATE, "Date": _DATE}
        fields |= {} if echoes or method != "POST" else {"Prefer": "return-no-content"}
        own = {"Content-Type": "application/http", "Content-Transfer-Encoding": "binary", "Content-ID": number}
        first, second = ("".join(f"{name}: {value}\r\n" for name, value in lines.items()) for lines in (own, fields))
        line = f"{method} http://{self.requests.host}/{ACCOUNT}/{TABLE}{target} HTTP/1.1"
        return f"--changeset_{_ID}\r\n{first}\r\n{line}\r\n{second}\r\n{entity.decode()}\r\n"


class Case(NamedTuple):
    """A workload, whose connections say how many requests are sent at a time; and its builder."""

    builder: Builder
    workload: Workload
    whole: bool = False
    before: Workload | None = None
    """Requests that are not measured and come first, one for each."""

    def fill(self) -> Iterator[bytes]:
        """Yield the requests that come before all cases of the builder."""
        yield self.builder.create()
        if (load := self.builder.preload()) is not None:
            yield from islice(load.numbered(0), self.builder.entities // load.units)


_TABLES = Tables("127.0.0.1:10002", 1000)
_QUEUES = Queues("127.0.0.1:10001")
_BLOBS = Blobs("127.0.0.1:10000", 2 * PAGE)
GET = Case(_TABLES, _TABLES.get(1), whole=True)
CASES = {
    "point GET by SAS": Case(_TABLES, _TABLES.get(64)),
    "point GET by Shared Key": Case(_TABLES, _TABLES.get(64, signed=True)),
    "point GET by SAS, whole": GET,
    "point GET by Shared Key, whole": Case(_TABLES, _TABLES.get(1, signed=True), whole=True),
    "insert, 64 connections, whole": Case(_TABLES, _TABLES.insert(), whole=True),
    "insert of 1 KB": Case(_TABLES, _TABLES.insert()),
    "insert by the SDK": Case(_TABLES, _TABLES.insert_by_sdk()),
    "merge of 1 KB": Case(_TABLES, _TABLES.merge()),
    "100 inserts of 1 KB": Case(_TABLES, _TABLES.transaction(connections=1)),
    "100 inserts of 1 KB, whole": Case(_TABLES, _TABLES.transaction(connections=1), whole=True),
    "100 inserts by the SDK": Case(_TABLES, _TABLES.transaction_by_sdk("POST", _MARKED, echoes=True)),
    "100 upserts by the SDK, whole": Case(_TABLES, _TABLES.transaction_by_sdk("PUT", "v"), whole=True),
    "100 inserts by other SDKs": Case(_TABLES, _TABLES.transaction_by_sdk("POST", _MARKED)),
    "100 upserts by the SDK": Case(_TABLES, _TABLES.transaction_by_sdk("PUT", "v")),
    "100 merges by the SDK": Case(_TABLES, _TABLES.transaction_by_sdk("PATCH", "w")),
    "page of 1,000": Case(_TABLES, _TABLES.pages(connections=1)),
    "put of 1 KB": Case(_QUEUES, _QUEUES.put()),
    "put of 1 KB, whole": Case(_QUEUES, _QUEUES.put(), whole=True),
    "put of 1 KB, one at a time, whole": Case(_QUEUES, _QUEUES.put(connections=1), whole=True),
    "peek of 1 KB, whole": Case(_QUEUES, _QUEUES.peek(), whole=True, before=_QUEUES.put()),
    "put of a blob of 1 KB": Case(_BLOBS, _BLOBS.put()),
    "put of a blob of 1 KB, whole": Case(_BLOBS, _BLOBS.put(), whole=True),
    "get of a blob of 1 KB": Case(_BLOBS, _BLOBS.get()),
    "get of a blob of 1 KB, whole": Case(_BLOBS, _BLOBS.get(), whole=True),
    "range of a blob of 1 KB": Case(_BLOBS, _BLOBS.get_parts()),
    "head of a blob of 1 KB": Case(_BLOBS, _BLOBS.head()),
    "put of a block of 1 KB": Case(_BLOBS, _BLOBS.put_blocks_of_1_kb()),
    "page of 5,000 blobs": Case(_BLOBS, _BLOBS.list_names(connections=1)),
    "page of 5,000 prefixes": Case(_BLOBS, _BLOBS.list_prefixes(connections=1)),
    "get and delete of 1 KB": Case(_QUEUES, _QUEUES.cycle(), before=_QUEUES.put()),
    "get and delete of 1 KB, whole": Case(_QUEUES, _QUEUES.cycle(), whole=True, before=_QUEUES.put()),
}
