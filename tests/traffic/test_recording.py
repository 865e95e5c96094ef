"""A recording: shapes and numbers, in bounded memory, without keys and values."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.traffic.meter import Resource
from lazulite.traffic.recording import (
    PROPERTIES_MAX,
    SHAPES_MAX,
    SKETCH_MAX,
    TABLES_MAX,
    WINDOW_SECONDS,
    Recording,
    Sketch,
    TableRecord,
    joined,
)

ORDERS = Resource("acct", "table", "orders")
BY_CITY = (("City", "eq"),)


def recorded(*cities: str, secret: bytes = b"secret") -> Recording:
    found = Recording(secret)
    for number, city in enumerate(cities):
        found.note_query(ORDERS, BY_CITY, [("City", city)], float(number), scanned=100, returned=2)
    return found


def test_values_are_counted_without_being_kept() -> None:
    found = recorded("Oslo", "Rome", "Oslo", "Bergen")
    found.note_write(ORDERS, "a-customer", ["a-row", "another-row"], 0)
    record = found.tables[ORDERS]
    assert (record.values["City"].distinct, record.values["City"].busiest) == (3, 0.5)
    (count,) = record.queries.values()
    assert (count.requests, count.scanned, count.returned) == (4, 400, 8)
    text = json.dumps(found.items())
    for value in ("Oslo", "Rome", "Bergen", "a-customer", "a-row", "secret"):
        assert value not in text


def test_hashes_of_two_recordings_have_nothing_in_common() -> None:
    one, other = (recorded("Oslo", secret=secret).items() for secret in (b"one", b"other"))
    assert json.dumps(one) != json.dumps(other)


def test_pages_of_a_query_are_one_request() -> None:
    found = Recording(b"")
    for first in (True, False, False):
        found.note_query(ORDERS, BY_CITY, [("City", "Oslo")], 0, top=10, scanned=10, returned=10, is_first=first)
    (count,) = found.tables[ORDERS].queries.values()
    assert (count.requests, count.continued, count.returned) == (1, 2, 30)


def test_a_peak_is_that_of_the_busiest_window() -> None:
    found = Recording(b"")
    for now in (*range(3), *([WINDOW_SECONDS * 2] * 50), WINDOW_SECONDS * 5):
        found.note_query(ORDERS, BY_CITY, (), float(now))
    (count,) = found.tables[ORDERS].queries.values()
    assert count.peak == 50 / WINDOW_SECONDS


def test_the_order_of_writes() -> None:
    found = Recording(b"")
    for number in range(10):
        found.note_write(ORDERS, f"{number:03}", [f"{9 - number}"], 0)
    record = found.tables[ORDERS]
    assert (record.rises, record.falls, record.row_rises, record.row_falls) == (9, 0, 0, 9)
    assert (record.single.requests, record.batches.requests) == (10, 0)


def test_memory_is_bounded() -> None:
    found = Recording(b"")
    for number in range(SHAPES_MAX * 2):
        found.note_query(ORDERS, ((f"P{number}", "eq"),), [(f"P{number}", 1)], 0)
    for number in range(TABLES_MAX * 2):
        found.note_write(Resource("acct", "table", f"t{number}"), "p", ["r"], 0)
    record = found.tables[ORDERS]
    assert (len(record.queries), len(record.values)) == (SHAPES_MAX, PROPERTIES_MAX)
    assert record.left_out == SHAPES_MAX
    assert len(found.tables) == TABLES_MAX
    assert found.left_out == TABLES_MAX + 1
    assert max(len(json.dumps(item)) for item in found.items()) < 1 << 20, "it fits a line of the channel"


def test_only_one_table_may_be_asked_for() -> None:
    found = Recording(b"", ORDERS)
    found.note_write(Resource("acct", "table", "other"), "p", ["r"], 0)
    assert found.requests == 0


@settings(max_examples=30)
@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=2000), st.integers(0, 2000))
def test_sketches_of_two_processes_are_one(hashes: list[int], cut: int) -> None:
    whole, one, other = Sketch(), Sketch(), Sketch()
    for place, hashed in enumerate(hashes):
        whole.add(hashed)
        (one if place < cut else other).add(hashed)
    one.join(Sketch.of(json.loads(json.dumps(other.as_json()))))
    assert abs(one.distinct - whole.distinct) <= 1e-6 * whole.distinct
    if len(hashes) <= SKETCH_MAX:
        assert one.distinct == len(hashes)


def test_records_of_two_processes_are_one() -> None:
    items = [*recorded("Oslo", "Rome").items(), *recorded("Rome", "Kyiv").items()]
    (record,) = joined(json.loads(json.dumps(items))).values()
    assert isinstance(record, TableRecord)
    assert (record.values["City"].distinct, record.values["City"].busiest) == (3, 0.5)
    assert record.requests == 4
