"""The minimal server for tables: the least code for a point read, a durable insert and an entity group transaction.

The same httptools, uvloop, json, RocksDB with the same options, and group commit. Nothing is checked but the signature
and whether an entity is there, and writes are shown to readers before they are synced. The difference between this and
Lazulite is Lazulite's own code. Arguments: port, `--location`, directory.
"""

import asyncio
import hmac
import json
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote_to_bytes

from rocksdict import Rdict, WriteBatch

from benchmarks.baseline_server import Responder, serve
from benchmarks.requests import is_account_sas, shared_key
from lazulite.engine.rocksdb.options import RocksSettings, database_options, write_options

_ENTITY = re.compile(rb"/[^/]*/([^(]*)\(PartitionKey='(.*)',RowKey='(.*)'\)")
_JSON = b"Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n"
_MIXED = b"Content-Type: multipart/mixed; boundary=r\r\n"
_PART = b"--r\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 204 No Content\r\nETag: W/\"datetime'%020d'\"\r\n\r\n"


def _response(status: bytes, head: bytes = b"", body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, head, len(body), body)


class _Store:
    """RocksDB and group commit."""

    def __init__(self, location: str) -> None:
        options = database_options(RocksSettings(), None)
        self.database = Rdict(location, options, {"default": options})
        self._options, self._worker = write_options(), ThreadPoolExecutor(1)
        self._batch, self._waiting = WriteBatch(raw_mode=True), list[Callable[[], None]]()
        self._flush: asyncio.Task[None] | None = None

    def insert(self, entities: list[bytes], done: Callable[[], None]) -> bool:
        """Insert entities, all of them or, if one is there, none and return False; call `done` once they are synced."""
        read = [(json.loads(entity), entity) for entity in entities]
        rows = {f"{found['PartitionKey']}\0{found['RowKey']}".encode(): entity for found, entity in read}
        if any(self.database.get(key) is not None for key in rows):
            return False
        for key, entity in rows.items():
            self._batch.put(key, b"%020d%b" % (time.time_ns(), entity[1:]))
        self._waiting.append(done)
        self._flush = self._flush or asyncio.create_task(self._flush_all())
        return True

    async def _flush_all(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            batch, self._batch = self._batch, WriteBatch(raw_mode=True)
            self.database.write(batch, self._options)
            await asyncio.get_running_loop().run_in_executor(self._worker, self.database.flush_wal, True)
            for done in waiting:
                done()
            await asyncio.sleep(0)
        self._flush = None


class _Connection(Responder):
    def __init__(self, store: _Store) -> None:
        super().__init__()
        self._store, self._url, self._headers, self._body = store, b"", dict[bytes, bytes](), b""

    def on_url(self, url: bytes) -> None:
        self._url, self._headers, self._body = url, {}, b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, part: bytes) -> None:
        self._body += part

    def on_message_complete(self) -> None:
        path, _, query = self._url.partition(b"?")
        if not (is_account_sas(query) or self._is_signed(path)):
            self._send(_response(b"403 Forbidden"))
        elif (entity := _ENTITY.fullmatch(path)) is not None:
            self._get(*[part if b"%" not in part else unquote_to_bytes(part) for part in entity.groups()])
        elif path.endswith(b"/$batch"):
            entities = [part.rpartition(b"\r\n\r\n")[2] for part in self._body.split(b"--changeset_c")[1:-1]]
            parts = b"".join([_PART % time.time_ns() for _ in entities])
            self._insert(entities, _response(b"202 Accepted", _MIXED, parts))
        elif path.endswith(b"/Tables"):
            self._send(_response(b"201 Created", _JSON, self._body))
        else:
            self._insert([self._body], _response(b"204 No Content"))

    def _send(self, response: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(response)

    def _is_signed(self, path: bytes) -> bool:
        date, method = self._headers.get(b"x-ms-date", b""), self._parser.get_method()
        signed = shared_key(method.decode(), path.decode(), date.decode())
        return hmac.compare_digest(self._headers.get(b"authorization", b""), signed.encode())

    def _get(self, table: bytes, partition: bytes, row: bytes) -> None:
        value = self._store.database.get(partition + b"\0" + row)
        if value is None:
            self._send(_response(b"404 Not Found"))
            return
        etag = b"W/\"datetime'%b'\"" % value[:20]
        body = b'{"odata.metadata":"%b","odata.etag":"%b",%b' % (table, etag.replace(b'"', b'\\"'), value[20:])
        self._send(_response(b"200 OK", b"ETag: " + etag + b"\r\n" + _JSON, body))

    def _insert(self, entities: list[bytes], done: bytes) -> None:
        if not self._store.insert(entities, lambda: self._send(done)):
            self._send(_response(b"409 Conflict"))


if __name__ == "__main__":
    [port, _, location] = sys.argv[1:]
    store = _Store(location)
    serve(lambda: _Connection(store), int(port))
