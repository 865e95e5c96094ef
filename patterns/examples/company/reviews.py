"""Reviews with a compound key, in one transaction with their department."""

from azure.data.tables import TableServiceClient

from company.model import Department, Review, records
from lazulite_patterns import EntityKey

SITE = EntityKey("Sales", "department!Rome")


def show(service: TableServiceClient) -> None:
    """Write the reviews of some years, and read those of one employee."""
    table = records(service)
    table.insert(Department("Sales", "Rome"))
    for employee in (100, 101):
        for year in (2012, 2013, 2014):
            department = table.get(SITE)
            assert isinstance(department, Department)
            with table.transaction() as transaction:
                transaction.insert(Review("Sales", employee, year, rating=year % 5))
                transaction.update(department, reviews=department.reviews + 1)
    query = table.where(Review.department == "Sales", Review.employee == 101, Review.year >= 2013)
    print("reviews:", [(each.year, each.rating) for each in query if isinstance(each, Review)], query.reads.value)
    print("counted:", table.get(SITE))
