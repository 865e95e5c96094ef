"""Classes that the tests of links and copies share: a department has copies of its manager and of its deputy."""

from lazulite_patterns import Column, column, entity, partition, row
from lazulite_patterns.keys import integer, literal, text
from lazulite_patterns.shapes import Copied, Ref


@entity
class Employee:
    site: Column[str] = partition()
    id: Column[int] = row(literal("emp"), integer(4))
    name: Column[str]
    age: Column[int | None] = column(default=None)
    unit: Column[str | None] = column(default=None)


@entity
class Department:
    site: Column[str] = partition()
    name: Column[str] = row(literal("dept"), text())
    manager: Column[int | None] = column(default=None)
    deputy: Column[int | None] = column(default=None)
    manager_name: Column[str | None] = column(default=None)
    manager_age: Column[int | None] = column(default=None)
    deputy_name: Column[str | None] = column(default=None)


manages = Ref(Department, Employee, site="site", id="manager")
deputises = Ref(Department, Employee, site="site", id="deputy")
works_in = Ref(Employee, Department, site="site", name="unit")
COPIED = [
    Copied(manages, manager_name="name", manager_age="age"),
    Copied(deputises, deputy_name="name"),
]
