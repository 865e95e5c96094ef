"""Entities of any size, on the service."""

import random
from contextlib import suppress

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EntityProperty, TableClient, UpdateMode
from azure.data.tables.aio import TableClient as AsyncTableClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite_patterns import EntityFormatError, EntityValueError
from lazulite_patterns.aio.shapes import Fat as AsyncFat
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Properties
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Absent, Exists
from lazulite_patterns.shapes import Fat, Inconsistent
from lazulite_patterns.shapes.protocols.chunks import Sizes
from lazulite_patterns.shapes.protocols.fat import FatProtocol
from lazulite_patterns.shapes.protocols.rests import INCOMPLETE, UNNAMED, UNREADABLE, collect
from lazulite_patterns_simulation import Crash, Fault, FaultAt, every_fault

from .support import QUICK, counting, driver, empty, later, rows

KEY = EntityKey("p", "jones")
KEYS = {"PartitionKey": "p", "RowKey": "jones"}
SMALL = Sizes(value_bytes=64, row_bytes=64, head_bytes=0, batch_bytes=0)
"""An entity with a text is a head and rows, and each write has several steps."""
KIB = 1024
LENGTHS = [
    0,
    1,
    64 * KIB - 1,
    64 * KIB,
    64 * KIB + 1,
    960 * KIB - 1,
    960 * KIB,
    960 * KIB + 1,
    2880 * KIB,
    20_480 * KIB,
]


def octets(count: int) -> bytes:
    return random.Random(count).randbytes(count)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_value_of_any_length_is_read_as_it_was_written(table_client: TableClient, length: int) -> None:
    fat = Fat(table_client)
    fat.upsert(KEY, {"Photo": octets(length), "Name": "Jones", "Age": 35})
    assert fat.get(KEY) == {**KEYS, "Photo": octets(length), "Name": "Jones", "Age": 35}
    assert table_client.get_entity(*KEY, select=["Name", "Age"]) == {"Name": "Jones", "Age": 35}
    assert len(rows(table_client)) == 1 + (-(-length // (964 * KIB)) if length > 1020 * KIB else 0)
    fat.update(KEY, lambda each: {**each, "Photo": octets(10), "Age": 36})
    assert fat.get(KEY) == {**KEYS, "Photo": octets(10), "Name": "Jones", "Age": 36}
    assert rows(table_client) == ["jones"], "the rows of before are gone"
    assert fat.delete(KEY) is True
    assert fat.delete(KEY) is False
    assert rows(table_client) == []


@pytest.mark.parametrize("length", [0, 32 * KIB, 32 * KIB + 1, 5_000_000])
def test_texts_and_compression(table_client: TableClient, length: int) -> None:
    fat = Fat(table_client, compress=True)
    text = "aé\U0001f600\ud800"[: length or 0] * (length // 4) + "x" * (length % 4)
    fat.insert(KEY, {"Text": text, "Other": "o" * 40_000})
    assert fat.get(KEY) == {**KEYS, "Text": text, "Other": "o" * 40_000}
    assert rows(table_client) == ["jones"], "repetitions are compressed into one row"
    with pytest.raises(Exists):
        fat.insert(KEY, {})
    fat.upsert(KEY, {"Text": "short"})
    assert fat.get(KEY) == {**KEYS, "Text": "short"}
    assert table_client.get_entity(*KEY)["Text"] == "short"


def test_an_entity_over_1_mib_of_properties_that_fit_each(table_client: TableClient) -> None:
    fat = Fat(table_client)
    properties: dict[str, object] = {f"P{number:03d}": octets(10_000 + number) for number in range(250)}
    properties |= {"Kept": "short", "One": 1, "Two": 2}
    fat.upsert(KEY, properties)
    assert fat.get(KEY) == {**KEYS, **properties}
    assert table_client.get_entity(*KEY)["Kept"] == "short"


MAYBE_LARGE = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100),
    st.integers(-(2**31), 2**31 - 1),
    st.booleans(),
    st.just(EntityProperty(2**40, "Edm.Int64")),
)
BAGS = st.dictionaries(st.text("abc", min_size=1, max_size=3), MAYBE_LARGE, max_size=8)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bags=st.lists(BAGS, min_size=1, max_size=3), head=st.sampled_from([0, 1000]), batch=st.sampled_from([0, 10**6]))
def test_any_entity_is_read_as_it_was_written(
    table_client: TableClient, bags: list[dict[str, object]], head: int, batch: int
) -> None:
    protocol = FatProtocol(table_client.table_name, sizes=Sizes(64, 150, head, batch))
    working = driver(table_client)
    for each in bags:
        working.run(protocol.upsert(KEY, each))
        assert working.run(protocol.get(KEY)) == {**KEYS, **each}
    working.run(protocol.delete(KEY))
    assert rows(table_client) == []


