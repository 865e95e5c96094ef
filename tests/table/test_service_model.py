"""The whole service against a dictionary, with restarts in between.

The model is a dictionary of tables, each a dictionary of (PartitionKey, RowKey) to properties and the ETag last seen.
Whatever the machine does, every answer and every later reading must be the model's.
"""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lazulite.engine.ordinal import ordinal
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from tests.table.batches import CONTENT_TYPE, Operation, change_set, parts
from tests.table.client import Client, header, values

T = TypeVar("T")
Key = tuple[str, str]
Entity = dict[str, Any]

tables = st.sampled_from(["alpha", "Beta"])
partitions = st.sampled_from(["p'%", "\U0001f600", "\ufb01"])
rows = st.sampled_from(["", "é ", "\U0001f601", "\uffef"])
entities = st.dictionaries(
    st.sampled_from(["A", "B", "C"]),
    st.one_of(st.none(), st.integers(-5, 5), st.text(max_size=3), st.booleans()),
    max_size=3,
)
verbs = st.sampled_from(["PUT", "PATCH", "MERGE", "POST", "DELETE"])
conditions = st.sampled_from(["absent", "any", "current", "stale"])


def _order(key: Key) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])


def _without_nulls(entity: Entity) -> Entity:
    return {name: value for name, value in entity.items() if value is not None}


def _path(table: str, key: Key) -> str:
    partition, row = (quote(part.replace("'", "''"), safe="") for part in key)
    return f"{table}(PartitionKey='{partition}',RowKey='{row}')"


