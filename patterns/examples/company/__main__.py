"""Run each part of the example, and audit everything at the end.

    cd patterns/examples
    STORAGE_CONNECTION_STRING=… python -m company

It creates tables and a queue, which must be absent, and deletes them.
"""

import os

from azure.data.tables import TableServiceClient
from azure.storage.queue import QueueClient

from company import archive, claims, employees, logins, reviews
from company.model import TABLES, former_staff, records, staff
from lazulite_patterns.audit.run import audit


def show(service: TableServiceClient, queue: QueueClient) -> None:
    """Run each part."""
    employees.show(service)
    reviews.show(service)
    claims.show(service)
    logins.show(service)
    archive.show(service, queue)
    findings = list(audit(staff(service), former_staff(service), records(service)))
    print("the auditor found", len(findings), "faults")
    for finding in findings:
        print(finding)


def main() -> None:
    """Create tables and a queue, and delete them at the end."""
    connection_string = os.environ["STORAGE_CONNECTION_STRING"]
    with (
        TableServiceClient.from_connection_string(connection_string) as service,
        QueueClient.from_connection_string(connection_string, archive.QUEUE) as queue,
    ):
        for name in TABLES:
            service.create_table(name)
        queue.create_queue()
        try:
            show(service, queue)
        finally:
            for name in (*TABLES, *map(logins.table_of, logins.DAYS)):
                service.delete_table(name)
            queue.delete_queue()


if __name__ == "__main__":
    main()
