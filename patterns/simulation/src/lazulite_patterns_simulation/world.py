"""Tables, queues and blobs in memory, as values: a write returns a new world. It has the rules that protocols see."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import NamedTuple

from lazulite_patterns.effects.blobs import BlobDelete, BlobEffect, BlobFacts, BlobPut
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.queues import Message, QueueEffect
from lazulite_patterns.effects.tables import (
    Batch,
    EntityKey,
    Found,
    Kind,
    Operation,
    Page,
    Properties,
    Read,
    Stored,
    Write,
)
from lazulite_patterns.keys.characters import utf16_order
from lazulite_patterns_simulation.blobs import Container
from lazulite_patterns_simulation.queues import Queue

_BATCH_MAX = 100
_PAGE_MAX = 1000
_EXISTS = (409, "EntityAlreadyExists")
_ABSENT = (404, "ResourceNotFound")
_CHANGED = (412, "UpdateConditionNotSatisfied")

Request = Read | Write | Batch | Page | QueueEffect | BlobEffect


class _Row(NamedTuple):
    """An entity, or where one was: a number of writes to the key is never used again, as an ETag is not."""

    properties: Properties | None
    writes: int

    @property
    def etag(self) -> str:
        return f'W/"{self.writes}"'


_NEVER_WRITTEN = _Row(None, 0)


class World:
    """Tables, queues and containers by their names. Immutable, so that a model checker can keep many."""

    __slots__ = ("_containers", "_queues", "_rows", "_state")

    def __init__(
        self,
        rows: Mapping[tuple[str, EntityKey], _Row] | None = None,
        queues: Mapping[str, Queue] | None = None,
        containers: Mapping[str, Container] | None = None,
    ) -> None:
        """Begin with no entities, no messages and no blobs."""
        self._rows = dict(rows or {})
        self._queues = dict(queues or {})
        self._containers = dict(containers or {})
        self._state: frozenset[object] | None = None

    def perform(self, effect: Request, now_seconds: float = math.inf) -> tuple["World", object]:
        """Return the world after an effect, and the effect's result.

        Args:
            effect: what is done.
            now_seconds: the time. At infinity every message is visible, even one that another worker received.

        Raises:
            Rejected: as the service does.
        """
        if isinstance(effect, Read):
            return self, self.entity(effect.table, effect.key)
        if isinstance(effect, Page):
            return self, self._page(effect)
        if isinstance(effect, QueueEffect):
            queue, answer = self._queues.get(effect.queue, Queue()).perform(effect, now_seconds)
            return World(self._rows, {**self._queues, effect.queue: queue}, self._containers), answer
        if isinstance(effect, BlobEffect):
            container, answer = self._containers.get(effect.container, Container()).perform(effect, now_seconds)
            return World(self._rows, self._queues, {**self._containers, effect.container: container}), answer
        operations = (effect.operation,) if isinstance(effect, Write) else effect.operations
        _check_batch(operations)
        changed = dict(self._rows)
        etags = []
        for index, operation in enumerate(operations):
            place = (effect.table, operation.key)
            row = changed.get(place, _NEVER_WRITTEN)
            if code := _rejection(operation, row):
                raise Rejected(*code, index=index if isinstance(effect, Batch) else None)
            changed[place] = _Row(_written(operation, row), row.writes + 1)
            etags.append("" if operation.kind is Kind.DELETE else changed[place].etag)
        return World(changed, self._queues, self._containers), etags[0] if isinstance(effect, Write) else tuple(etags)

    def is_void(self, effect: Request) -> bool:
        """Tell whether a request will be rejected at any time: it requires an ETag that is another one now."""
        if isinstance(effect, BlobPut | BlobDelete):
            found = {each.name: each.etag for each in self.blobs(effect.container)}
            return effect.etag not in {None, found.get(effect.name)}
        if not isinstance(effect, Write | Batch):
            return False
        operations = (effect.operation,) if isinstance(effect, Write) else effect.operations
        rows = [(each.etag, self._rows.get((effect.table, each.key), _NEVER_WRITTEN)) for each in operations]
        return any(etag is not None and (row.properties is None or etag != row.etag) for etag, row in rows)

    def entity(self, table: str, key: EntityKey) -> Stored | None:
        """Return one entity; None if it is absent."""
        row = self._rows.get((table, key), _NEVER_WRITTEN)
        return None if row.properties is None else Stored(row.properties, row.etag)

    def entities(self, table: str) -> list[Stored]:
        """Return the entities of a table, in the order of their keys."""
        found = [
            Stored(row.properties, row.etag)
            for (name, _), row in self._rows.items()
            if name == table and row.properties is not None
        ]
        return sorted(found, key=lambda each: tuple(map(utf16_order, each.key)))

    def messages(self, queue: str) -> list[Message]:
        """Return the messages of a queue, visible or not, without a receipt."""
        held = self._queues.get(queue, Queue()).messages
        return [Message(each.id, "", each.text, each.dequeue_count) for each in held]

    def blobs(self, container: str) -> list[BlobFacts]:
        """Return the blobs of a container, in the order of their names."""
        return self._containers.get(container, Container()).facts()

    @property
    def state(self) -> frozenset[object]:
        """What tells this world from others."""
        if self._state is None:
            self._state = frozenset(
                (place, row.writes, frozen(row.properties)) for place, row in self._rows.items()
            ) | frozenset((*self._queues.items(), *self._containers.items()))
        return self._state

    def _page(self, effect: Page) -> Found:
        start = tuple(map(utf16_order, effect.continuation or ("", "")))
        rows = [
            each
            for each in self.entities(effect.table)
            if tuple(map(utf16_order, each.key)) >= start
            and (effect.filter is None or effect.filter.matches(each.properties))
        ]
        top = min(effect.top or _PAGE_MAX, _PAGE_MAX)
        return Found(
            tuple(rows[:top]), (rows[top].key.partition_key, rows[top].key.row_key) if len(rows) > top else None
        )


def _check_batch(operations: tuple[Operation, ...]) -> None:
    if len(operations) > _BATCH_MAX or not operations:
        raise Rejected(400, "InvalidInput")
    if len({each.key.partition_key for each in operations}) > 1:
        raise Rejected(400, "CommandsInBatchActOnDifferentPartitions")
    if len({each.key for each in operations}) < len(operations):
        raise Rejected(400, "InvalidDuplicateRow")


def _rejection(operation: Operation, row: _Row) -> tuple[int, str] | None:
    if operation.kind is Kind.INSERT:
        return None if row.properties is None else _EXISTS
    if operation.kind in {Kind.PUT, Kind.PUT_MERGE}:
        return None
    if row.properties is None:
        return _ABSENT
    return _CHANGED if operation.etag not in {None, row.etag} else None


def _written(operation: Operation, row: _Row) -> Properties | None:
    if operation.kind is Kind.DELETE:
        return None
    kept = (row.properties or {}) if operation.kind in {Kind.MERGE, Kind.PUT_MERGE} else {}
    given = {name: value for name, value in operation.properties.items() if value is not None}
    return {**kept, **given, "PartitionKey": operation.key.partition_key, "RowKey": operation.key.row_key}


def frozen(value: object) -> object:
    """Return a hashable value that is equal only for equal values of the same types."""
    if isinstance(value, str | bytes | None):
        return value
    if isinstance(value, Mapping):
        return frozenset((name, frozen(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return type(value), *map(frozen, value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value), *(frozen(getattr(value, each.name)) for each in fields(value))
    return type(value), value
