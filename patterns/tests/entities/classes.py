"""Classes of entities that the tests share."""

import enum
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec

from lazulite_patterns.entities import Extra, Flatten, Int32, Json, Name, Partition, Row, Ticks, entity, upgrade
from lazulite_patterns.keys import bucket, integer, literal, text


@dataclass(frozen=True)
class Place:
    street: str
    number: int = 1


@dataclass(frozen=True)
class Address:
    city: str
    place: Annotated[Place, Flatten()] = Place("Main")
    country: str | None = None


@entity(type="Employee", version=3)
class Employee:
    department: Annotated[str, Partition(literal("dept"), text())]
    id: Annotated[int, Row(literal("empid"), integer(6))]
    email: str
    age: Annotated[int, Int32] = 0
    address: Annotated[Address, Flatten()] = Address("Rome")
    notes: Annotated[list[str], Json()] = field(default_factory=list)
    manager: str | None = None


@upgrade(Employee, 1)
def split_mail(properties: dict[str, object]) -> dict[str, object]:
    """Version 1 had a user and a host."""
    return {**properties, "email": f"{properties['user']}@{properties['host']}"}


@upgrade(Employee, 2)
def lower_mail(properties: dict[str, object]) -> dict[str, object]:
    """Version 2 had addresses in any case."""
    return {**properties, "email": str(properties["email"]).lower()}


@entity()
@dataclass
class Department:
    name: Annotated[str, Partition(literal("dept"), text())]
    row: Annotated[str, Row(literal("department"), text())] = ""
    budget: Decimal = Decimal(0)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = 1
    HIGH = 2


@entity(partition=[bucket(4, by="id")])
class Everything(msgspec.Struct, dict=True):
    id: Annotated[str, Row()]
    text: str = ""
    int64: int = 0
    int32: Annotated[int, Int32] = 0
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
    renamed: Annotated[str, Name("Renamed")] = ""
    tree: Annotated[dict[str, list[int]], Json()] = {}


@entity(type="Note")
class Note(TypedDict):
    owner: Annotated[str, Partition()]
    number: Annotated[int, Row(integer(4))]
    title: str
    body: NotRequired[str]


@entity()
@dataclass
class Open:
    owner: Annotated[str, Partition()]
    name: Annotated[str, Row()]
    rest: Annotated[dict[str, object], Extra()] = field(default_factory=dict)
