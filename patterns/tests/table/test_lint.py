"""Each warning about keys and queries is given, and only where it is due."""

from datetime import date, datetime
from uuid import UUID

import pytest

from lazulite_patterns import Column, column, columns, entity, partition, row
from lazulite_patterns.keys import bucket, choice, literal, reverse_ticks, text, ticks, uuid, uuid7
from lazulite_patterns.keys import date as day
from lazulite_patterns.table.lint import lint


@entity
class Good:
    city: Column[str] = partition(literal("city"), text())
    number: Column[int] = row(width=6)
    colour: Column[str] = column(default="")


@entity
class ByTime:
    at: Column[datetime] = partition(literal("log"), ticks())
    id: Column[UUID] = row(uuid7())


@entity
class ByTimeLatestFirst:
    at: Column[datetime] = partition(reverse_ticks())
    id: Column[UUID] = row(uuid())


@entity
class ByDay:
    at: Column[date] = partition(day())
    id: Column[str] = row()


@entity
class ByVersion7:
    id: Column[UUID] = partition(uuid7())
    name: Column[str] = row()


@entity
class ById:
    id: Column[UUID] = partition(uuid())
    at: Column[datetime] = row(ticks())


@entity(partition=[bucket(16, by="id")])
class Spread:
    at: Column[datetime] = partition(ticks())
    id: Column[str] = row()


@entity
class One:
    kind: Column[str] = partition(choice("all"))
    id: Column[str] = row()


@pytest.mark.parametrize(
    ("cls", "rules"),
    [
        (Good, []),
        (ByTime, ["append-only"]),
        (ByTimeLatestFirst, ["append-only"]),
        (ByDay, ["append-only"]),
        (ByVersion7, ["append-only"]),
        (ById, []),
        (Spread, []),
        (One, ["one-partition"]),
    ],
)
def test_keys(cls: type, rules: list[str]) -> None:
    assert [each.rule for each in lint(cls)] == rules


def test_texts_that_are_numbers() -> None:
    assert [each.about for each in lint(One, sample=[One("all", "9"), One("all", "10")])][1:] == ["One.id"]
    for sample in ([One("all", "09"), One("all", "10")], [One("all", "9"), One("all", "x")], [One("all", "9")]):
        assert [each.rule for each in lint(One, sample=sample)] == ["one-partition"]
    assert lint(Good, sample=[Good("a", 9), Good("b", 10)]) == [], "an integer is padded"


def test_queries() -> None:
    e = columns(Good)
    found = lint(Good, queries=[[e.city == "Rome"], [e.colour == "red"], [e.number == 3], [e.city >= "R"]])
    assert [(each.rule, each.about) for each in found] == [("scan", "query 1"), ("scan", "query 2")]
