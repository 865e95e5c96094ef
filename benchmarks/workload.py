"""What is asked of the server: raw HTTP/1.1 requests, built before the clock starts.

A load generator sends `Workload.requests` in turn, over and over. `MARK` in a request stands for a number that no other
request of the run carries; it has the mark's own length, so Content-Length stays right.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import quote

from benchmarks.signing import ACCOUNT, account_sas, shared_key

MARK = b"@@@@@@@@@@@@"
TABLE = "bench"
PARTITION_ROWS = 1000
"""Entities of one stored partition: a full page."""
TRANSACTION_ROWS = 100
WRITE_PARTITIONS = 16
PAYLOAD_BYTES = 1024

_JSON = "application/json;odata=minimalmetadata"


@dataclass(frozen=True)
class Workload:
    """One row of the report.

    Attributes:
        name: what the row is called.
        unit: what is counted.
        units: how many of them one response stands for.
        witness: what the body of a good response holds once for each of them; nothing to look for if empty.
        connections: how many requests are under way at any time.
        status: what every response must say.
        requests: raw requests, sent in turn.
    """

    name: str
    unit: str
    units: int
    witness: bytes
    connections: int
    status: int
    requests: Sequence[bytes]

    def numbered(self, first: int) -> Iterator[bytes]:
        """Yield the requests for ever, with numbers from `first` on."""
        pieces = [request.split(MARK) for request in self.requests]
        number = first
        while True:
            for parts in pieces:
                yield parts[0] if len(parts) == 1 else f"{number:0{len(MARK)}d}".encode().join(parts)
                number += 1


def entity(partition: str, row: str) -> bytes:
    """Return an entity of five properties of five types, 1 KB of JSON."""
    properties: dict[str, object] = {
        "PartitionKey": partition,
        "RowKey": row,
        "Count@odata.type": "Edm.Int64",
        "Count": "9007199254740993",
        "Ratio": 0.3333333333333333,
        "Active": True,
        "Seen@odata.type": "Edm.DateTime",
        "Seen": "2024-02-29T12:34:56.789Z",
        "Text": "",
    }
    properties["Text"] = "x" * (PAYLOAD_BYTES - len(json.dumps(properties)))
    return json.dumps(properties).encode()


class Requests:
    """Builds requests for one endpoint.

    Args:
        host: host and port, for the Host header.
        now: signatures are dated with it; Shared Key requests live 15 minutes from then.
    """

    def __init__(self, host: str, now: datetime) -> None:
        self._host = host
        self._date = format_datetime(now.astimezone(UTC), usegmt=True)
        self._sas = account_sas(f"{now.astimezone(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}")

    def raw(self, method: str, resource: str, query: str = "", body: bytes = b"", **headers: str) -> bytes:
        """Return a request authorized by the SAS in its URL. `headers` are spelled with underscores."""
        target = f"/{ACCOUNT}/{resource}?{query + '&' if query else ''}{self._sas}"
        return self._assemble(method, target, body, headers)

    def signed(self, method: str, resource: str) -> bytes:
        """Return a request without body, authorized by Shared Key."""
        path = f"/{ACCOUNT}/{resource}"
        return self._assemble(method, path, b"", {"Authorization": shared_key(method, path, self._date)})

    def _assemble(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> bytes:
        lines = {"Host": self._host, "Accept": _JSON, "x-ms-version": "2019-02-02", "x-ms-date": self._date}
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            lines |= {"Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body

    def create_table(self) -> bytes:
        """Return the request that creates the table."""
        return self.raw(
            "POST", "Tables", body=json.dumps({"TableName": TABLE}).encode(), Content_Type="application/json"
        )

    def insert(self, partition: str, row: str) -> bytes:
        """Return the request that inserts one entity and wants no echo."""
        return self.raw(
            "POST", TABLE, body=entity(partition, row), Content_Type="application/json", Prefer="return-no-content"
        )

    def transaction(self, partition: str, rows: Sequence[str]) -> bytes:
        """Return the entity group transaction that inserts these rows."""
        part = (
            "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"POST http://{self._host}/{ACCOUNT}/{TABLE} HTTP/1.1\r\nContent-Type: application/json\r\n"
            f"Accept: {_JSON}\r\nPrefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n"
        ).encode()
        parts = b"".join(part + entity(partition, row) + b"\r\n" for row in rows)
        opening = b"--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n"
        body = opening + parts + b"--changeset_c--\r\n\r\n--batch_b--\r\n"
        return self.raw("POST", "$batch", body=body, Content_Type="multipart/mixed; boundary=batch_b")


def stored_keys(entities: int) -> list[tuple[str, str]]:
    """Return the keys that the reading workloads find in the table, in order."""
    return [(f"r{number // PARTITION_ROWS:04d}", f"{number % PARTITION_ROWS:06d}") for number in range(entities)]


def preload(requests: Requests, entities: int) -> list[bytes]:
    """Return the transactions that store `stored_keys(entities)`; `entities` is a multiple of 100."""
    keys = stored_keys(entities)
    groups = [keys[start : start + TRANSACTION_ROWS] for start in range(0, entities, TRANSACTION_ROWS)]
    return [requests.transaction(group[0][0], [row for _, row in group]) for group in groups]


def workloads(requests: Requests, entities: int) -> list[Workload]:
    """Return the report's rows, over a table of `entities` stored entities."""
    keys = stored_keys(entities)
    random.Random(1).shuffle(keys)
    paths = [f"{TABLE}(PartitionKey='{partition}',RowKey='{row}')" for partition, row in keys]
    whole = sorted({partition for partition, _ in keys})[: max(1, entities // PARTITION_ROWS)]
    filters = [f"PartitionKey eq '{partition}'" for partition in whole]
    pages = [requests.raw("GET", f"{TABLE}()", f"$filter={quote(text)}") for text in filters]
    mark = MARK.decode()
    writes = [f"w{number:02d}" for number in range(WRITE_PARTITIONS)]
    rows = [f"{mark}-{number:02d}" for number in range(TRANSACTION_ROWS)]
    page_rows = min(entities, PARTITION_ROWS)
    gets_sas = [requests.raw("GET", path) for path in paths]
    gets_signed = [requests.signed("GET", path) for path in paths]
    inserts = [requests.insert(write, mark) for write in writes]
    transactions = [requests.transaction(write, rows) for write in writes]
    return [
        Workload("point GET, SAS", "requests", 1, b'"RowKey"', 32, 200, gets_sas),
        Workload("point GET, Shared Key", "requests", 1, b'"RowKey"', 32, 200, gets_signed),
        Workload("durable insert", "entities", 1, b"", 64, 204, inserts),
        Workload("entity group transaction", "entities", TRANSACTION_ROWS, b" 204 No Content", 4, 202, transactions),
        Workload("full-page query", "entities", page_rows, b'"RowKey"', 4, 200, pages),
    ]