def test_bad_input_is_rejected_before_it_is_sent(table_client: TableClient) -> None:
    count = counting()
    fat = Fat(table_client, runtime=Runtime(failpoints=count))
    for wrong, message in (
        ({"_Fat": "x"}, r"p/jones\._Fat"),
        ({"_Fat00": b"x"}, r"p/jones\._Fat00"),
        ({"a b": "x" * 100_000}, r"p/jones\.a b"),
        ({"a-b": 1}, r"p/jones\.a-b"),
        ({f"P{number}": 1 for number in range(252)}, "253 properties, 252 are allowed"),
    ):
        with pytest.raises(EntityValueError, match=message):
            fat.insert(KEY, wrong)
    for key, message in ((EntityKey("a/b", "r"), r"Fat\.PartitionKey"), (EntityKey("p", "x" * 1025), r"Fat\.RowKey")):
        for call in (fat.get, fat.delete, lambda each: fat.insert(each, {}), lambda each: fat.upsert(each, {})):
            with pytest.raises(EntityValueError, match=message):
                call(key)
    assert count.count == 0
    with pytest.raises(Absent):
        fat.update(KEY, lambda each: each)
    with pytest.raises(EntityValueError, match=r"RowKey: 1025 UTF-16 units"):
        fat.insert(EntityKey("p", "r" * 1003), {"Photo": octets(3_000_000)})
    fat.insert(EntityKey("p", "r" * 1002), {"Photo": octets(3_000_000)})
    fat.insert(EntityKey("p", "r" * 1024), {"Photo": octets(300_000)})


KEY_CHARACTERS = st.one_of(st.sampled_from("/\\#?%!' \x00\x1f\x7f\x9f\xa0\uffff"), st.characters(codec="utf-8"))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(row_key=st.text(KEY_CHARACTERS, min_size=1, max_size=2), padding=st.sampled_from([0, 1021, 1022, 1023, 1024]))
def test_a_key_is_taken_if_the_service_takes_it(table_client: TableClient, row_key: str, padding: int) -> None:
    key = EntityKey("p", row_key + "x" * padding)

    def taken(call: object) -> bool:
        try:
            call()  # type: ignore[operator] # it is one of two functions
        except (EntityValueError, HttpResponseError):
            return False
        return True

    by_service = taken(lambda: table_client.upsert_entity({"PartitionKey": key[0], "RowKey": key[1]}))
    assert taken(lambda: Fat(table_client).upsert(key, {})) is by_service


OLD, NEW = ({"Text": letter * 100, "Age": age} for letter, age in (("a", 1), ("b", 2)))


@pytest.mark.parametrize("after", [NEW, None])
@pytest.mark.parametrize("before", [OLD, None])
def test_every_fault_leaves_a_whole_entity_and_collect_the_rest(
    table_client: TableClient, before: Properties | None, after: Properties | None
) -> None:
    """Crashes, lost requests and lost answers at each effect; then the collection, and the next write."""

    def attempt(fault: FaultAt) -> None:
        empty(table_client)
        working, protocol = driver(table_client), FatProtocol(table_client.table_name, QUICK, sizes=SMALL)
        if before is not None:
            working.run(protocol.upsert(KEY, before))
        failing = driver(table_client, fault)
        crashed = False
        try:
            failing.run(protocol.delete(KEY) if after is None else protocol.upsert(KEY, after))
        except Crash:
            crashed = True
        found = working.run(protocol.get(KEY))
        allowed = [each and {**KEYS, **each} for each in ((before, after) if crashed else (after,))]
        assert found in allowed
        left = working.run(collect(table_client.table_name, "p", QUICK))
        began_again = before is None and fault.fault in {Fault.NEVER_SENT, Fault.BUSY}
        assert crashed or left == 0 or (began_again and left == 2), "without a crash nothing is left"
        assert working.run(protocol.get(KEY)) == found
        assert len(rows(table_client)) == (0 if found is None else 1 + 2), "nothing else is left"
        working.run(protocol.upsert(KEY, NEW))
        assert working.run(protocol.get(KEY)) == {**KEYS, **NEW}

    least = 6 if before is None and after is None else 6 * 3
    assert sum(1 for _ in every_fault(attempt)) >= least


