"""The queries of the design guide on employees."""

from azure.data.tables import TableServiceClient

from company.model import Employee, staff
from lazulite_patterns import EntityKey, NotUnique, QueryError

NAMES = ["Jones", "Smith", "Jonas", "Miller", "Smith"]


def show(service: TableServiceClient) -> None:
    """Insert employees, and ask for them in each way."""
    table = staff(service)
    for department in ("Sales", "IT"):
        for number, last_name in enumerate(NAMES):
            first_name = f"{department}{number}"
            email = f"{first_name}@contoso.com".lower()
            table.insert(Employee(department, 100 + number, last_name, first_name, email, 30 + number))

    found = table.get(EntityKey("Sales", "000101"))
    print("point:", found and found.last_name)
    print("range:", [each.id for each in table.where(Employee.department == "Sales", Employee.id.between(101, 103))])
    print(
        "partition:", [each.id for each in table.where(Employee.department == "Sales", Employee.last_name == "Smith")]
    )
    try:
        table.where(Employee.last_name == "Jones")
    except QueryError:
        everywhere = table.where(Employee.last_name == "Jones", scan=True)
        print("table scan, if wanted:", [(each.department, each.id) for each in everywhere])
    either = [table.where(Employee.department == name, Employee.age > 33) for name in ("Sales", "IT")]
    print("one or the other:", [(each.department, each.id) for each in table.any_of(*either)])
    page = table.where(Employee.department == "IT").page(size=3)
    rest = table.where(Employee.department == "IT").page(size=3, after=page.cursor)
    print("pages:", [each.id for each in page.items], [each.id for each in rest.items])
    print("by email:", [each.id for each in table.by(email="it2@contoso.com")])
    print("by name:", [each.id for each in table.by(Employee.last_name.starts_with("Jon"), department="Sales")])
    print("by age:", [(each.department, each.id) for each in table.by(age=34)])
    try:
        table.insert(Employee("IT", 200, "Twin", "A", "it2@contoso.com", 20))
    except NotUnique:
        print("it2@contoso.com is taken")
