"""Former employees: a queue moves them to another table, even if a worker is killed in the middle.

As a program, this module is that worker: it ends as soon as it has copied an entity.
"""

import os
import subprocess
import sys
from pathlib import Path

from azure.data.tables import TableServiceClient
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from company.model import CONTAINER, Employee, FormerEmployee, former_staff, staff
from lazulite_patterns import EntityKey, Move, Tasks
from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import Batch

KEY = EntityKey("Sales", "000100")
QUEUE = "company-archive"
VISIBILITY_SECONDS = 1
KILLED = 9


class Killed:
    """Ends the process after it wrote to the archive."""

    def before(self, effect: Effect[object]) -> None:
        """Do nothing."""

    def after(self, effect: Effect[object]) -> None:
        """End the process at once: nothing is cleaned up."""
        if isinstance(effect, Batch) and effect.table == "FormerStaff":
            os._exit(KILLED)


def opened(
    service: TableServiceClient, queue: QueueClient, container: ContainerClient, runtime: Runtime | None = None
) -> tuple[Tasks, Move[Employee]]:
    """Return the tasks of a queue, and the move that it delivers."""
    former = former_staff(service, container)
    move: Move[Employee] = Move("archive", source=staff(service), target=former, convert=FormerEmployee.of)
    return Tasks(queue, [move], runtime=runtime), move


def where(service: TableServiceClient, container: ContainerClient) -> str:
    """Return the tables in which the employee is."""
    found = {"Staff": staff(service).get(KEY), "FormerStaff": former_staff(service, container).get(KEY)}
    return " and ".join(name for name, each in found.items() if each is not None)


def show(service: TableServiceClient, queue: QueueClient, container: ContainerClient) -> None:
    """Start a move, let a worker be killed, and let another one finish."""
    tasks, move = opened(service, queue, container)
    with tasks:
        tasks.start(move, KEY)
        worker = subprocess.run([sys.executable, "-m", "company.archive"], cwd=Path(__file__).parents[1], check=False)
        print("the worker ended with", worker.returncode, "and the employee is in", where(service, container))
        tasks.work(
            visibility=VISIBILITY_SECONDS, idle_seconds=0.2, stop=lambda: where(service, container) == "FormerStaff"
        )
        print("another worker went on, and the employee is in", where(service, container))
    found = former_staff(service, container).by(FormerEmployee.last_name.starts_with("Jo"))
    print("former employees by name:", [each.id for each in found])


def main() -> None:
    """Handle messages as the worker that is killed."""
    connection_string = os.environ["STORAGE_CONNECTION_STRING"]
    with (
        TableServiceClient.from_connection_string(connection_string) as service,
        QueueClient.from_connection_string(connection_string, QUEUE) as queue,
        ContainerClient.from_connection_string(connection_string, CONTAINER) as container,
    ):
        tasks, _ = opened(service, queue, container, Runtime(failpoints=Killed()))
        tasks.drain(visibility=VISIBILITY_SECONDS)


if __name__ == "__main__":
    main()
