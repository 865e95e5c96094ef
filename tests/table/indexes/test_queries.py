"""A table with indexes and one without, written and read alike: the same rows, in the same order, over any pages."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias
from urllib.parse import quote

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from lazulite.engine.contract import Engine
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock
from lazulite.service.routing import QueryLimits
from lazulite.table.indexes import reader
from lazulite.table.indexes.definition import TABLE_INDEXES_MAX, Scope
from tests.postgres.server import empty_database
from tests.table.batches import CONTENT_TYPE, Operation, change_set, parts
from tests.table.client import ACCOUNT, Client, header, values

from .builders import builder_of, check_entries

Entity = dict[str, Any]
Change: TypeAlias = "Callable[[Twins], Awaitable[None]]"
TABLES = INDEXED, PLAIN = "indexed", "plain"
GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"
PARTITIONS, ROWS = ["p", "p\U0001f600", "q"], ["", "a", "b", "\ufb01", "\U0001f601"]

plain_values = st.one_of(
    st.none(),
    st.integers(-2, 2),
    st.sampled_from([0.5, 1.0, True, False, "", "a", "ab", "b\U0001f600", "\ufb01", "a" * 300, "a" * 299 + "b"]),
    st.sampled_from([("Edm.Int64", "2"), ("Edm.Int64", "9007199254740993"), ("Edm.DateTime", "2026-01-01T00:00:00Z")]),
    st.sampled_from(
        [("Edm.Double", "NaN"), ("Edm.Guid", "c9da6455-213d-42c9-9a79-3e9149a57833"), ("Edm.Binary", "AQI=")]
    ),
)
entities = st.dictionaries(st.sampled_from("ABC"), plain_values, max_size=3)
keys = st.tuples(st.sampled_from(PARTITIONS), st.sampled_from(ROWS))
verbs = st.sampled_from(["PUT", "PATCH", "DELETE"])
constants = ["1", "-1", "2L", "0.5", "''", "'a'", "'ab'", "true", "datetime'2026-01-01T00:00:00Z'", "X'0102'"]
terms = st.builds(
    "{} {} {}".format,
    st.sampled_from(["A", "B", "PartitionKey", "RowKey"]),
    st.sampled_from(["eq", "ne", "gt", "ge", "lt", "le"]),
    st.sampled_from([*constants, f"'{'a' * 300}'", f"guid'{GUID}'", "NaN"]),
)
filters = st.recursive(
    st.one_of(terms, st.just("A"), st.just("PartitionKey eq 'p' and A eq 1")),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        inner.map("not ({})".format),
    ),
    max_leaves=5,
)


def body_of(entity: Entity) -> Entity:
    body: Entity = {}
    for name, value in entity.items():
        if isinstance(value, tuple):
            body[f"{name}@odata.type"], body[name] = value
        else:
            body[name] = value
    return body


def path_of(table: str, key: tuple[str, str]) -> str:
    partition, row = (quote(part.replace("'", "''"), safe="") for part in key)
    return f"{table}(PartitionKey='{partition}',RowKey='{row}')"


class Twins:
    """Two tables of one service, of which one has indexes."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or RocksEngine.open(None, system_clock)
        self.client = Client(self.engine, limits=QueryLimits(lookahead_rows=3))
        self.builder = builder_of(self.engine, self.client)
        self.count = 0

    async def start(self) -> None:
        for table in TABLES:
            assert (await self.client("POST", "Tables", body={"TableName": table})).status == 201

    async def write(self, method: str, key: tuple[str, str], entity: Entity) -> None:
        body, headers = (b"", {"if-match": "*"}) if method == "DELETE" else (body_of(entity), {})
        with_indexes, without = [await self.client(method, path_of(table, key), "", body, headers) for table in TABLES]
        assert with_indexes.status == without.status

    async def batch(self, partition: str, entities: Mapping[str, Entity]) -> None:
        for table in TABLES:
            operations = [
                Operation("PUT", path_of(table, (partition, row)), body_of(entity)) for row, entity in entities.items()
            ]
            response = await self.client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
            assert all(part.status == 204 for part in parts(response))

    async def declare(self, on: Sequence[str], scope: Scope) -> None:
        if len((await self.builder.indexes(ACCOUNT, INDEXED)).declared) == TABLE_INDEXES_MAX:
            await self.undeclare()
        self.count += 1
        name = f"index{self.count}"
        await self.builder.create(ACCOUNT, INDEXED, name, on, scope)
        async for _ in self.builder.build(ACCOUNT, INDEXED, name):
            pass

    async def undeclare(self) -> None:
        indexes = (await self.builder.indexes(ACCOUNT, INDEXED)).declared
        if indexes:
            await self.builder.drop(ACCOUNT, INDEXED, indexes[0].name)

    async def page(self, table: str, text: str, top: int, token: str) -> tuple[list[Entity], str, int]:
        response = await self.client("GET", f"{table}()", f"$filter={quote(text)}&$top={top}{token}")
        assert response.status == 200, response.body
        partition, row = (header(response, f"x-ms-continuation-Next{name}Key") for name in ("Partition", "Row"))
        following = "" if partition is None else f"&NextPartitionKey={quote(partition)}"
        following += "" if row is None else f"&NextRowKey={quote(row)}"
        timing = header(response, "Server-Timing") or ""
        scanned = int(timing.partition('scanned;desc="')[2].partition('"')[0])
        return [{**entity, "Timestamp": ""} for entity in values(response)], following, scanned

    async def pages(self, table: str, text: str, top: int, between: Sequence[Change] = ()) -> tuple[list[Entity], int]:
        """Return all rows of a query, and how many were read; make a change after each page."""
        changes = iter(between)
        found, token, scanned = await self.page(table, text, top, "")
        while token:
            change = next(changes, None)
            if change is not None:
                await change(self)
            more, token, count = await self.page(table, text, top, token)
            found += more
            scanned += count
        return found, scanned

    async def check(self) -> None:
        await check_entries(self.engine, INDEXED)


