"""A scan by ranges yields each entity, and goes on after a crash."""

from collections.abc import Callable

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Write
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.keys.characters import utf16_order
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.table.ranges import Range, Ranges
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation import Fault, FaultAt, Simulation

RANGES = Ranges("t", Policy(), workers=3)
KEYS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x1FFFF, exclude_categories=["Cs", "Cc"]), max_size=6)


def filled(keys: list[str], rows: int = 1) -> Simulation:
    simulation = Simulation()
    for key in keys:
        for row in range(rows):
            place = EntityKey(key, f"{row:04d}")
            simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.PUT, place)))
    return simulation


def read(simulation: Simulation, ranges: tuple[Range, ...]) -> list[EntityKey]:
    found: list[EntityKey] = []
    while ranges:
        entities, ranges = simulation.run(RANGES.round(ranges))
        found += [each.key for each in entities]
    return found


@given(st.lists(KEYS, max_size=12), st.integers(1, 8))
def test_ranges_have_each_entity_once(keys: list[str], count: int) -> None:
    simulation = filled(keys)
    ranges = simulation.run(RANGES.divided(count))
    assert len(ranges) <= min(count, len(set(keys)))
    assert sorted(read(simulation, ranges)) == [EntityKey(key, "0000") for key in sorted(set(keys))]
    lowers = [utf16_order(each.lower or "") for each in ranges]
    assert lowers == sorted(set(lowers))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        (lambda n: f"{n:04d}", 16),
        (lambda n: f"customer!{n:06d}", 16),
        (lambda n: f"{n * 0x9E3779B1 % 2**32:08x}", 16),
        (lambda n: chr(0x4E00 + n), 16),
        (lambda n: f"{'abcdefghij'[n % 10]}@contoso.com/{n}", 10),
    ],
)
def test_ranges_are_alike_for_usual_keys(name: Callable[[int], str], least: int) -> None:
    keys = [name(n) for n in range(640)]
    simulation = filled(keys)
    counting = FaultAt(-1, Fault.BUSY)
    simulation.runtime.failpoints = counting
    ranges = simulation.run(RANGES.divided(16))
    assert least <= len(ranges) <= 16
    assert counting.count <= 2 + 32 + 8 * 16
    sizes = [len(read(simulation, (each,))) for each in ranges]
    assert sum(sizes) == 640
    assert max(sizes) <= 640 / 3, sizes


def test_an_empty_table_has_no_range() -> None:
    assert Simulation().run(RANGES.divided(4)) == ()


class Kept:
    text: str | None = None

    def load(self) -> str | None:
        return self.text

    def save(self, text: str | None) -> None:
        self.text = text


@pytest.fixture
def bags(table_client: TableClient) -> Table[Bag]:
    for partition in range(6):
        rows = [{"PartitionKey": f"p{partition}", "RowKey": f"{row:03d}"} for row in range(7)]
        table_client.submit_transaction([("create", each) for each in rows])
    return Table(table_client, Bag)


EVERY = {(f"p{partition}", f"{row:03d}") for partition in range(6) for row in range(7)}


def test_a_scan_goes_on_after_a_crash(bags: Table[Bag]) -> None:
    kept = Kept()
    seen: list[tuple[object, object]] = []
    for each in bags.scan(split=4, checkpoint=kept, workers=1):
        seen.append((each["PartitionKey"], each["RowKey"]))
        if len(seen) == 20:
            break
    again = Table(bags.client, Bag).scan(split=1, checkpoint=kept, workers=2)
    later = [(each["PartitionKey"], each["RowKey"]) for each in again]
    assert set(seen) | set(later) == EVERY
    assert len(later) < len(EVERY), "what was read before is not read again"
    assert kept.text is None
    assert {(each["PartitionKey"], each["RowKey"]) for each in bags.scan()} == EVERY
    kept.text = RANGES.text([Range()])
    with pytest.raises(ValueError, match="checkpoint of t"):
        list(bags.scan(checkpoint=kept))


async def test_asynchronous_programs_scan_too(bags: Table[Bag], connection_string: str) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, bags.client.table_name) as client:
        found = [(each["PartitionKey"], each["RowKey"]) async for each in AsyncTable(client, Bag).scan(split=3)]
    assert len(found) == len(EVERY)
    assert set(found) == EVERY
