"""Conditions that are joined find what Python finds: in the filter of each tree of them, and on the service."""

import operator
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from hypothesis import assume, given
from hypothesis import strategies as st

from lazulite_patterns import (
    Bag,
    Column,
    Condition,
    EntityFormatError,
    EntityValueError,
    NotOne,
    QueryError,
    Reads,
    Table,
    column,
    columns,
    entity,
    index,
    literal,
    partition,
    row,
)
from lazulite_patterns.aio import Table as AsyncTable
from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.entities import Schemas, schema_of
from lazulite_patterns.entities.bags import Bags
from lazulite_patterns.entities.conditions import Compared, Joined
from lazulite_patterns.keys.characters import utf16_order
from lazulite_patterns.table.plan import plan


@entity
class Review:
    country: Column[str] = partition(literal("in"))
    employee: Column[int] = row(width=2)
    year: Column[str] = row()
    rating: Column[int] = column(form="int32", default=0)
    note: Column[str | None] = column(default=None)


@entity
class Praise(Review):
    stars: Column[int] = column(default=5)


COUNTRIES, EMPLOYEES, YEARS, RATINGS, NOTES = (
    ["it", "i", "it a"],
    [1, 2, 30],
    ["a", "a/b", "ab"],
    [1, 2],
    [None, "x", "y"],
)
REVIEWS = [
    Review(country, employee, year, (employee + len(year)) % 3, NOTES[len(country + year) % 3])
    for country in COUNTRIES
    for employee in EMPLOYEES
    for year in YEARS
]
ROWS = [schema_of(Review).encode(each) for each in REVIEWS]
VALUES: dict[str, list[Any]] = {
    "country": COUNTRIES,
    "employee": EMPLOYEES,
    "year": YEARS,
    "rating": RATINGS,
    "note": ["x", "y"],
}
TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "starts with": lambda one, other: one.startswith(other),
}


def holds(condition: Condition, get: Callable[[str], Any]) -> bool:
    """Evaluate a condition in Python. What is absent fulfils no comparison."""
    if isinstance(condition, Joined):
        return (all if condition.word == "and" else any)(holds(each, get) for each in condition.parts)
    assert isinstance(condition, Compared)
    found, value = get(condition.field), condition.value
    if found is None:
        return False
    if isinstance(found, str) and condition.operator != "starts with":
        found, value = utf16_order(found), utf16_order(str(value))
    return TESTS[condition.operator](found, value)


COMPARED = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.builds(
        Compared, st.just(Review), st.just(name), st.sampled_from(sorted(TESTS)[:6]), st.sampled_from(VALUES[name])
    )
)
TREES: st.SearchStrategy[Condition] = st.recursive(
    COMPARED,
    lambda inner: st.one_of(
        st.builds(operator.or_, inner, inner), st.builds(operator.and_, inner, inner), st.builds(operator.inv, inner)
    ),
    max_leaves=5,
)


@given(st.sampled_from(COUNTRIES), st.lists(TREES, min_size=1, max_size=3))
def test_a_tree_finds_what_python_finds(country: str, trees: list[Condition]) -> None:
    conditions = [Review.country == country, *trees]
    try:
        query = plan(conditions, Schemas(Review), scan=False)
    except QueryError:  # A part of a key is compared, and not the one before it.
        assume(False)
    expected = [all(holds(one, partial(getattr, each)) for one in conditions) for each in REVIEWS]
    assert query.filter is not None
    assert [query.filter.matches(each) for each in ROWS] == expected
    assert query.reads is not Reads.TABLE_SCAN


