"""A table whose entities expire, and one from which the test deletes them in time: requests have the same outcome."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.engine.contract import Clock, Engine
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.service.routing import QueryLimits
from lazulite.table.catalog import Catalog
from lazulite.table.expiry.definition import Expiry
from lazulite.table.expiry.sweep import ExpirySweep
from lazulite.table.indexes.definition import Scope
from tests.postgres.server import empty_database
from tests.table.batches import CONTENT_TYPE, Operation, change_set, parts
from tests.table.client import ACCOUNT, Client, header
from tests.table.indexes.builders import builder_of, rows_of
from tests.table.indexes.test_queries import Twins, body_of, path_of

TABLES = EXPIRING, PLAIN = "indexed", "plain"
NEW_YEAR = 134_116_992_000_000_000
"""2026-01-01T00:00:00Z in ticks."""
RULES = [Expiry(after_seconds=25), Expiry(on="Until")]
NO_ETAG = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\""
Entity: TypeAlias = Mapping[str, Any]


class ExpiringTwins(Twins):
    """The two tables, and the clock of all that has to do with them."""

    def __init__(self, make: Callable[[Clock], Engine], expiry: Expiry) -> None:
        self.seconds = 0
        super().__init__(make(self.clock))
        self.expiry = expiry
        self.etags: dict[tuple[str, str], str] = {}

    def clock(self) -> int:
        return NEW_YEAR + self.seconds * TICKS_PER_SECOND

    def connect(self) -> None:
        self.client = Client(self.engine, clock=self.clock, limits=QueryLimits(lookahead_rows=2))
        self.builder = builder_of(self.engine, self.client)

    async def start(self) -> None:
        self.connect()
        await super().start()
        await self.declare(["N"], Scope.TABLE)
        await self.declare(["Until"], Scope.PARTITION)
        await Catalog(self.engine).set_expiry(ACCOUNT, EXPIRING, self.expiry)
        self.connect()

    async def rows(self, table: str) -> Mapping[tuple[str, str], bytes]:
        found = await Catalog(self.engine).read(ACCOUNT, table)
        assert found is not None
        return await rows_of(self.engine, found.space)

    async def advance(self, tens: int) -> None:
        """Let time pass."""
        self.seconds += 10 * tens
        await self.purge()

    async def purge(self) -> None:
        """Delete what has expired from the other table. A date may have passed when it is written."""
        for key, value in (await self.rows(PLAIN)).items():
            if self.expiry.is_over(value, self.clock()):
                await self.client("DELETE", path_of(PLAIN, key), headers={"if-match": "*"})

    async def send(self, method: str, row: str, entity: Entity, condition: str) -> None:
        outcomes = []
        for table in TABLES:
            etag = self.etags.get((table, row), NO_ETAG)
            headers = {"if-match": etag if condition == "last" else condition} if condition else {}
            if method == "POST":
                body = {"PartitionKey": "p", "RowKey": row, **body_of({**entity})}
                response = await self.client("POST", table, "", body, {"prefer": "return-no-content"})
            else:
                sent = b"" if method == "DELETE" else body_of({**entity})
                response = await self.client(method, path_of(table, ("p", row)), "", sent, headers)
            self.etags[table, row] = header(response, "etag") or etag
            outcomes.append((response.status, response.error_code))
        assert outcomes[0] == outcomes[1], (method, row, condition)
        await self.purge()

    async def transact(self, writes: Mapping[str, tuple[str, Entity]]) -> None:
        """Send a batch; it is applied as a whole, or not at all."""
        found = []
        for table in TABLES:
            operations = [
                Operation("POST", table, {"PartitionKey": "p", "RowKey": row, **body_of({**entity})})
                if method == "POST"
                else Operation(method, path_of(table, ("p", row)), body_of({**entity}))
                for row, (method, entity) in writes.items()
            ]
            response = await self.client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
            found.append([part.status for part in parts(response)])
        assert found[0] == found[1]
        await self.purge()

    async def compare(self, filters: Sequence[str]) -> None:
        """Compare all that can be read, and the entries of the indexes with the rows."""
        for text in filters:
            for top in (1, 3):
                assert (await self.pages(EXPIRING, text, top))[0] == (await self.pages(PLAIN, text, top))[0]
        for row in ROWS:
            read = [await self.client("GET", path_of(table, ("p", row))) for table in TABLES]
            assert read[0].status == read[1].status
            if read[0].status == 200:
                entities = [{**json.loads(each.body), "Timestamp": ""} for each in read]
                assert entities[0] == entities[1]
        await self.check()

    async def sweep(self) -> None:
        """Remove what has expired: then both tables have the same rows."""

        async def sleep(_: float) -> None:
            pass

        await ExpirySweep(self.engine, self.clock, lambda: 0.0, sleep).run()
        assert (await self.rows(EXPIRING)).keys() == (await self.rows(PLAIN)).keys()


Change: TypeAlias = Callable[[ExpiringTwins], Awaitable[None]]
ROWS = ["a", "b", "c"]
FILTERS = ["", "N eq 1", "PartitionKey eq 'p' and N gt 0", "Until ge datetime'2026-01-01T00:00:10Z'"]
rows = st.sampled_from(ROWS)
dates = [("Edm.DateTime", f"2026-01-01T00:00:{second}Z") for second in ("05", "35")]
entities = st.fixed_dictionaries(
    {}, optional={"N": st.integers(0, 2), "M": st.just("m"), "Until": st.sampled_from([*dates, 7])}
)
methods = st.sampled_from(["POST", "PUT", "PATCH"])
writes: st.SearchStrategy[Change] = st.one_of(
    st.builds(
        lambda *write: lambda twins: twins.send(*write),
        methods,
        rows,
        entities,
        st.sampled_from(["", "*", "last"]),
    ),
    st.builds(lambda row: lambda twins: twins.send("DELETE", row, {}, "*"), rows),
    st.builds(
        lambda writes: lambda twins: twins.transact(writes),
        st.dictionaries(rows, st.tuples(methods, entities), min_size=1),
    ),
)
changes: st.SearchStrategy[Change] = st.one_of(
    writes,
    writes,
    writes,
    st.builds(lambda tens: lambda twins: twins.advance(tens), st.integers(1, 3)),
    st.just(ExpiringTwins.sweep),
)


async def run(twins: ExpiringTwins, changes: Sequence[Change]) -> None:
    await twins.start()
    for change in changes:
        await change(twins)
    await twins.compare(FILTERS)
    await twins.sweep()
    await twins.compare(FILTERS[:1])
    await twins.engine.close()


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(RULES), st.lists(changes, min_size=3, max_size=14))
def test_an_expired_entity_is_absent_for_every_request(expiry: Expiry, changes: list[Change]) -> None:
    asyncio.run(run(ExpiringTwins(lambda clock: RocksEngine.open(None, clock), expiry), changes))


async def _all(twins: ExpiringTwins) -> None:
    """Have each kind of write meet a row that has expired, and one that has not."""
    over = {"Until": dates[0], "N": 1}
    for method, condition in (
        ("POST", ""),
        ("PUT", ""),
        ("PATCH", ""),
        ("PUT", "*"),
        ("PATCH", "last"),
        ("DELETE", "*"),
    ):
        await twins.send("PUT", "a", over, "")
        await twins.advance(3)
        await twins.send(method, "a", {"M": "m"}, condition)
        await twins.send(method, "b", {"M": "m", "N": 2}, condition)
        await twins.compare(FILTERS)
    await twins.transact({"a": ("PUT", over), "b": ("PUT", over)})
    await twins.advance(3)
    await twins.transact({"a": ("POST", {"N": 2}), "b": ("PATCH", {}), "c": ("POST", over)})


@pytest.mark.parametrize("expiry", RULES)
async def test_databases_do_as_locations_do(expiry: Expiry) -> None:
    settings = PostgresSettings(dsn=empty_database())
    await run(ExpiringTwins(lambda clock: PostgresEngine(settings, clock), expiry), [_all])
    await run(ExpiringTwins(lambda clock: RocksEngine.open(None, clock), expiry), [_all])