def test_a_writer_that_loses_leaves_nothing(table_client: TableClient) -> None:
    working, protocol = driver(table_client), FatProtocol(table_client.table_name, QUICK, sizes=SMALL)
    working.run(protocol.upsert(KEY, OLD))

    other = {"Text": "r" * 70, "Age": 3}

    def rival() -> None:
        working.run(protocol.upsert(KEY, other))

    for number in range(5):
        failing = driver(table_client, FaultAt(number, Fault.RIVAL, rival))
        failing.run(protocol.upsert(KEY, NEW))
        assert working.run(protocol.get(KEY)) == {**KEYS, **(NEW if number < 4 else other)}
        assert len(rows(table_client)) == 1 + 2


def test_rests_are_collected_when_they_are_old_and_no_head_names_them(table_client: TableClient) -> None:
    fat = Fat(table_client)
    fat.upsert(KEY, {"Photo": octets(5_000_000)})
    protocol = FatProtocol(table_client.table_name, sizes=SMALL)
    with suppress(Crash):
        driver(table_client, FaultAt(3, Fault.CRASH_BEFORE)).run(protocol.upsert(EntityKey("p", "smith"), OLD))
    table_client.create_entity({"PartitionKey": "p", "RowKey": "other!0123456789abcdef!0000", "Data": 1})
    count = len(rows(table_client))
    assert count > 8
    assert fat.collect("p") == 0, "they are too young"
    assert Fat(table_client, runtime=Runtime(utc_now=later)).collect("p") == count - 8
    assert fat.get(KEY) == {**KEYS, "Photo": octets(5_000_000)}
    assert "other!0123456789abcdef!0000" in rows(table_client)


def test_the_auditor_finds_what_is_left_and_what_is_absent(table_client: TableClient) -> None:
    fat = Fat(table_client)
    fat.upsert(KEY, {"Photo": octets(5_000_000)})
    assert list(audit(fat)) == []
    _, first, second, *_ = rows(table_client)
    table_client.delete_entity("p", first)
    table_client.create_entity({"PartitionKey": "p", "RowKey": f"smith{second[5:]}", "_Type": "_Fat"})
    table_client.create_entity({"PartitionKey": "p", "RowKey": "wrong", "_Fat": "9"})
    kinds = {each.key.row_key: (each.kind, each.detail) for each in audit(fat, repair=True)}
    assert kinds.pop("wrong")[0] == UNREADABLE
    assert kinds == {"jones": (INCOMPLETE, first), f"smith{second[5:]}": (UNNAMED, "")}
    assert [each.kind for each in audit(fat, repair=True, grace_seconds=-1) if each.repaired] == [UNNAMED]
    assert f"smith{second[5:]}" not in rows(table_client)


def test_damage_is_named(table_client: TableClient) -> None:
    fat = Fat(table_client)
    fat.upsert(KEY, {"Photo": octets(5_000_000)})
    table_client.delete_entity("p", rows(table_client)[2])
    with pytest.raises(Inconsistent, match="jones"):
        fat.get(KEY)
    fat.upsert(KEY, {"Photo": octets(5)})
    assert rows(table_client) == ["jones"], "a new value repairs it"
    for wrong in ("2 - 0 0 x", "1 zlib 3 0 x", "1 - 3 0 x"):
        table_client.upsert_entity({**KEYS, "_Fat": wrong, "_Fat00": b"\x00\x00\x00\x01["}, mode=UpdateMode.REPLACE)
        with pytest.raises(EntityFormatError):
            fat.get(KEY)


@pytest.mark.filterwarnings("ignore:Sending a large body")  # aiohttp, of what the SDK gives it
async def test_asynchronous_programs_have_the_same(connection_string: str, table_client: TableClient) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        fat = AsyncFat(client)
        await fat.insert(KEY, {"Photo": octets(3_000_000)})
        await fat.update(KEY, lambda each: Bag({**each, "Age": 1}))
        assert await fat.get(KEY) == {**KEYS, "Photo": octets(3_000_000), "Age": 1}
        await fat.upsert(KEY, {})
        assert await fat.collect("p") == 0
        assert await fat.delete(KEY) is True
