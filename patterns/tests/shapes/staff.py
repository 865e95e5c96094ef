"""Classes that the tests of links and copies share: a department has copies of its manager and of its deputy."""

from dataclasses import dataclass
from typing import Annotated

from lazulite_patterns.entities import Partition, Row, entity
from lazulite_patterns.keys import integer, literal, text
from lazulite_patterns.shapes import Copied, Ref


@entity()
@dataclass(frozen=True)
class Employee:
    site: Annotated[str, Partition()]
    id: Annotated[int, Row(literal("emp"), integer(4))]
    name: str
    age: int | None = None
    unit: str | None = None


@entity()
@dataclass(frozen=True)
class Department:
    site: Annotated[str, Partition()]
    name: Annotated[str, Row(literal("dept"), text())]
    manager: int | None = None
    deputy: int | None = None
    manager_name: str | None = None
    manager_age: int | None = None
    deputy_name: str | None = None


manages = Ref(Department, Employee, site="site", id="manager")
deputises = Ref(Department, Employee, site="site", id="deputy")
works_in = Ref(Employee, Department, site="site", name="unit")
COPIED = [
    Copied(manages, manager_name="name", manager_age="age"),
    Copied(deputises, deputy_name="name"),
]
