"""Queries: what the service must read, pages, cursors, and what is found."""

import base64
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite_patterns import Column, Condition, QueryError, column, columns, entity, partition, row
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Write
from lazulite_patterns.entities import Schemas, schema_of
from lazulite_patterns.entities.conditions import Compared
from lazulite_patterns.filters import in_partition
from lazulite_patterns.keys import bucket, literal, reverse_date, text
from lazulite_patterns.outcomes import Policy
from lazulite_patterns.table import reading
from lazulite_patterns.table.plan import Plan, Reads, plan
from lazulite_patterns.table.table import Table

from ..short_pages import ShortPages


@dataclass(frozen=True)
class Score:
    points: Annotated[int, column(form="int32")] = 0
    judge: str = ""


@entity
class Review:
    country: Column[str] = partition(text(), literal("staff"))
    department: Column[str] = partition()
    employee: Column[int] = row(width=3)
    day: Column[date] = row(reverse_date())
    rating: Column[int] = column(form="int32", name="Rating", default=0)
    score: Column[Score] = column(form="flat", default=Score())


@entity(partition=[bucket(4, by="device")])
class Reading:
    device: Column[str] = row()
    value: Column[float] = column(default=0.0)


VARIABLE = "PATTERNS_CONNECTION_STRING"
E, D = columns(Review), columns(Reading)
BOTH: Schemas[Review | Reading] = Schemas(Review | Reading)
COUNTRIES, DEPARTMENTS, NUMBERS = ["it", "i", "it a"], ["hr", "ops"], [1, 2, 30]
DAYS = [date(2014, 7, 31), date(2014, 8, 1), date(2013, 1, 1)]
REVIEWS = [
    Review(country, department, number, day, number)
    for country in COUNTRIES
    for department in DEPARTMENTS
    for number in NUMBERS
    for day in DAYS
]
Test = Callable[[Review], bool]


