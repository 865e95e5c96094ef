"""The tables of the company, and the classes of their entities."""

from azure.data.tables import TableServiceClient
from azure.storage.blob import ContainerClient

from lazulite_patterns import (
    BlobReference,
    Column,
    Index,
    Listing,
    Table,
    column,
    entity,
    index,
    integer,
    literal,
    partition,
    row,
    unique,
)

TABLES = ("Staff", "StaffByAge", "FormerStaff", "Records", "Claims")
CONTAINER = "company"


@entity(indexes=[Index("name", "last_name", "first_name", within_partition=True)])
class Employee:
    """An employee of a department."""

    department: Column[str] = partition()
    id: Column[int] = row(width=6)
    last_name: Column[str]
    first_name: Column[str]
    email: Column[str] = unique()
    age: Column[int] = index(component=integer(3), table="StaffByAge")
    photo: Column[BlobReference | None] = column(form="json", default=None)


@entity(indexes=[Listing("name", "last_name", place="blob", container=CONTAINER)])
class FormerEmployee:
    """A former employee. A blob for each last name lists them."""

    department: Column[str] = partition()
    id: Column[int] = row(width=6)
    last_name: Column[str]
    first_name: Column[str]

    @classmethod
    def of(cls, employee: Employee) -> "FormerEmployee":
        """Return what is kept of an employee."""
        return cls(employee.department, employee.id, employee.last_name, employee.first_name)


@entity(row=[literal("department")])
class Department:
    """A department at one of its sites."""

    name: Column[str] = partition()
    site: Column[str] = row()
    reviews: Column[int] = column(default=0)


@entity(row=[literal("review")])
class Review:
    """The review of an employee in a year: a compound key."""

    department: Column[str] = partition()
    employee: Column[int] = row(width=6)
    year: Column[int] = row(width=4)
    rating: Column[int]


def staff(service: TableServiceClient) -> Table[Employee]:
    """Return the employees, with indexes of emails, names and ages."""
    return Table.open(service, Employee, table="Staff")


def former_staff(service: TableServiceClient, container: ContainerClient) -> Table[FormerEmployee]:
    """Return the former employees."""
    return Table.open(service, FormerEmployee, table="FormerStaff", clients=[container])


def records(service: TableServiceClient) -> Table[Department | Review]:
    """Return departments and reviews: two classes in one table, so that one transaction has both."""
    return Table.open(service, Department | Review, table="Records")
