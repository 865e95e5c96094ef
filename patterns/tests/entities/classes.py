"""Classes of entities that the tests share."""

import enum
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec

from lazulite_patterns import Column, Ticks, column, entity, partition, row, upgrade
from lazulite_patterns.keys import bucket, integer, literal, text


@dataclass(frozen=True)
class Place:
    street: str
    number: int = 1


@dataclass(frozen=True)
class Address:
    city: str
    place: Annotated[Place, column(form="flat")] = Place("Main")
    country: str | None = None


@entity(type="Employee", version=3)
class Employee:
    department: Column[str] = partition(literal("dept"), text())
    id: Column[int] = row(literal("empid"), integer(6))
    email: Column[str]
    age: Column[int] = column(form="int32", default=0)
    address: Column[Address] = column(form="flat", default=Address("Rome"))
    notes: Column[list[str]] = column(form="json", default_factory=list)
    manager: Column[str | None] = column(default=None)


@upgrade(Employee, 1)
def split_mail(properties: dict[str, object]) -> dict[str, object]:
    """Version 1 had a user and a host."""
    return {**properties, "email": f"{properties['user']}@{properties['host']}"}


@upgrade(Employee, 2)
def lower_mail(properties: dict[str, object]) -> dict[str, object]:
    """Version 2 had addresses in any case."""
    return {**properties, "email": str(properties["email"]).lower()}


@entity
class Department:
    name: Column[str] = partition(literal("dept"), text())
    row: Column[str] = row(literal("department"), text(), default="")
    budget: Column[Decimal] = column(default=Decimal(0))


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


@entity(partition=[bucket(4, by="id")])
class Everything(msgspec.Struct, dict=True):
    id: Annotated[str, row()]
    text: str = ""
    int64: int = 0
    int32: Annotated[int, column(form="int32")] = 0
    real: float = 0.0
    flag: bool = False
    octets: bytes = b""
    time: datetime | None = None
    ticks: Ticks | None = None
    uuid: UUID | None = None
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    day: date = date(2000, 1, 1)
    state: Literal["new", "done"] = "new"
    renamed: Annotated[str, column(name="Renamed")] = ""
    tree: Annotated[dict[str, list[int]], column(form="json")] = {}


@entity(type="Note")
class Note(TypedDict):
    owner: Annotated[str, partition()]
    number: Annotated[int, row(width=4)]
    title: str
    body: NotRequired[str]


@entity
class Open:
    owner: Column[str] = partition()
    name: Column[str] = row()
    rest: Column[dict[str, object]] = column(form="extra", default_factory=dict)
