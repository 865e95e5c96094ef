"""Load for the kill test: clients that write, note what they are answered, and stop when the server is gone.

Every worker owns its rows (a third of the workers share each partition, so that they also meet in one) and one table,
which it creates, fills and deletes over and over. A seed decides what it does.
"""

import random
import threading
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import DecodeError, ServiceRequestError, ServiceResponseError
from azure.data.tables import TableClient, TableServiceClient, TableTransactionError, UpdateMode

from .ledger import TABLE, Content, Journal, Key, Stored

SHARED = "load"
PARTITIONS = 3
ROWS = 40
OPERATIONS_MAX = 30
TEXT_LENGTH_MAX = 1_000
LOST_CONNECTION = (ServiceRequestError, ServiceResponseError, DecodeError)


class Fuse:
    """Blows at the given acknowledgement."""

    def __init__(self, acknowledgements: int) -> None:
        self._left = acknowledgements
        self._lock = threading.Lock()
        self.blown = threading.Event()
        self.over = threading.Event()
        """Set where a server lives on, and so does not end the work by being gone."""

    def burn(self) -> None:
        """Count an acknowledgement."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.blown.set()


class Worker:
    """One client: its journal outlives it, from one server process to the next."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._partition = f"p{number % PARTITIONS}"
        self._own: Key = (f"own{number}",)
        self._rows: list[Key] = [(SHARED, self._partition, f"{number}-{row:02}") for row in range(ROWS)]
        self._written = 0
        mine = set(self._rows)
        self.journal = Journal(lambda key: key in mine or key[0] == self._own[0])

    def run(self, service: TableServiceClient, seed: int, fuse: Fuse) -> None:
        """Work until the server is gone, which it may be once the fuse has blown, or until the fuse says so."""
        self._random = random.Random(f"{seed}/{self._number}")
        self._service = service
        self._table = service.get_table_client(SHARED)
        steps = [
            self._insert,
            self._update,
            self._upsert,
            self._delete,
            self._transact,
            self._rejected,
            self._own_table,
        ]
        while not fuse.over.is_set():
            step = self._random.choices(steps, [3, 4, 4, 2, 8, 1, 4])[0]
            try:
                if step():
                    fuse.burn()
            except LOST_CONNECTION:
                if not fuse.blown.is_set():
                    raise
                return

    def _content(self) -> Content:
        self._written += 1
        return {"N": self._written, "Text": "x" * self._random.randrange(TEXT_LENGTH_MAX)}

    def _present(self) -> list[tuple[Key, Stored]]:
        acknowledged = self.journal.acknowledged
        return [(key, acknowledged[key]) for key in self._rows if key in acknowledged]

    def _insert(self) -> bool:
        absent = [key for key in self._rows if key not in self.journal.acknowledged]
        if not absent:
            return False
        key, content = self._random.choice(absent), self._content()
        self.journal.intend({key: content})
        answer = self._table.create_entity(entity(key, content))
        self.journal.acknowledge({key: answer["etag"]})
        return True

    def _update(self) -> bool:
        present = self._present()
        if not present:
            return False
        key, stored = self._random.choice(present)
        change: Content = {f"Merged{self._random.randrange(3)}": self._written}
        self.journal.intend({key: {**stored.content, **change}})
        answer = self._table.update_entity(
            entity(key, change),
            mode=UpdateMode.MERGE,
            etag=stored.etag,
            match_condition=MatchConditions.IfNotModified,
        )
        self.journal.acknowledge({key: answer["etag"]})
        return True

    def _upsert(self) -> bool:
        key, content = self._random.choice(self._rows), self._content()
        before = self.journal.acknowledged.get(key, TABLE).content
        mode = self._random.choice(list(UpdateMode))
        self.journal.intend({key: {**before, **content} if mode == UpdateMode.MERGE else content})
        answer = self._table.upsert_entity(entity(key, content), mode=mode)
        self.journal.acknowledge({key: answer["etag"]})
        return True

    def _delete(self) -> bool:
        present = self._present()
        if not present:
            return False
        key, stored = self._random.choice(present)
        self.journal.intend({key: None})
        self._table.delete_entity(key[1], key[2], etag=stored.etag, match_condition=MatchConditions.IfNotModified)
        self.journal.acknowledge()
        return True

    def _operations(self) -> tuple[list[Any], dict[Key, Content | None]]:
        """Operations of every kind on a few different rows, and their effects in that order."""
        operations: list[Any] = []
        effects: dict[Key, Content | None] = {}
        for key in self._random.sample(self._rows, self._random.randint(2, OPERATIONS_MAX)):
            content = self._content()
            stored = self.journal.acknowledged.get(key)
            if stored is None:
                kind = self._random.choice(["create", "upsert"])
                operations.append((kind, entity(key, content)))
                effects[key] = content
            elif self._random.random() < 0.3:
                operations.append(("delete", entity(key, {})))
                effects[key] = None
            else:
                kind = self._random.choice(["update", "upsert"])
                operations.append((kind, entity(key, content), {"mode": UpdateMode.REPLACE}))
                effects[key] = content
        return operations, effects

    def _submit(self, table: TableClient, operations: list[Any], effects: dict[Key, Content | None]) -> bool:
        self.journal.intend(effects)
        answers = table.submit_transaction(operations)
        written = [
            (key, answer)
            for (key, content), answer in zip(effects.items(), answers, strict=True)
            if content is not None
        ]
        self.journal.acknowledge({key: answer["etag"] for key, answer in written})
        return True

    def _transact(self) -> bool:
        return self._submit(self._table, *self._operations())

    def _rejected(self) -> bool:
        """A transaction whose last operation fails: nothing of it may ever show."""
        operations, effects = self._operations()
        existing = [key for key, _ in self._present() if key not in effects]
        if not existing:
            return False
        self.journal.intend({})
        try:
            self._table.submit_transaction([*operations, ("create", entity(existing[0], {}))])
        except TableTransactionError:
            self.journal.reject()
            return True
        raise AssertionError("a transaction succeeded that creates what exists")

    def _own_table(self) -> bool:
        """Create the worker's table, or fill it, or delete it with all that is in it."""
        name = self._own[0]
        held = [key for key in self.journal.acknowledged if key[0] == name]
        if not held:
            self.journal.intend({self._own: {}})
            self._service.create_table(name)
        elif len(held) == 1:
            contents: dict[Key, Content] = {
                (name, self._partition, str(row)): self._content() for row in range(OPERATIONS_MAX)
            }
            operations = [("create", entity(key, content)) for key, content in contents.items()]
            return self._submit(self._service.get_table_client(name), operations, {**contents})
        else:
            self.journal.intend(dict.fromkeys(held))
            self._service.delete_table(name)
        self.journal.acknowledge()
        return True


def entity(key: Key, content: Content) -> dict[str, int | str]:
    """The entity to send for a key and its properties."""
    return {"PartitionKey": key[1], "RowKey": key[2], **content}