RAW = [Bag(PartitionKey=p, RowKey=r, N=n) for p in ("a", "a%") for r in ("", "1", "1 ", "1!", "2") for n in (1, 2)]
BAG_VALUES: dict[str, list[Any]] = {"PartitionKey": ["a", "a%"], "RowKey": ["", "1", "1 ", "2"], "N": [1, 2], "M": [1]}
BAG_COMPARED = st.sampled_from(sorted(BAG_VALUES)).flatmap(
    lambda name: st.builds(
        Compared, st.just(Bag), st.just(name), st.sampled_from(sorted(TESTS)[:6]), st.sampled_from(BAG_VALUES[name])
    )
)
BAG_TREES: st.SearchStrategy[Condition] = st.recursive(
    BAG_COMPARED,
    lambda inner: st.one_of(st.builds(operator.or_, inner, inner), st.builds(operator.inv, inner)),
    max_leaves=4,
)


@given(st.lists(BAG_TREES, min_size=1, max_size=3))
def test_bags_are_found_by_their_keys_and_properties(trees: list[Condition]) -> None:
    query = plan(trees, Bags(), scan=True)
    expected = [all(holds(one, each.get) for one in trees) for each in RAW]
    assert [query.filter is None or query.filter.matches(each) for each in RAW] == expected


@pytest.fixture
def reviews(table_client: TableClient) -> Table[Review]:
    table = Table(table_client, Review)
    for each in REVIEWS:
        table.upsert(each)
    return table


def test_joined_conditions_on_the_service(reviews: Table[Review]) -> None:
    here = Review.country == "it"

    def found(*conditions: Condition) -> list[tuple[int, str]]:
        return [(each.employee, each.year) for each in reviews.where(here, *conditions)]

    both = (Review.employee == 1) & (Review.year == "a/b")
    assert found(both | (Review.employee == 30)) == [(1, "a/b"), (30, "a"), (30, "a/b"), (30, "ab")]
    assert reviews.where(here, both | (Review.employee == 2)).reads is Reads.ROW_RANGE
    assert [each for each, _ in found(Review.employee.in_([30, 1, 7]))] == [1, 1, 1, 30, 30, 30]
    assert found(Review.employee.in_([])) == []
    assert reviews.where(Review.employee.in_([]), scan=True).count() == 0
    assert {each for each, _ in found(~Review.employee.between(2, 29))} == {1, 30}
    assert {each for each, _ in found(Review.employee != 2)} == {1, 30}
    absent = {(each.employee, each.year) for each in REVIEWS if each.country == "it" and each.note is None}
    assert absent
    assert set(found((Review.note == "x") | ~(Review.note == "x"))).isdisjoint(absent), "a row without it is in neither"
    wrongs: list[Callable[[], object]] = [
        lambda: reviews.where((Review.country == "it") | (Review.country == "i")),
        lambda: reviews.where(here, ~Review.country.starts_with("i")),
        lambda: reviews.where(here, (Review.note == "x") | Review.note.starts_with("x")),
        lambda: reviews.where(Praise.stars == 3, scan=True),
    ]
    for wrong in wrongs:
        with pytest.raises(QueryError):
            wrong()
    assert reviews.where((Review.country == "it") | (Review.country == "i"), scan=True).count() == 18


def test_a_query_of_a_class_finds_its_subclasses(table_client: TableClient) -> None:
    @entity
    class Other:
        country: Column[str] = partition(literal("in"))
        kind: Column[str] = row(literal("other"))

    table: Table[Review | Praise | Other] = Table.open(table_client, Review | Praise | Other)
    table.insert(Review("it", 1, "a"))
    table.insert(Praise("it", 2, "a", stars=3))
    table.insert(Other("it", "x"))
    assert [type(each) for each in table.where(Review.country == "it")] == [Review, Praise]
    assert [type(each) for each in table.where(Praise.country == "it")] == [Praise]
    assert [
        each.employee for each in table.where(Review.country == "it", Praise.stars > 1) if isinstance(each, Review)
    ] == [2]
    assert table.where(Other.country == "it").count() == 1
    assert table.where(scan=True).count() == 3
    with pytest.raises(QueryError, match="on one class"):
        table.where(Review.country == "it", Other.kind == "x")
    praise = Praise("it", 2, "a")
    table.merge(praise, stars=4)
    table.merge(schema_of(Praise).key(praise), rating=7)
    assert table.where(Praise.country == "it").one() == replace(praise, stars=4, rating=7)
    with pytest.raises(EntityValueError):
        table.merge(schema_of(Praise).key(praise), stars=4)