class ServiceMachine(RuleBasedStateMachine):
    """Drives the service in process."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = Path(tempfile.mkdtemp(prefix="lazulite-model-"))
        self.model: dict[str, dict[Key, tuple[Entity, str]]] = {"alpha": {}, "beta": {}}
        self.stale = "W/\"datetime'2001-01-01T00%3A00%3A00Z'\""

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)

    async def _create_tables(self) -> None:
        await self._open()
        for table in ("alpha", "Beta"):
            assert (await self.client("POST", "Tables", body={"TableName": table})).status == 201

    async def _open(self) -> None:
        self.engine = RocksEngine.open(self.directory, system_clock)
        self.client = Client(self.engine)
        await self.client.service.start()

    @initialize()
    def start(self) -> None:
        self.run(self._create_tables())

    def teardown(self) -> None:
        self.run(self.engine.close())
        self.runner.close()
        shutil.rmtree(self.directory)

    @rule()
    def restart(self) -> None:
        self.run(self.engine.close())
        self.run(self._open())

    @precondition(lambda self: any(len(stored) > 3 for stored in self.model.values()))
    @rule(table=tables, again=st.booleans())
    def drop_and_create(self, table: str, again: bool) -> None:
        for method, path, body, status in (
            ("DELETE", f"Tables('{table}')", b"", 204),
            ("DELETE", f"Tables('{table}')", b"", 404),
            ("POST", "Tables", {"TableName": table}, 201),
            ("POST", "Tables", {"TableName": table.upper()}, 409),
        )[: 4 if again else 2]:
            assert self.run(self.client(method, path, body=body)).status == status
        self.model[table.lower()] = {}
        if not again:
            names = [found["TableName"].lower() for found in values(self.run(self.client("GET", "Tables")))]
            assert names == sorted(set(self.model) - {table.lower()})
            assert self.run(self.client("GET", f"{table}()")).status == 404
            assert self.run(self.client("POST", "Tables", body={"TableName": table})).status == 201

    def _condition(self, table: str, key: Key, condition: str) -> str | None:
        known = self.model[table.lower()].get(key)
        tags = {"absent": None, "any": "*", "stale": self.stale, "current": known[1] if known else self.stale}
        return tags[condition]

    def _expect(self, verb: str, known: tuple[Entity, str] | None, tag: str | None) -> int:
        if verb == "POST":
            return 400 if tag is not None else 409 if known else 201
        if verb == "DELETE" and tag is None:
            return 400
        if tag is None:
            return 204
        if known is None:
            return 404
        return 204 if tag in ("*", known[1]) else 412

    def _apply(self, verb: str, known: tuple[Entity, str] | None, entity: Entity) -> Entity:
        new = _without_nulls(entity)
        return {**known[0], **new} if known and verb in ("PATCH", "MERGE") else new

    @rule(table=tables, verb=verbs, partition=partitions, row=rows, entity=entities, condition=conditions)
    def write(self, table: str, verb: str, partition: str, row: str, entity: Entity, condition: str) -> None:
        key = (partition, row)
        tag = self._condition(table, key, condition)
        headers = {} if tag is None else {"if-match": tag}
        body: Any = {**entity, "PartitionKey": partition, "RowKey": row} if verb != "DELETE" else b""
        path = table if verb == "POST" else _path(table, key)
        response = self.run(self.client(verb, path, body=body, headers=headers))
        stored = self.model[table.lower()]
        known = stored.get(key)
        expected = self._expect(verb, known, tag)
        assert response.status == expected, response
        if expected < 300 and verb == "DELETE":
            del stored[key]
        elif expected < 300:
            etag = header(response, "ETag")
            assert etag is not None
            assert known is None or etag > known[1]
            stored[key] = (self._apply(verb, known, entity), etag)
        self._compare(table, key)

    @rule(
        table=tables,
        partition=partitions,
        steps=st.lists(st.tuples(verbs, rows, entities, conditions), min_size=1, max_size=5, unique_by=lambda s: s[1]),
    )
    def transaction(self, table: str, partition: str, steps: list[tuple[str, str, Entity, str]]) -> None:
        operations, tags = [], []
        for verb, row, entity, condition in steps:
            tag = self._condition(table, (partition, row), condition)
            tags.append(tag)
            body = None if verb == "DELETE" else {**entity, "PartitionKey": partition, "RowKey": row}
            path = table if verb == "POST" else _path(table, (partition, row))
            operations.append(Operation(verb, path, body, {} if tag is None else {"If-Match": tag}))
        response = self.run(self.client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE))
        answers = parts(response)
        stored = self.model[table.lower()]
        expected = [
            self._expect(verb, stored.get((partition, row)), tag)
            for (verb, row, _, _), tag in zip(steps, tags, strict=True)
        ]
        # What needs no stored state (400) is found for all operations before anything is compared with what is stored.
        rejections = [status for status in expected if status == 400] or [s for s in expected if s >= 300]
        if rejections:
            assert [answer.status for answer in answers] == rejections[:1]
            for _, row, _, _ in steps:
                self._compare(table, (partition, row))
            return
        assert [answer.status for answer in answers] == expected
        for (verb, row, entity, _), answer in zip(steps, answers, strict=True):
            key = (partition, row)
            if verb == "DELETE":
                del stored[key]
            else:
                stored[key] = (self._apply(verb, stored.get(key), entity), answer.headers["ETag"])

    def _compare(self, table: str, key: Key) -> None:
        response = self.run(self.client("GET", _path(table, key)))
        known = self.model[table.lower()].get(key)
        assert response.status == (200 if known else 404)
        if known:
            assert header(response, "ETag") == known[1]
            assert self._plain(json.loads(response.body)) == (key, known[0])

    @rule(
        table=tables,
        low=st.tuples(partitions, rows),
        high=st.tuples(partitions, rows),
        top=st.integers(1, 2),
        kind=st.sampled_from(["everything", "partitions", "rows", "either", "property"]),
    )
    def query(self, table: str, low: Key, high: Key, top: int, kind: str) -> None:
        first, second = (f"'{key[0].replace(chr(39), chr(39) * 2)}'" for key in (low, high))
        choices: dict[str, tuple[str, Callable[[Key, Entity], bool]]] = {
            "everything": ("", lambda *_: True),
            "partitions": (
                f"PartitionKey ge {first} and PartitionKey lt {second}",
                lambda key, _: ordinal(low[0]) <= ordinal(key[0]) < ordinal(high[0]),
            ),
            "rows": (
                f"PartitionKey eq {first} and RowKey gt '{low[1]}' and RowKey le '{high[1]}'",
                lambda key, _: key[0] == low[0] and ordinal(low[1]) < ordinal(key[1]) <= ordinal(high[1]),
            ),
            "either": (
                f"(PartitionKey eq {first} and RowKey eq '{low[1]}') or PartitionKey eq {second}",
                lambda key, _: key == low or key[0] == high[0],
            ),
            "property": ("not (A gt 0)", lambda _, entity: not _is_positive(entity.get("A"))),
        }
        text, matches = choices[kind]
        stored = self.model[table.lower()]
        expected = [(key, stored[key][0]) for key in sorted(stored, key=_order) if matches(key, stored[key][0])]
        assert self.run(self._pages(table, text, top)) == expected

    async def _pages(self, table: str, text: str, top: int) -> list[tuple[Key, Entity]]:
        found: list[tuple[Key, Entity]] = []
        continuation = ""
        while True:
            response = await self.client(
                "GET", f"{table}()", f"$filter={quote(text, safe='')}&$top={top}{continuation}"
            )
            assert response.status == 200, response
            page = values(response)
            assert len(page) <= top
            found += [self._plain(entity) for entity in page]
            partition = header(response, "x-ms-continuation-NextPartitionKey")
            if partition is None:
                return found
            row = header(response, "x-ms-continuation-NextRowKey")
            continuation = f"&NextPartitionKey={quote(partition)}&NextRowKey={quote(row or '')}"

    @staticmethod
    def _plain(entity: Entity) -> tuple[Key, Entity]:
        key = (entity.pop("PartitionKey"), entity.pop("RowKey"))
        entity.pop("Timestamp")
        return key, entity


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


ServiceMachine.TestCase.settings = settings(max_examples=10, stateful_step_count=60, deadline=None)
TestServiceModel = ServiceMachine.TestCase
