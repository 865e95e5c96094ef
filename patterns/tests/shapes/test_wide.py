"""Entities of many properties, on the service."""

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite_patterns import EntityValueError
from lazulite_patterns.aio.shapes import Wide as AsyncWide
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Properties
from lazulite_patterns.outcomes import Absent, Exists, Rejected
from lazulite_patterns.shapes import Inconsistent, Wide
from lazulite_patterns.shapes.protocols.wide import Sizes, WideProtocol
from lazulite_patterns.shapes.protocols.wide_check import APART, HEADLESS
from lazulite_patterns_simulation import Crash, Fault, FaultAt, every_fault

from .support import QUICK, counting, driver, empty, rows

KEY = EntityKey("p", "jones")
KEYS = {"PartitionKey": "p", "RowKey": "jones"}
SMALL = Sizes(properties=5, page_rows=1)
"""Two properties in a row, and a request for each row."""


def numbered(count: int, value: object = 1) -> dict[str, object]:
    return {f"P{number:05d}": value for number in range(count)}


@pytest.mark.parametrize(("count", "expected"), [(0, 1), (249, 1), (250, 2), (1000, 5)])
def test_an_entity_of_any_properties_is_read_as_it_was_written(
    table_client: TableClient, count: int, expected: int
) -> None:
    wide = Wide(table_client)
    wide.upsert(KEY, numbered(count))
    assert wide.get(KEY) == {**KEYS, **numbered(count)}
    assert len(rows(table_client)) == expected
    with pytest.raises(Exists):
        wide.insert(KEY, {})
    wide.update(KEY, lambda each: {**each, "Added": "x", "P00000": None})
    assert wide.get(KEY) == {**KEYS, **{name: 1 for name in numbered(count) if name != "P00000"}, "Added": "x"}
    wide.upsert(KEY, {"One": 1})
    assert wide.get(KEY) == {**KEYS, "One": 1}
    assert rows(table_client) == ["jones!00"]
    assert wide.delete(KEY) is True
    assert wide.delete(KEY) is False
    assert wide.get(KEY) is None
    with pytest.raises(Absent):
        wide.update(KEY, lambda each: each)


def test_an_entity_over_1_mib(table_client: TableClient) -> None:
    wide = Wide(table_client)
    properties = {f"P{number:02d}": bytes([number]) * 65_536 for number in range(45)}
    wide.insert(KEY, properties)
    assert wide.get(KEY) == {**KEYS, **properties}
    assert len(rows(table_client)) == 3
    count = counting()
    with pytest.raises(Rejected, match="RequestBodyTooLarge"):
        Wide(table_client, runtime=Runtime(failpoints=count)).upsert(KEY, {**properties, **numbered(6, b"x" * 65_536)})
    assert wide.get(KEY) == {**KEYS, **properties}


VALUES = st.one_of(
    st.integers(-(2**31), 2**31 - 1), st.text("aé\U0001f600", max_size=9), st.booleans(), st.binary(max_size=9)
)
BAGS = st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, max_size=30)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bags=st.lists(BAGS, min_size=1, max_size=3), properties=st.integers(4, 9), row_bytes=st.sampled_from([450, 2**20])
)
def test_any_entity_is_read_as_it_was_written(
    table_client: TableClient, bags: list[dict[str, object]], properties: int, row_bytes: int
) -> None:
    protocol = WideProtocol(table_client.table_name, sizes=Sizes(properties, row_bytes))
    working = driver(table_client)
    for each in bags:
        working.run(protocol.upsert(KEY, each))
        assert working.run(protocol.get(KEY)) == {**KEYS, **each}
    working.run(protocol.delete(KEY))
    assert rows(table_client) == []


def test_neighbours_are_other_entities(table_client: TableClient) -> None:
    wide = Wide(table_client)
    keys = [EntityKey("p", name) for name in ("a", "a!05", "a!0", "a b", "a!", "a!00")]
    for number, key in enumerate(keys):
        wide.upsert(key, numbered(300, number))
    table_client.create_entity({"PartitionKey": "p", "RowKey": "a!0x", "P00000": 99})
    for number, key in enumerate(keys):
        assert wide.get(key) == {"PartitionKey": "p", "RowKey": key.row_key, **numbered(300, number)}
    assert wide.delete(keys[0])
    assert all(wide.get(key) is not None for key in keys[1:])
    assert list(audit(wide)) == []