def declaring(on: Sequence[str], scope: Scope) -> Change:
    return lambda twins: twins.declare(on, scope)


declarations = st.builds(
    declaring, st.sampled_from([("A",), ("B",), ("A", "B"), ("Timestamp",)]), st.sampled_from(list(Scope))
)
drops: st.SearchStrategy[Change] = st.just(Twins.undeclare)
single_writes = st.builds(lambda *write: lambda twins: twins.write(*write), verbs, keys, entities)
batches = st.builds(
    lambda partition, rows: lambda twins: twins.batch(partition, rows),
    st.sampled_from(PARTITIONS),
    st.dictionaries(st.sampled_from(ROWS), entities, min_size=1),
)
writes = st.lists(st.one_of(single_writes, single_writes, batches), max_size=14)


given_queries = given(
    writes,
    st.lists(declarations, min_size=1, max_size=3),
    writes,
    st.lists(st.tuples(filters, st.integers(1, 5)), min_size=1, max_size=4),
    st.lists(st.one_of(declarations, drops), max_size=4),
    st.sampled_from([1, 2, 256]),
)
Queries: TypeAlias = list[tuple[str, int]]


@settings(max_examples=150, deadline=None)
@given_queries
def test_a_query_gives_the_same_rows_with_indexes_and_without(
    before: list[Change],
    declared: list[Change],
    after: list[Change],
    queries: Queries,
    between: list[Change],
    chunk: int,
) -> None:
    compare_queries(lambda: None, before, declared, after, queries, between, chunk)


@pytest.mark.parametrize("store", ["postgres"])
@settings(max_examples=6, deadline=None, phases=[Phase.generate])
@given_queries
def test_a_query_of_a_database_gives_the_same_rows(
    store: str,
    before: list[Change],
    declared: list[Change],
    after: list[Change],
    queries: Queries,
    between: list[Change],
    chunk: int,
) -> None:
    assert store == "postgres"
    compare_queries(open_database, before, declared, after, queries, between, chunk)


def open_database() -> Engine:
    return PostgresEngine(PostgresSettings(dsn=empty_database()), system_clock)


def compare_queries(
    open_engine: Callable[[], Engine | None],
    before: Sequence[Change],
    declared: Sequence[Change],
    after: Sequence[Change],
    queries: Queries,
    between: Sequence[Change],
    chunk: int,
) -> None:
    """Compare the queries of two tables. Few entries in a step let a page have many of them."""

    async def compare() -> None:
        twins = Twins(open_engine())
        await twins.start()
        for change in [*before, *declared, *after]:
            await change(twins)
        await twins.check()
        for text, top in queries:
            expected, scanned = await twins.pages(PLAIN, text, top)
            found, read = await twins.pages(INDEXED, text, top)
            assert found == expected
            assert read <= scanned + len(expected) + 1
            assert (await twins.pages(INDEXED, text, top, between))[0] == expected
        await twins.check()
        await twins.engine.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_CHUNK", chunk)
        asyncio.run(compare())


QUERIES = [
    *(f"A {operator} {constant}" for operator in ("eq", "gt", "le") for constant in ("1", "'a'", "''", "true")),
    "PartitionKey eq 'p' and A eq 1",
    "PartitionKey eq 'p' and A gt 0 and RowKey gt 'a'",
    "A eq 1 and B eq 1",
    "(A eq 1 or A eq 'a' or A eq 2L) and not (RowKey eq 'b')",
    "A ge 'a' and A lt 'b'",
]


@pytest.mark.parametrize("scripts", [None, True])
async def test_databases_give_the_same_rows(scripts: bool | None) -> None:
    engine = PostgresEngine(PostgresSettings(dsn=empty_database(), scripts=scripts), system_clock)
    twins = Twins(engine)
    await twins.start()
    constants: list[Any] = [
        1,
        2,
        "a",
        "ab",
        "",
        True,
        0.5,
        ("Edm.Int64", "2"),
        ("Edm.DateTime", "2026-01-01T00:00:00Z"),
    ]
    random = Random(7)

    async def write(count: int) -> None:
        for _ in range(count):
            entity = {name: random.choice(constants) for name in "AB" if random.random() < 0.8}
            key = random.choice(PARTITIONS), random.choice(ROWS)
            await twins.write(random.choice(["PUT", "PUT", "PATCH", "DELETE"]), key, entity)
        await twins.batch("p", {row: {"A": random.choice(constants)} for row in ROWS})

    await write(10)
    for on, scope in ((["A"], Scope.TABLE), (["A"], Scope.PARTITION), (["A", "B"], Scope.TABLE)):
        await twins.declare(on, scope)
        await write(6)
    await twins.check()
    for text in QUERIES:
        for top in (1, 3):
            assert (await twins.pages(INDEXED, text, top))[0] == (await twins.pages(PLAIN, text, top))[0]
    await twins.undeclare()
    await write(6)
    await twins.check()
    await engine.close()
