"""Move an employee from the table `Current` to the table `Archive` with the help of a queue.

Two tables have no common transaction. A message stands for the intention to move an entity, and a worker handles it
in steps that can be repeated:

    1. copy the entity to `Archive`: insert-or-replace, so that a second copy changes nothing
    2. delete it from `Current`, on condition that it is still the version that was copied
    3. delete the message

A worker that ends between two steps leaves the message. It becomes visible again after `VISIBILITY_SECONDS`, and a
worker repeats the steps. A message that was taken `DEQUEUES_MAX` times without success goes to the queue of poison
messages, for a person to look at.

    python examples/archive_employee.py add Sales 0042 Ada     an employee
    python examples/archive_employee.py archive Sales 0042     put the message
    python examples/archive_employee.py work                   handle all messages
    python examples/archive_employee.py show                   what is where
"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableServiceClient, UpdateMode
from azure.storage.queue import QueueMessage, QueueServiceClient

DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;QueueEndpoint=http://127.0.0.1:10001/devstoreaccount1;"
)
CURRENT, ARCHIVE = "Current", "Archive"
QUEUE, POISON_QUEUE = "archive-employees", "archive-employees-poison"
VISIBILITY_SECONDS = 60
"""A worker has so long for one message."""
DEQUEUES_MAX = 5
"""A message is tried so often."""


def _ignore(step: str) -> None:
    """Do nothing after a step."""


class Archive:
    """The two tables and the two queues.

    Args:
        connection_string: of the account.
        after: called with the name of each step that is done; by default, without effect.
    """

    def __init__(self, connection_string: str, after: Callable[[str], object] = _ignore) -> None:
        self._tables = TableServiceClient.from_connection_string(connection_string)
        self._queues = QueueServiceClient.from_connection_string(connection_string)
        self.current = self._tables.create_table_if_not_exists(CURRENT)
        self.archive = self._tables.create_table_if_not_exists(ARCHIVE)
        self.queue = self._queues.get_queue_client(QUEUE)
        self.poison = self._queues.get_queue_client(POISON_QUEUE)
        for queue in (self.queue, self.poison):
            with contextlib.suppress(ResourceExistsError):
                queue.create_queue()
        self._after = after

    def close(self) -> None:
        """Close the connections."""
        for client in (self.current, self.archive, self.queue, self.poison, self._tables, self._queues):
            client.close()

    def add(self, department: str, number: str, name: str) -> None:
        """Add an employee."""
        self.current.upsert_entity({"PartitionKey": department, "RowKey": number, "Name": name})

    def request(self, department: str, number: str) -> None:
        """Ask for an employee to be archived. Once this returns, it will be done."""
        self.queue.send_message(json.dumps({"PartitionKey": department, "RowKey": number}), time_to_live=-1)

    def work(self) -> bool:
        """Handle one message; return False if none is visible."""
        message = self.queue.receive_message(visibility_timeout=VISIBILITY_SECONDS)
        if message is None:
            return False
        self._after("get")
        try:
            self._handle(message)
        except (HttpResponseError, ValueError, KeyError, TypeError) as error:
            print(f"message {message.id} failed: {type(error).__name__}", file=sys.stderr)
            if (message.dequeue_count or 0) >= DEQUEUES_MAX:
                self._set_aside(message)
        return True

    def _handle(self, message: QueueMessage) -> None:
        keys = json.loads(message.content)
        department, number = keys["PartitionKey"], keys["RowKey"]
        # Without an entity, an earlier attempt has come as far as its deletion.
        with contextlib.suppress(ResourceNotFoundError):
            entity = self.current.get_entity(department, number)
            self.archive.upsert_entity(entity, UpdateMode.REPLACE)
            self._after("copy")
            # A change of the entity since then makes this fail. The message comes back, and the new version is copied.
            self.current.delete_entity(
                entity, etag=entity.metadata["etag"], match_condition=MatchConditions.IfNotModified
            )
            self._after("delete")
        # The receipt is rejected if another worker has the message by now. That worker finds nothing left to do.
        with contextlib.suppress(ResourceNotFoundError):
            self.queue.delete_message(message)
        self._after("done")

    def _set_aside(self, message: QueueMessage) -> None:
        self.poison.send_message(message.content, time_to_live=-1)
        self._after("set aside")
        self.queue.delete_message(message)

    def contents(self) -> Iterator[str]:
        """Yield a line for each table and queue."""
        for table in (self.current, self.archive):
            names = sorted(f"{each['PartitionKey']}/{each['RowKey']} {each['Name']}" for each in table.list_entities())
            yield f"{table.table_name}: {', '.join(names) or '-'}"
        for queue in (self.queue, self.poison):
            yield f"{queue.queue_name}: {queue.get_queue_properties().approximate_message_count} messages"


def main() -> None:
    """Run one command."""
    parser = argparse.ArgumentParser(description="Move employees from one table to another by messages.")
    parser.add_argument("command", choices=("add", "archive", "work", "show"))
    parser.add_argument("words", nargs="*", help="department, number and name")
    arguments = parser.parse_args()
    archive = Archive(os.environ.get("LAZULITE_CONNECTION_STRING", DEVELOPMENT))
    if arguments.command == "add":
        archive.add(*arguments.words)
    elif arguments.command == "archive":
        archive.request(*arguments.words)
    elif arguments.command == "work":
        while archive.work():
            pass
    else:
        print("\n".join(archive.contents()))
    archive.close()


if __name__ == "__main__":
    main()
