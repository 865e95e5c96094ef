"""Payslips of a month, which one message prints: it is larger than a queue takes, and lies in a blob."""

from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from lazulite_patterns.effects.ambient import NewId
from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.transactions import Task, TaskMessage
from lazulite_patterns.transactions.tasks import Tasks


class Printing(Task[list[str]]):
    """Prints pages."""

    def __init__(self) -> None:
        """Begin without a page."""
        super().__init__("print")
        self.printed: list[object] = []

    def begin(self, argument: list[str]) -> Protocol[TaskMessage]:
        """Return the message with the pages."""
        return TaskMessage(self.name, (yield from perform(NewId())), argument)

    def handle(self, message: TaskMessage) -> Protocol[None]:
        """Print the pages."""
        if isinstance(message.body, list):
            yield from perform(Call(self.printed.extend, (message.body,)))


def show(queue: QueueClient, container: ContainerClient) -> None:
    """Print a payslip for each of many employees, by one message."""
    printing = Printing()
    with Tasks(queue, [printing], claims=container) as tasks:
        tasks.start(printing, [f"Employee {number:06d}: 3,000 euros for July 2014" for number in range(2000)])
        tasks.drain()
    left = len(list(container.list_blobs(name_starts_with=f"{queue.queue_name}/")))
    print("payslips:", len(printing.printed), "printed,", left, "blobs left")