class Classes(SansIOHTTPPolicy[Any, Any]):
    """Keeps what the service says of each query; only Lazulite says it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_response(self, request: Any, response: Any) -> None:
        if (found := response.http_response.headers.get("Server-Timing")) is not None:
            self.seen.append(found)


@pytest.fixture(scope="module")
def classes() -> Classes:
    return Classes()


@pytest.fixture(scope="module")
def table(connection_string: str, classes: Classes) -> Iterator[Table[Review]]:
    client = TableClient.from_connection_string(connection_string, "Queries", per_call_policies=[classes])
    client.create_table()
    for place in {schema_of(Review).key(each).partition_key for each in REVIEWS}:
        rows = [schema_of(Review).encode(each) for each in REVIEWS]
        client.submit_transaction([("create", each) for each in rows if each["PartitionKey"] == place])
    yield Table(client, Review)
    client.delete_table()
    client.close()


def key(review: Review) -> list[bytes]:
    return [each.encode("utf-16-be") for each in schema_of(Review).key(review)]


BRANCH = [E.country == "it", E.department == "hr"]
QUERIES: list[tuple[list[Any], Test, Reads]] = [
    (
        [*BRANCH, E.employee == 2, E.day == DAYS[0]],
        lambda each: (each.country, each.department, each.employee, each.day) == ("it", "hr", 2, DAYS[0]),
        Reads.POINT,
    ),
    (
        [*BRANCH, E.employee == 2],
        lambda each: (each.country, each.department, each.employee) == ("it", "hr", 2),
        Reads.ROW_RANGE,
    ),
    (
        [*BRANCH, E.employee.between(2, 30), E.rating > 2],
        lambda each: (each.country, each.department) == ("it", "hr") and each.employee == 30,
        Reads.ROW_RANGE,
    ),
    (BRANCH, lambda each: (each.country, each.department) == ("it", "hr"), Reads.PARTITION_SCAN),
    ([E.country == "it"], lambda each: each.country == "it", Reads.PARTITION_RANGE),
    ([E.country.starts_with("it")], lambda each: each.country in {"it", "it a"}, Reads.PARTITION_RANGE),
    ([E.country > "i"], lambda each: each.country != "i", Reads.PARTITION_RANGE),
    (
        [E.country == "it", E.department >= "i"],
        lambda each: (each.country, each.department) == ("it", "ops"),
        Reads.PARTITION_RANGE,
    ),
]
for _name, _less in (("lt", True), ("le", True), ("gt", False), ("ge", False)):
    QUERIES.append(
        (
            [*BRANCH, E.employee == 2, Compared(Review, "day", _name, DAYS[0])],  # type: ignore[arg-type]
            lambda each, name=_name: (  # type: ignore[misc]
                (each.country, each.department, each.employee) == ("it", "hr", 2)
                and bool(getattr(each.day, f"__{name}__")(DAYS[0]))
            ),
            Reads.ROW_RANGE,
        )
    )


@pytest.mark.parametrize(("conditions", "test", "kind"), QUERIES)
def test_a_query_finds_what_it_says_and_reads_what_its_class_says(
    table: Table[Review], classes: Classes, conditions: list[Any], test: Test, kind: Reads
) -> None:
    query = table.where(*conditions)
    assert query.reads is kind
    classes.seen.clear()
    expected = sorted(filter(test, REVIEWS), key=key)
    assert expected
    assert list(query) == expected
    assert all(f'desc="{kind.value}"' in each for each in classes.seen)
    assert classes.seen or VARIABLE in os.environ, "Lazulite says what it reads"
    assert (query.count(), query.exists()) == (len(expected), True)
    assert query.first(2) == expected[:2]


def test_a_table_scan_is_asked_for(table: Table[Review], classes: Classes) -> None:
    for conditions in ([E.rating == 2], [], [E.rating == 2, E.employee == 2]):
        with pytest.raises(QueryError, match="scan=True"):
            table.where(*conditions)
    query = table.where(E.rating == 2, scan=True)
    assert query.reads is Reads.TABLE_SCAN
    assert set(query) == {each for each in REVIEWS if each.rating == 2}
    classes.seen.clear()
    assert table.where(scan=True).count() == len(REVIEWS)
    assert all('desc="table scan"' in each for each in classes.seen)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([E.country == "it", E.day == DAYS[0]], "Review.day: a part of a key is compared after"),
        ([E.department == "hr"], "Review.department: a part of a key is compared after"),
        ([E.country == "it", E.employee != 2], "within one partition"),
        ([*BRANCH, E.employee == 1000], "1000 is not from 0 to 999"),
        ([*BRANCH, E.rating == "x"], "no int"),
        ([*BRANCH, E.score == Score(1, "a")], "several properties"),
        ([E.country == "it", D.device == "x"], "on one class"),
        ([*BRANCH, E.rating.starts_with("1")], "how it begins"),
    ],
)
def test_wrong_queries_are_rejected(table: Table[Review], conditions: list[Condition], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        table.where(*conditions)


def test_conditions_that_contradict_each_other_find_nothing(table: Table[Review]) -> None:
    """A program's condition on its tenant holds, whatever conditions of a user stand beside it."""
    for conditions in (
        [E.country == "it", E.country == "i"],
        [*BRANCH, E.country == "i"],
        [*BRANCH, E.employee == 2, E.employee == 30],
        [*BRANCH, E.rating == 1, E.rating == 2],
    ):
        assert list(table.where(*conditions)) == []
    assert list(table.where(*BRANCH, *BRANCH)) == list(table.where(*BRANCH)), "the same condition twice"
    query = plan([D.device == "d-17", D.device == "d-18"], BOTH, scan=False)
    assert query.filter is not None
    assert query.filter.text().startswith("PartitionKey ge '' and PartitionKey lt ''")


def test_conditions_have_no_truth_value(table: Table[Review]) -> None:
    for wrong in (
        lambda: (E.country == "it") and (E.rating == 1),
        lambda: (E.country == "it") or (E.rating == 1),
        lambda: not E.country.starts_with("it"),
        lambda: 1 < E.rating < 3,
    ):
        with pytest.raises(TypeError, match="is not true or false"):
            wrong()
    with pytest.raises(TypeError, match="combined by"):
        _ = in_partition("a") and in_partition("b")


def test_columns_are_the_fields() -> None:
    with pytest.raises(AttributeError, match="Review has no column age"):
        _ = E.age
    assert Plan(None, Reads.TABLE_SCAN).select == ()


def test_a_bucket_is_computed_from_the_field_that_is_known() -> None:
    query = plan([D.device == "d-17"], BOTH, scan=False)
    assert query.reads is Reads.POINT
    assert query.filter is not None
    assert query.filter.text() == "PartitionKey eq '2' and RowKey eq 'd-17' and _Type eq 'Reading'"


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_pages_have_their_size_and_cursors_survive(table: Table[Review], size: int) -> None:
    expected = sorted((each for each in REVIEWS if each.country == "it"), key=key)
    found: list[Review] = []
    cursor: str | None = None
    while True:
        # Another table object, as after a restart.
        page = Table(table.client, Review).where(E.country == "it").page(size, cursor)
        found += page.items
        if (cursor := page.cursor) is None:
            break
        assert len(page.items) == size
    assert found == expected