@entity
class Later(Review):
    """A class whose key is another one than that of the class that it derives from."""

    part: Column[str] = row(default="z")


def test_classes_with_other_keys_are_asked_one_by_one(table_client: TableClient) -> None:
    table: Table[Review | Later] = Table.open(table_client, Review | Later)
    with pytest.raises(QueryError, match="ask each class"):
        table.where(Review.country == "it", Review.employee == 1, Review.year == "a")
    table.insert(Later("it", 1, "a"))
    assert table.where(Later.country == "it", Later.year == "a", Later.employee == 1).count() == 1


def test_bags_on_the_service(table_client: TableClient) -> None:
    bags, bag = Table.open(table_client, Bag), columns(Bag)
    for each in ("1", "2", "3"):
        bags.insert(Bag(PartitionKey="p%", RowKey=each, Price=int(each), At=datetime(2014, 7, int(each), tzinfo=UTC)))
    assert [each["RowKey"] for each in bags.where(bag.PartitionKey == "p%", bag.Price >= 2)] == ["2", "3"]
    assert bags.where(bag.PartitionKey == "p%", bag.RowKey == "2").reads is Reads.POINT
    assert bags.where(bag.PartitionKey.starts_with("p"), bag.At == datetime(2014, 7, 2, tzinfo=UTC)).one()["Price"] == 2
    assert bags.where(bag.PartitionKey == "p%", bag.PartitionKey == "q").count() == 0
    assert bags.where(bag.PartitionKey == "p%", bag.RowKey > "1", bag.RowKey < "3").one()["RowKey"] == "2"
    assert bags.where(Review.country == "it").count() == 0, "a class may ask for rows that are its own"
    wrongs: list[Callable[[], object]] = [
        lambda: bags.where(bag.Price == 1),
        lambda: bags.where(bag.PartitionKey == "p%", bag.Price == object()),
        lambda: bags.where(bag.PartitionKey == 7),
        lambda: bags.where(bag.PartitionKey == "p%", getattr(bag, "no name") == 1),
    ]
    for wrong in wrongs:
        with pytest.raises(QueryError):
            wrong()


@entity
class Tagged:
    team: Column[str] = partition()
    id: Column[int] = row(width=2)
    tag: Column[str] = index()
    points: Column[int] = column(default=0)


def test_rows_that_no_class_can_read_are_left_to_the_program(table_client: TableClient) -> None:
    seen: list[tuple[Stored, EntityFormatError]] = []
    table = Table.open(table_client, Tagged, on_error=lambda each, error: seen.append((each, error)))
    for number in range(3):
        table.insert(Tagged("red", number, "t"))
    table_client.update_entity({"PartitionKey": "red", "RowKey": "01", "points": "none"})
    table_client.create_entity({"PartitionKey": "red", "RowKey": "foreign"})
    query = table.where(Tagged.team == "red")
    assert [each.id for each in query] == [each.id for each in query.page(9).items] == [0, 2]
    assert [each.id for each in table.scan()] == [each.id for each in table.any_of(query)] == [0, 2]
    assert sorted(each.id for each in table.by(tag="t")) == [0, 2]
    assert {each.key.row_key for each, _ in seen} == {"01", "foreign"}
    assert query.count() == 4, "keys alone are read"
    plain = Table(table_client, Tagged)
    for wrong in (lambda: list(plain.where(Tagged.team == "red")), lambda: table.get(Tagged("red", 1, ""))):
        with pytest.raises(EntityFormatError):
            wrong()


