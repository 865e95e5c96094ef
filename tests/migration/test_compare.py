"""A comparison finds each difference in its part, and equal contents equal on any engine."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.app.registry import SPACES
from lazulite.engine.content.contract import Claim, ContentId
from lazulite.engine.content.memory import ContentMemory
from lazulite.engine.contract import Engine, EngineUnavailableError, KeyRange
from lazulite.engine.key_encoding import encode_key
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.migration.compare import ComparedStore, PartComparison, StoreComparer
from lazulite.migration.progress import Progress
from lazulite.records.spaces import COUNTERS, FIRST_FREE_SPACE, SERVICE_PROPERTIES, TABLES
from lazulite.records.verification import verify
from lazulite.service.properties import ServiceProperties
from lazulite.table.catalog import Table
from lazulite.table.model.row import assemble, encode_keys
from tests.fuzz.memory import MemoryEngine, Run
from tests.migration.stores import NOW, Contents, all_rows, contents, entity, fill, put

SPACE = FIRST_FREE_SPACE


def no_content(content: ContentId, _: Claim) -> int:
    raise AssertionError(content)


async def compared(source: Engine, target: Engine) -> list[PartComparison]:
    comparer = StoreComparer(
        ComparedStore(source, ContentMemory()), ComparedStore(target, ContentMemory()), SPACES, lambda _: None
    )
    return [*[each async for each in comparer.run(None)], comparer.totals()]


def new(found: Contents, make: Callable[[], Engine] = lambda: MemoryEngine(lambda: NOW)) -> Engine:
    engine = make()
    asyncio.run(fill(engine, found))
    return engine


def names(found: list[PartComparison]) -> list[str]:
    return [each.part.name for each in found if not each.equal]


@settings(deadline=None, max_examples=25)
@given(found=contents())
def test_summaries_match_the_rows_on_both_engines(found: Contents) -> None:
    async def check() -> None:
        rocks = RocksEngine.open(None, lambda: NOW)
        memory = MemoryEngine(lambda: NOW)
        try:
            for engine in (rocks, memory):
                await fill(engine, found)
            compared_all = await compared(rocks, memory)
        finally:
            await rocks.close()
        assert names(compared_all) == []
        for comparison in compared_all[:-1]:
            part = comparison.part
            rows = {key: value for key, value in found.get(part.space, {}).items() if not key[1].startswith("!")}
            if part.catalog is not None:
                rows = found[part.space]
            assert comparison.source.rows == len(rows)
            assert comparison.source.size_bytes == sum(
                len(encode_key(part.space, *key)) + len(value) for key, value in rows.items()
            )

    asyncio.run(check())


@settings(deadline=None, max_examples=60)
@given(found=contents(), data=st.data())
def test_changed_missing_and_moved_rows_are_found_in_their_table(found: Contents, data: st.DataObject) -> None:
    tables = [Table.from_bytes(value) for key, value in found[TABLES].items() if not key[1].startswith("!")]
    places = [(table.space, key) for table in tables for key in found[table.space]]
    if not places:
        return
    space, key = data.draw(st.sampled_from(places))
    value = found[space][key]
    at = data.draw(st.integers(0, len(value) - 1))
    flipped = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
    kind = data.draw(st.sampled_from(["changed", "missing", "moved"]))

    async def check() -> None:
        source, target = MemoryEngine(lambda: NOW), MemoryEngine(lambda: NOW)
        await fill(source, found)
        await fill(target, found)
        await put(target, space, *key, flipped if kind == "changed" else None)
        if kind == "moved":
            await put(target, space, key[0] + "'", key[1], value)
        different = names(await compared(source, target))
        (account,) = [
            account for (account, _), row in found[TABLES].items() if row and Table.from_bytes(row).space == space
        ]
        (name,) = [table.name for table in tables if table.space == space]
        assert different == [f"{account}/{name}", "everything"]

    asyncio.run(check())


@pytest.mark.parametrize(
    ("space", "differing"),
    [
        (COUNTERS, ["the counter of tables"]),
        (SERVICE_PROPERTIES, ["the service properties", "everything"]),
        (TABLES, ["the list of tables", "everything"]),
    ],
)
def test_differences_of_the_services_own_rows_are_found(space: int, differing: list[str]) -> None:
    rows = {COUNTERS: {("spaces", "next"): b"1"}, SERVICE_PROPERTIES: {("one", "table"): b"{}"}}
    found: Contents = {**rows, TABLES: {("one", "t"): Table("t", SPACE).to_bytes()}}
    other = {**found, space: dict.fromkeys(found[space], Table("T", SPACE).to_bytes())}
    assert set(differing) <= set(names(asyncio.run(compared(new(found), new(other)))))


def test_a_table_that_only_one_has_is_found() -> None:
    without: Contents = {TABLES: {}}
    having: Contents = {
        TABLES: {("one", "t"): Table("t", SPACE).to_bytes()},
        SPACE: {("p", "r"): entity(NOW)},
    }
    for source, target in ((without, having), (having, without)):
        assert "one/t" in names(asyncio.run(compared(new(source), new(target))))


def test_the_checksum_is_the_one_of_lazulite_check() -> None:
    found: Contents = {
        COUNTERS: {("spaces", "next"): (SPACE + 128).to_bytes(8, "big")},
        SERVICE_PROPERTIES: {("one", "table"): json.dumps(ServiceProperties().to_json()).encode()},
        TABLES: {("one", "t"): Table("t", SPACE).to_bytes(), ("one", "!1025"): b""},
        SPACE: {("p", "r"): assemble(NOW, encode_keys("p", "r"), "")},
    }
    engine = new(found)
    rows = asyncio.run(all_rows(engine))
    raw = sorted((encode_key(space, *key), value) for space, each in rows.items() for key, value in each.items())
    *_, findings = verify(raw, NOW, SPACES, no_content)
    assert findings.problems == []
    assert asyncio.run(compared(engine, engine))[-1].target.checksum == findings.checksum


async def test_progress_is_reported() -> None:
    found: Contents = {
        TABLES: {("one", "t"): Table("t", SPACE).to_bytes()},
        SPACE: {("p", "a"): entity(NOW), ("p", "b"): entity(NOW)},
    }
    engine = MemoryEngine(lambda: NOW)
    await fill(engine, found)
    reported: list[Progress] = []
    async for _ in StoreComparer(
        ComparedStore(engine, ContentMemory()), ComparedStore(engine, ContentMemory()), SPACES, reported.append
    ).run(2):
        pass
    assert reported[-1] == Progress("compared", 2, 2, 1, 1)


class ScannedEngine(MemoryEngine):
    """Counts the slices that were read of tables, and can read only so many."""

    scanned = 0
    slices_max = 10**9

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Run, None]:
        async for piece in super().scan(space, ranges, limit, keys_only=keys_only):
            if space >= SPACE:
                self.scanned += 1
                if self.scanned > self.slices_max:
                    raise EngineUnavailableError("gone")
            yield piece


async def test_failure_of_one_store_cancels_the_other_read() -> None:
    found: Contents = {
        TABLES: {("one", "t"): Table("t", SPACE).to_bytes()},
        SPACE: {("p", f"{number}"): entity(NOW) for number in range(100)},
    }
    source, target = ScannedEngine(lambda: NOW), ScannedEngine(lambda: NOW)
    target.slices_max = 3
    await fill(source, found)
    await fill(target, found)
    with pytest.raises(EngineUnavailableError, match="gone"):
        await compared(source, target)
    assert source.scanned < 10
    assert len(asyncio.all_tasks()) == 1