def test_wrong_cursors_are_rejected(table: Table[Review]) -> None:
    cursor = table.where(E.country == "it").page(1).cursor
    assert cursor is not None
    with pytest.raises(QueryError, match="another query"):
        table.where(E.country == "i").page(1, cursor)
    mark = json.loads(base64.urlsafe_b64decode(cursor))[0]
    surrogate = base64.urlsafe_b64encode(json.dumps([mark, "\ud800", ""]).encode()).decode()
    deep, long = base64.urlsafe_b64encode(b"[" * 10_000).decode(), "A" * 100_000
    for wrong in ("", "x", "bm8=", "e30=", surrogate, deep, long):
        with pytest.raises(QueryError, match="cursor"):
            table.where(E.country == "it").page(1, wrong)


def test_a_page_has_an_entity_at_least(table: Table[Review]) -> None:
    query = table.where(E.country == "it")
    for size in (0, -1):
        with pytest.raises(QueryError, match="1 entity at least"):
            query.page(size)
    assert query.first(0) == []


def test_or_is_the_sorted_union(table: Table[Review]) -> None:
    queries = (table.where(E.country == "it"), table.where(*BRANCH), table.where(E.country == "i"))
    assert table.any_of(*queries) == sorted((each for each in REVIEWS if each.country in {"it", "i"}), key=key)


def test_many_keys_and_partitions(table: Table[Review]) -> None:
    absent = EntityKey("no", "no")
    assert table.get_many([REVIEWS[7], absent, REVIEWS[0]], workers=3) == [REVIEWS[7], None, REVIEWS[0]]
    partitions = list(table.partitions())
    assert sorted(set(partitions)) == sorted({schema_of(Review).key(each).partition_key for each in REVIEWS})
    assert len(partitions) == len(set(partitions))


def test_some_properties(table: Table[Review]) -> None:
    found = list(table.where(*BRANCH, E.employee == 2, E.day == DAYS[0]).properties("Rating"))
    assert [each["Rating"] for each in found] == [2]


async def test_asynchronous_queries(table: Table[Review], connection_string: str) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, "Queries") as client:
        many = AsyncTable(client, Review)
        query = many.where(*BRANCH)
        expected = list(table.where(*BRANCH))
        assert [each async for each in query] == expected
        page = await query.page(2)
        assert page == table.where(*BRANCH).page(2)
        assert (await query.page(2, page.cursor)).items == expected[2:4]
        assert (await query.first(1), await query.count(), await query.exists()) == (expected[:1], len(expected), True)
        assert await many.any_of(query, many.where(*BRANCH)) == expected
        assert await many.get_many([REVIEWS[3]]) == [REVIEWS[3]]
        assert [each async for each in many.partitions()] == list(table.partitions())
        assert len([each async for each in query.properties("Rating")]) == len(expected)


@given(
    st.lists(st.integers(0, 30), max_size=8),
    st.integers(1, 4),
    st.integers(0, 30),
    st.lists(st.integers(0, 3), max_size=4),
)
@example([1, 2, 3, 4, 5, 6], 3, 0, [0, 1, 2])
def test_empty_and_short_pages_of_the_service(numbers: list[int], size: int, least: int, sizes: list[int]) -> None:
    simulation = ShortPages(sizes)
    schemas = Schemas(Reading)
    for number in numbers:
        reading_ = Reading(f"d{number:02d}", float(number))
        properties = schemas.of(reading_).encode(reading_)
        place = schema_of(Reading).key(reading_)
        simulation.perform(Write("t", Operation(Kind.PUT, place, properties)))
    query = plan([D.device >= f"d{least:02d}"], schemas, scan=True)
    found: list[str] = []
    continuation = None
    while True:
        page = simulation.run(reading.first("t", query, Policy(), size, continuation))
        found += [each.key.row_key for each in page.entities]
        if (continuation := page.continuation) is None:
            break
        assert len(page.entities) == size
    expected = sorted({f"d{number:02d}" for number in numbers if number >= least})
    assert sorted(found) == expected
    assert simulation.run(reading.count("t", query, Policy())) == len(expected)
    assert [each.key.row_key for each in simulation.run(reading.everything("t", query, Policy()))] == found
