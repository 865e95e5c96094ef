"""Payslips of a month, which one message prints: it is larger than a queue takes, and lies in a blob."""

from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from lazulite_patterns import Tasks


def show(queue: QueueClient, container: ContainerClient) -> None:
    """Print a payslip for each of many employees, by one message."""
    printed: list[str] = []
    with Tasks(queue, claims=container) as tasks:

        @tasks.task("print")
        def print_pages(pages: list[str]) -> None:
            printed.extend(pages)

        tasks.start(print_pages, [f"Employee {number:06d}: 3,000 euros for July 2014" for number in range(2000)])
        tasks.drain()
    left = len(list(container.list_blobs(name_starts_with=f"{queue.queue_name}/")))
    print("payslips:", len(printed), "printed,", left, "blobs left")