async def test_a_page_is_filled_after_unreadable_rows_are_dropped(
    connection_string: str, table_client: TableClient
) -> None:
    for number, text in enumerate("abcdef"):
        points = "none" if text in "abe" else 0
        table_client.create_entity({"PartitionKey": "red", "RowKey": f"{number:02}", "tag": text, "points": points})
    expected = [["c", "d"], ["f"]]
    dropped: list[str] = []

    def drop(each: Stored, error: EntityFormatError) -> None:
        dropped.append(str(each.properties["tag"]))

    query = Table(table_client, Tagged, on_error=drop).where(Tagged.team == "red")
    assert [each.tag for each in query.first(1)] == ["c"]
    assert [each.tag for each in query.first(9)] == ["c", "d", "f"]
    dropped.clear()
    first = query.page(2)
    second = query.page(2, first.cursor)
    assert [[each.tag for each in page.items] for page in (first, second)] == expected
    assert second.cursor is None
    assert dropped == ["a", "b", "e"], "each once"
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        later = AsyncTable(client, Tagged, on_error=drop).where(Tagged.team == "red")
        assert [each.tag for each in await later.first(1)] == ["c"]
        page = await later.page(2)
        assert [[each.tag for each in one.items] for one in (page, await later.page(2, page.cursor))] == expected


def test_one_is_the_only_one(table_client: TableClient) -> None:
    table = Table.open(table_client, Tagged)
    for number in range(2):
        table.insert(Tagged("red", number, "t"))
    only = table.where(Tagged.team == "red", Tagged.id == 1)
    assert only.one() == only.one_or_none() == Tagged("red", 1, "t")
    assert table.where(Tagged.team == "blue").one_or_none() is table.by(tag="u").one_or_none() is None
    with pytest.raises(NotOne, match="several"):
        table.by(tag="t").one_or_none()
    for query, message in (
        (table.where(Tagged.team == "red"), "several"),
        (table.where(Tagged.team == "blue"), "no entity"),
        (table.by(tag="t"), "several"),
        (table.by(tag="u"), "no entity"),
    ):
        with pytest.raises(NotOne, match=message):
            query.one()
    other = Review.note == "t"
    wrongs: list[Callable[[], object]] = [
        lambda: table.by(other),
        lambda: table.by(Tagged.tag > "t"),
        lambda: table.by(tag="t", team="red"),
    ]
    for wrong in wrongs:
        with pytest.raises(QueryError):
            wrong()
    assert table.by(Tagged.tag == "t", index="tag").count() == 2
    found = table.by(tag="t")
    assert [len(found.first(count)) for count in (0, 1, 9)] == [0, 1, 2]
    assert (found.count(), found.exists(), table.by(tag="u").exists()) == (2, True, False)


def test_insert_or_merge_keeps_what_is_not_given(table_client: TableClient) -> None:
    @entity
    class Member:
        team: Column[str] = partition()
        id: Column[int] = row(width=2)
        email: Column[str | None] = index(default=None)
        phone: Column[str | None] = column(default=None)

    table = Table.open(table_client, Member)
    table.insert_or_merge(Member("red", 1, "ann@contoso.com"))
    table.insert_or_merge(Member("red", 1, phone="7"))
    assert table.by(email="ann@contoso.com").one() == Member("red", 1, "ann@contoso.com", "7")
    table.insert_or_merge(Member("red", 1, "sue@contoso.com"))
    assert table.by(email="sue@contoso.com").one().phone == "7"
    assert not table.by(email="ann@contoso.com").exists()
    with table.transaction() as transaction:
        transaction.insert_or_merge(Member("red", 1, phone="8"))
        transaction.upsert(Member("red", 2, "bob@contoso.com"))
    assert [each.phone for each in table.where(Member.team == "red")] == ["8", None]


async def test_asynchronous_programs_have_the_same(connection_string: str, table_client: TableClient) -> None:
    async with await AsyncTable.open(connection_string, Tagged, table=table_client.table_name) as table:
        await table.insert_or_merge(Tagged("red", 1, "t"))
        here = Tagged.team == "red"
        assert [each.id async for each in table.where(here, Tagged.id.in_([1, 2]) | (Tagged.points > 3))] == [1]
        assert (await table.by(tag="t").one()).id == 1
        assert await table.by(tag="t").first(3) == [Tagged("red", 1, "t")]
        assert await table.by(tag="t").exists()