def test_bad_input_is_rejected_before_it_is_sent(table_client: TableClient) -> None:
    count = counting()
    wide = Wide(table_client, runtime=Runtime(failpoints=count))
    wrong: list[tuple[Properties, str]] = [
        ({"_Ver": "x"}, r"p/jones\._Ver"),
        ({"a b": 1}, r"p/jones\.a b"),
        ({"T": "x" * 32_769}, r"p/jones\.T"),
        (numbered(24_901), "101 rows"),
    ]
    for properties, message in wrong:
        with pytest.raises(EntityValueError, match=message):
            wide.insert(KEY, properties)
    with pytest.raises(EntityValueError, match="RowKey: 1025"):
        wide.get(EntityKey("p", "x" * 1022))
    assert count.count == 0
    wide.insert(KEY, numbered(24_900))
    assert wide.get(KEY) == {**KEYS, **numbered(24_900)}
    wide.upsert(EntityKey("p", "x" * 1021), {})


OLD, NEW = ({f"P{number}": letter for number in range(count)} for letter, count in (("a", 5), ("b", 3)))


@pytest.mark.parametrize("after", [NEW, None])
@pytest.mark.parametrize("before", [OLD, None])
def test_every_fault_leaves_a_whole_entity(
    table_client: TableClient, before: Properties | None, after: Properties | None
) -> None:
    protocol = WideProtocol(table_client.table_name, QUICK, SMALL)
    working = driver(table_client)

    def rival() -> None:
        working.run(protocol.upsert(KEY, {f"R{number}": 1 for number in range(7)}))

    def attempt(fault: FaultAt) -> None:
        empty(table_client)
        if before is not None:
            working.run(protocol.upsert(KEY, before))
        crashed = False
        try:
            failing = driver(table_client, fault)
            failing.run(protocol.delete(KEY) if after is None else protocol.upsert(KEY, after))
        except Crash:
            crashed = True
        found = working.run(protocol.get(KEY))
        if fault.fault is not Fault.RIVAL:
            assert found in [each and {**KEYS, **each} for each in ((before, after) if crashed else (after,))]
        assert len(rows(table_client)) == (0 if found is None else -(-(len(found) - 2) // 2)), "nothing is left"
        assert list(audit(Wide(table_client))) == []

    assert sum(1 for _ in every_fault(attempt, rival)) >= 7


@pytest.mark.parametrize("number", range(4))
def test_a_torn_read_is_read_again(table_client: TableClient, number: int) -> None:
    protocol = WideProtocol(table_client.table_name, QUICK, SMALL)
    working = driver(table_client)
    working.run(protocol.upsert(KEY, OLD))

    def rival() -> None:
        working.run(protocol.upsert(KEY, {**NEW, "P3": "b", "P4": "b"}))

    fault = FaultAt(number, Fault.RIVAL, rival)
    found = driver(table_client, fault).run(protocol.get(KEY))
    assert found is not None
    assert set(found.values()) - {"p", "jones"} == {"a" if number > 2 else "b"}
    assert fault.count == (3 if number in {0, 3} else 6), "the rows were read again"


def test_damage_is_named_and_found(table_client: TableClient) -> None:
    wide = Wide(table_client)
    wide.upsert(KEY, numbered(600))
    table_client.create_entity({"PartitionKey": "p", "RowKey": "smith!01", "_Ver": "x"})
    table_client.delete_entity("p", "jones!01")
    with pytest.raises(Inconsistent, match="jones"):
        wide.get(KEY)
    findings = {each.key.row_key: each.kind for each in audit(wide)}
    assert findings == {"jones!00": APART, "smith!01": HEADLESS}
    wide.upsert(KEY, numbered(10))
    assert [each.repaired for each in audit(wide, repair=True, grace_seconds=-1)] == [True]
    assert rows(table_client) == ["jones!00"]


async def test_asynchronous_programs_have_the_same(connection_string: str, table_client: TableClient) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        wide = AsyncWide(client)
        await wide.insert(KEY, numbered(300))
        await wide.update(KEY, lambda each: {**each, "P00000": 2})
        assert await wide.get(KEY) == {**KEYS, **numbered(300), "P00000": 2}
        await wide.upsert(KEY, {})
        assert await wide.delete(KEY) is True
