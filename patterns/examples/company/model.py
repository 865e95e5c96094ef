"""The tables of the company, and the classes of their entities."""

from dataclasses import dataclass
from typing import Annotated

from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import ContainerClient

from lazulite_patterns.entities import Json, Partition, Row, entity
from lazulite_patterns.indexes import Index, Listing
from lazulite_patterns.keys import integer, literal
from lazulite_patterns.shapes import BlobReference
from lazulite_patterns.table.table import Table

TABLES = ("Staff", "StaffByAge", "FormerStaff", "Records", "Claims")
CONTAINER = "company"


@entity()
@dataclass(frozen=True)
class Employee:
    """An employee of a department."""

    department: Annotated[str, Partition()]
    id: Annotated[int, Row(integer(6))]
    last_name: str
    first_name: str
    email: str
    age: int
    photo: Annotated[BlobReference | None, Json()] = None


@entity(row=[literal("department")])
@dataclass(frozen=True)
class Department:
    """A department at one of its sites."""

    name: Annotated[str, Partition()]
    site: Annotated[str, Row()]
    reviews: int = 0


@entity(row=[literal("review")])
@dataclass(frozen=True)
class Review:
    """The review of an employee in a year: a compound key."""

    department: Annotated[str, Partition()]
    employee: Annotated[int, Row(integer(6))]
    year: Annotated[int, Row(integer(4))]
    rating: int


def client(service: TableServiceClient, name: str) -> TableClient:
    """Return the client of a table."""
    return service.get_table_client(name)


def staff(service: TableServiceClient) -> Table[Employee]:
    """Return the employees, with indexes of emails, names and ages."""
    indexes = [
        Index("email", "email", unique=True),
        Index("name", "last_name", "first_name", within_partition=True),
        Index("age", ("age", integer(3)), table="StaffByAge"),
    ]
    return Table(client(service, "Staff"), Employee, indexes=indexes, clients=[client(service, "StaffByAge")])


def former_staff(service: TableServiceClient, container: ContainerClient) -> Table[Employee]:
    """Return the former employees. A blob for each last name lists them."""
    names = Listing("name", "last_name", place="blob", container=CONTAINER)
    return Table(client(service, "FormerStaff"), Employee, indexes=[names], clients=[container])


def records(service: TableServiceClient) -> Table[Department | Review]:
    """Return departments and reviews: two classes in one table, so that one transaction has both."""
    return Table(client(service, "Records"), Department | Review)
