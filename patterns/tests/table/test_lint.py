"""Each warning about keys and queries is given, and only where it is due."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated
from uuid import UUID

import pytest

from lazulite_patterns.entities import Partition, Row, entity
from lazulite_patterns.entities.conditions import columns
from lazulite_patterns.keys import bucket, choice, integer, literal, reverse_ticks, text, ticks, uuid, uuid7
from lazulite_patterns.keys import date as day
from lazulite_patterns.table.lint import lint


@entity()
@dataclass(frozen=True)
class Good:
    city: Annotated[str, Partition(literal("city"), text())]
    number: Annotated[int, Row(integer(6))]
    colour: str = ""


@entity()
@dataclass(frozen=True)
class ByTime:
    at: Annotated[datetime, Partition(literal("log"), ticks())]
    id: Annotated[UUID, Row(uuid7())]


@entity()
@dataclass(frozen=True)
class ByTimeLatestFirst:
    at: Annotated[datetime, Partition(reverse_ticks())]
    id: Annotated[UUID, Row(uuid())]


@entity()
@dataclass(frozen=True)
class ByDay:
    at: Annotated[date, Partition(day())]
    id: Annotated[str, Row()]


@entity()
@dataclass(frozen=True)
class ByVersion7:
    id: Annotated[UUID, Partition(uuid7())]
    name: Annotated[str, Row()]


@entity()
@dataclass(frozen=True)
class ById:
    id: Annotated[UUID, Partition(uuid())]
    at: Annotated[datetime, Row(ticks())]


@entity(partition=[bucket(16, by="id")])
@dataclass(frozen=True)
class Spread:
    at: Annotated[datetime, Partition(ticks())]
    id: Annotated[str, Row()]


@entity()
@dataclass(frozen=True)
class One:
    kind: Annotated[str, Partition(choice("all"))]
    id: Annotated[str, Row()]


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
