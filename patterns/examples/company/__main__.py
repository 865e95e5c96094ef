"""Run each part of the example, and audit everything at the end.

    cd patterns/examples
    STORAGE_CONNECTION_STRING=… python -m company

It creates tables, a queue and a container, and deletes them.
"""

import os

from azure.data.tables import TableServiceClient
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from company import archive, claims, employees, logins, payslips, photos, reviews, visits
from company.model import CONTAINER, TABLES, former_staff, records, staff
from lazulite_patterns import audit


def show(service: TableServiceClient, queue: QueueClient, container: ContainerClient) -> None:
    """Run each part."""
    employees.show(service)
    reviews.show(service)
    claims.show(service)
    logins.show(service)
    photos.show(service, container)
    visits.show(container)
    payslips.show(queue, container)
    archive.show(service, queue, container)
    audited = (staff(service), former_staff(service, container), records(service), photos.opened(service, container))
    findings = list(audit(*audited))
    print("the auditor found", len(findings), "faults")
    for finding in findings:
        print(finding)


def main() -> None:
    """Create a queue and a container, run each part, and delete everything at the end."""
    connection_string = os.environ["STORAGE_CONNECTION_STRING"]
    with (
        TableServiceClient.from_connection_string(connection_string) as service,
        QueueClient.from_connection_string(connection_string, archive.QUEUE) as queue,
        ContainerClient.from_connection_string(connection_string, CONTAINER) as container,
    ):
        queue.create_queue()
        container.create_container()
        try:
            show(service, queue, container)
        finally:
            for name in (*TABLES, *logins.opened(service).names()):
                service.delete_table(name)
            queue.delete_queue()
            container.delete_container()


if __name__ == "__main__":
    main()
