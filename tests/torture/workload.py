"""Clients that write everything the service can write, know what was acknowledged, and stop when the server is gone.

Every client owns rows of a table that all share (a third of the clients meet in each partition) and a table of its own,
which it creates, fills and deletes over and over. It reads too: what it reads of its own must be what was acknowledged.
The rows are few, so that the whole store can be read often; they are written over and over.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.sdk.ledger import Content, Key

from .expected import Log, LoggedJournal, text_of
from .http_client import (
    Answer,
    Connection,
    LostConnectionError,
    Operation,
    create_table,
    delete_table,
    transaction,
    write,
)
from .observation import read_entities, read_entity

SHARED = "load"
PARTITIONS = 3
ROWS = 30
OPERATIONS_MAX = 30
OWN_ROWS_MAX = 60
TEXT_LENGTHS = (1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 30_000)
"""Of one of these a text is at most, of half of it as a rule."""
_WRONG_ETAG = "W/\"datetime'2001-01-01T00%3A00%3A00.1Z'\""


class Move(NamedTuple):
    """What a client does next.

    Attributes:
        kind: for the counts.
        request: to be sent.
        effects: what it leaves under each key it touches, in the order of its operations.
        rejection: the status that it must be rejected with; None: it must succeed.
    """

    kind: str
    request: bytes
    effects: dict[Key, Content | None]
    rejection: int | None = None


class Known(NamedTuple):
    """What clients share.

    Attributes:
        counts: of what they did, as far as it was answered.
        newest: instant in each partition, as their journals share it.
        given: the partitions and ETags of all commits acknowledged since the last look at the store.
    """

    counts: Counter[str]
    newest: dict[Key, str]
    given: set[tuple[Key, str]]


class Client:
    """One client; its journal outlives it, from one server process to the next."""

    def __init__(self, number: int, known: Known, log: Log) -> None:
        self._partition = f"p{number % PARTITIONS}"
        self._prefix = f"{number:02}-"
        self._own: Key = (f"own{number}",)
        self._rows: list[Key] = [(SHARED, self._partition, f"{self._prefix}{row:02}") for row in range(ROWS)]
        self._written = number << 24
        self._counts, self._given = known.counts, known.given
        mine = set(self._rows)
        self.journal = LoggedJournal(number, lambda key: key in mine or key[0] == self._own[0], known.newest, log)

    async def run(self, host: str, random: Random, gone: Callable[[], bool]) -> None:
        """Work until the server is gone, which it may be once `gone` says so.

        Raises:
            AssertionError: a promise is broken.
        """
        self._random = random
        try:
            connection = await Connection.open(host)
            try:
                await self._work(connection, gone)
            finally:
                await connection.close()
        except LostConnectionError as error:
            assert gone(), f"the server broke a connection off: {error}"

    async def _work(self, connection: Connection, gone: Callable[[], bool]) -> None:
        moves = [self._single, self._batch, self._rejected, self._own_table]
        while True:
            if self._random.random() < 0.1:
                await self._read(connection)
                continue
            move = self._random.choices(moves, [10, 8, 2, 3])[0]()
            if move is not None:
                self.journal.intend(move.effects)
                if not self._note(move, await connection.ask(move.request), gone):
                    return

    def _note(self, move: Move, answer: Answer, gone: Callable[[], bool]) -> bool:
        """Note an answer; say whether to go on."""
        statuses = answer.statuses()
        failed = [status for status in statuses if status >= 300]
        if move.rejection is not None:
            assert failed == [move.rejection], f"{move.kind} was answered with {statuses}, not {move.rejection}"
            self.journal.reject()
        elif failed and failed[0] >= 500 and gone():
            return False
        else:
            assert not failed, f"{move.kind} was answered with {statuses}: {answer.body[:500]!r}"
            written = [key for key, content in move.effects.items() if content is not None and len(key) > 1]
            etags = dict(zip(written, answer.etags(), strict=True))
            commit = {(key[:2], etag) for key, etag in etags.items()}
            assert len(commit) <= 1, f"one commit, several ETags: {commit}"
            assert not commit & self._given, f"two commits, one ETag: {commit}"
            self._given.update(commit)
            self.journal.acknowledge(etags)
        self._counts[move.kind] += 1
        return True

    # --- reading

    async def _read(self, connection: Connection) -> None:
        """Read one row, or all rows in the shared table, by one or two key ranges: each as acknowledged."""
        known = self.journal.acknowledged
        if self._random.random() < 0.7:
            key = self._random.choice(self._rows)
            seen = await read_entity(connection, key)
            assert seen == known.get(key), f"{key}: acknowledged {known.get(key)}, read {seen}"
            self._counts["point reads"] += 1
        else:
            lower, upper = self._prefix, self._prefix.replace("-", ".")
            partitions = {self._partition, f"p{self._random.randrange(PARTITIONS)}"}  # Of the other nothing is found.
            ranges = [
                f"PartitionKey eq '{each}' and RowKey ge '{lower}' and RowKey lt '{upper}'" for each in partitions
            ]
            text = " or ".join(sorted(ranges))
            found = await read_entities(connection, SHARED, text)
            expected = {key: stored for key, stored in known.items() if key[0] == SHARED}
            assert found == expected, f"a range of {len(found)} rows is not the {len(expected)} acknowledged"
            self._counts["range reads"] += 1

    # --- writing

    def _content(self) -> Content:
        self._written += 1
        length = self._random.randrange(self._random.choice(TEXT_LENGTHS))
        return {"N": self._written, "Text": text_of(self._written, length)}

    def _change(self) -> Content:
        """Of a merge: a property beside the others."""
        self._written += 1
        return {f"Merged{self._random.randrange(3)}": self._written}

    def _operation(self, key: Key) -> Operation:
        """Any write that succeeds."""
        stored = self.journal.acknowledged.get(key)
        if stored is None:
            verb = self._random.choice(["insert", "insert or replace", "insert or merge"])
            return Operation(verb, key, self._content())
        verb = self._random.choice(["replace", "merge", "insert or replace", "insert or merge", "delete"])
        content = self._change() if verb == "merge" else {} if verb == "delete" else self._content()
        return Operation(verb, key, content, self._random.choice([stored.etag, stored.etag, "*"]))

    def _effects(self, operations: list[Operation]) -> dict[Key, Content | None]:
        known = self.journal.acknowledged
        return {each.key: each.effect(known[each.key].content if each.key in known else None) for each in operations}

    def _operations(self) -> list[Operation]:
        """Writes of every kind on different rows."""
        count = self._random.randint(2, min(OPERATIONS_MAX, ROWS - 1))
        return [self._operation(key) for key in self._random.sample(self._rows, count)]

    def _single(self) -> Move:
        operation = self._operation(self._random.choice(self._rows))
        return Move(operation.verb, write(operation), self._effects([operation]))

    def _batch(self) -> Move:
        operations = self._operations()
        return Move("batch", transaction(operations), self._effects(operations))

    def _rejected(self) -> Move | None:
        """Something whose last operation fails: nothing of it may ever show."""
        operations = self._operations() if self._random.random() < 0.7 else []
        free = [key for key in self._rows if key not in {each.key for each in operations}]
        existing = [(key, self.journal.acknowledged[key]) for key in free if key in self.journal.acknowledged]
        if not existing:
            return None
        key, _ = self._random.choice(existing)
        wrong, status = self._random.choice(
            [
                (Operation("insert", key, self._content()), 409),
                (Operation("merge", key, self._change(), _WRONG_ETAG), 412),
                (Operation("delete", key, {}, _WRONG_ETAG), 412),
            ]
        )
        request = transaction([*operations, wrong]) if operations else write(wrong)
        return Move("rejected on purpose", request, {}, status)

    def _own_table(self) -> Move:
        """Create this client's table, or write a batch of new rows into it, or delete it with all that is in it."""
        name = self._own[0]
        held = [key for key in self.journal.acknowledged if key[0] == name]
        if not held:
            return Move("table created", create_table(name), {self._own: {}})
        if len(held) > OWN_ROWS_MAX or (len(held) > 1 and self._random.random() < 0.5):
            return Move("table deleted", delete_table(name), dict.fromkeys(held))
        operations = [
            Operation("insert", (name, self._partition, f"{len(held) + row:04}"), self._content())
            for row in range(OPERATIONS_MAX)
        ]
        return Move("batch", transaction(operations), self._effects(operations))
