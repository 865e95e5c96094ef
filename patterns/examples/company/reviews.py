"""Reviews with a compound key, in one transaction with their department."""

from azure.data.tables import TableServiceClient

from company.model import Department, Review, records
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.conditions import columns

SITE = EntityKey("Sales", "department!Rome")


def show(service: TableServiceClient) -> None:
    """Write the reviews of some years, and read those of one employee."""
    table = records(service)
    table.insert(Department("Sales", "Rome"))
    for employee in (100, 101):
        for year in (2012, 2013, 2014):
            department = table.get(SITE)
            assert isinstance(department, Department)
            with table.partition() as transaction:
                transaction.insert(Review("Sales", employee, year, rating=year % 5))
                transaction.update(department, reviews=department.reviews + 1)
    r = columns(Review)
    query = table.where(r.department == "Sales", r.employee == 101, r.year >= 2013)
    print("reviews:", [(each.year, each.rating) for each in query if isinstance(each, Review)], query.kind.value)
    print("counted:", table.get(SITE))
