"""Entries that a worker of a queue writes after the commit: the guide's form of an index, an order of steps.

1. The writer sends a message with the entity's keys, and the entries before and after. It is hidden until the commit
   is done, or never will be.
2. It inserts the entity, or replaces or deletes it If-Match its base. This is the commit.
3. It shows the message. If the process ended, the message shows itself when its time is over.

A worker makes the entries agree with the entity as it is then, whatever the message is of:

1. It reads the ETag of each entry, and after that the entity.
2. It puts each entry that the entity has, even if it is there, so that its ETag changes.
3. It deletes the others, If-Match the ETags of step 1.
4. It reads the entity. If that was changed meanwhile, it begins again.

When no message is left, each entity has its entries. A model checker explores writers and workers. There may be others
if a worker crashed that was overtaken by another one; a reader drops them.
"""

import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lazulite_patterns.effects.calls import WithTimeout
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.queues import Extend, Send, Sent
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.indexes.entries import Entry, targets
from lazulite_patterns.outcomes.errors import Conflict
from lazulite_patterns.outcomes.grace import ARRIVAL_SECONDS
from lazulite_patterns.outcomes.retries import Attempts, Policy, read

if TYPE_CHECKING:
    from lazulite_patterns.indexes.pointers import PointerIndex

_ATTEMPTS_MAX = 8


def task_name(table: str) -> str:
    """Return the name by which workers know the indexes of a table."""
    return f"index {table}"


def body(key: EntityKey, entries: Iterable[Entry]) -> object:
    """Return what a message says of an entity, as JSON has it."""
    return {"key": [*key], "entries": [_written(each) for each in sorted(entries)]}


def _written(entry: Entry) -> list[object]:
    return [entry.table, *entry.key, entry.listed, *([entry.container] if entry.container else [])]


def _read(table: object, partition: object, row: object, listed: object, container: object = "") -> Entry:
    key = EntityKey(str(partition), str(row))
    return Entry(str(table), key, listed=bool(listed), eventual=True, container=str(container))


def parsed(found: object) -> tuple[EntityKey, frozenset[Entry]]:
    """Return what a message says.

    Raises:
        ValueError: it is no message of an index.
    """
    try:
        assert isinstance(found, dict)
        entries = frozenset(_read(*each) for each in found["entries"])
        partition_key, row_key = found["key"]
        return EntityKey(str(partition_key), str(row_key)), entries
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no message of an index: {found!r}") from error


def announce(
    queue: str, table: str, changed: Iterable[tuple[EntityKey, frozenset[Entry]]], policy: Policy, started: Attempts
) -> Protocol[list[Sent]]:
    """Send the messages of a commit, which are hidden until it is decided.

    Raises:
        Unavailable: one was not sent before the deadline.
    """
    seconds = math.ceil(policy.deadline_seconds + ARRIVAL_SECONDS)
    sent = []
    for key, entries in changed:
        message = {"task": task_name(table), "id": (yield from perform(NewId())), "body": body(key, entries)}
        # A request that is sent again may add a second message, which finds nothing to do.
        sent.append((yield from read(Send(queue, json.dumps(message, separators=(",", ":")), seconds), started)))
    return sent


_SHOW_SECONDS = 10.0
"""How long an answer is waited for that does not matter."""


def show(queue: str, sent: Iterable[Sent]) -> Protocol[None]:
    """Show messages after the commit. It does not matter if that fails: they show themselves later."""
    for each in sent:
        try:
            yield from perform(WithTimeout(Extend(queue, each.id, each.receipt, 0), _SHOW_SECONDS))
        except (Rejected, ResultUnknown):
            continue


def reconcile(index: "PointerIndex", key: EntityKey, entries: frozenset[Entry]) -> Protocol[None]:
    """Make entries agree with their entity.

    Args:
        index: the indexes of the table.
        key: of the entity.
        entries: those that it may have had.

    Raises:
        Conflict: the entity was changed meanwhile, each time.
    """
    for _ in range(_ATTEMPTS_MAX):
        found = []
        for each in sorted(entries):
            stored = yield from index.read(each)
            if stored is not None and key in targets(stored):
                found.append((each, stored))
        entity = yield from index.read(Entry(index.table, key))
        having = frozenset[Entry]() if entity is None else index.entries(entity.properties)
        deferred = frozenset(each for each in having if each.eventual)
        for each in sorted(deferred):
            yield from index.put(each, key)
        yield from index.clean([(each, stored) for each, stored in found if each not in deferred])
        again = yield from index.read(Entry(index.table, key))
        if (again and again.etag) == (entity and entity.etag):
            return
        entries |= deferred
    raise Conflict(f"{key} was changed meanwhile, each time")
