"""Entries in other partitions that have properties of their entity, so that a reader need not read it.

Such an entry is never read while it may differ from the entity:

1. Before the commit, the writer marks each entry that the change gains, changes or leaves behind: it puts the entry
   with its own mark in the property `_Pending`. Always, even if it is marked, so that its ETag changes. It is merged:
   the intents of inserts stay.
2. The commit.
3. The writer fills the entry with what it committed, If-Match its own mark, or deletes the entry If-Match its own mark.
   Not if the commit may be that of an earlier request, before this mark. Not if an insert may still arrive whose intent
   the entry has: then the mark stays.

A reader that meets a mark reads the entity. Why that is enough: a commit is preceded by its mark, and a later commit
is based on the earlier one, so its mark is later, too. A fill that succeeds meets its own mark, so none was put since,
and no later commit was made. Its copies are those of the entity until the next mark.

A crash leaves a mark, which costs a read at each look-up until the next change of the entity or a repair of the
auditor. A unique index has no copies: an unconditional mark could overwrite the claim of another entity.
"""

from typing import NamedTuple

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Read, Stored
from lazulite_patterns.indexes.changes import InsertState
from lazulite_patterns.indexes.entries import PENDING, Entry, filled, intents, pending, pointing_to, without
from lazulite_patterns.outcomes.errors import Conflict, OutcomeUnknown
from lazulite_patterns.outcomes.grace import now
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write


class PendingEntry(NamedTuple):
    """An entry that a writer marked, and the ETag of that; None if another writer marked it since."""

    entry: Entry
    key: EntityKey
    etag: str | None
    birth: str = ""
    """The id of the insert of the entity that leaves the entry behind."""


def mark(entry: Entry, key: EntityKey, policy: Policy, life: InsertState) -> Protocol[PendingEntry]:
    """Mark an entry, whatever is there. The intents that it has stay."""
    own = yield from perform(NewId())
    operation = Operation(Kind.PUT_MERGE, entry.key, {**pointing_to(key), **life.intent, PENDING: own})
    written = yield from write(entry.table, [Planned(operation)], policy)
    if written.etags[0]:
        return PendingEntry(entry, key, written.etags[0], life.birth)
    found = yield from read(Read(entry.table, entry.key), (yield from begin(policy)))  # The answer was lost.
    marked = found is not None and found.properties.get(PENDING) == own
    return PendingEntry(entry, key, found.etag if found is not None and marked else None, life.birth)


def settle(marked: PendingEntry, properties: Properties | None, policy: Policy) -> Protocol[Stored | None]:
    """Fill an entry after the commit, or delete it if the entity has it no more. Nothing is done to a later mark.

    Returns:
        An entry that was to be deleted and has a later mark; None if there is no such one.
    """
    if marked.etag is None and properties is not None:
        return None
    entry = marked.entry
    if properties is None:
        found = yield from read(Read(entry.table, entry.key), (yield from begin(policy)))
        if found is None or found.etag != marked.etag:
            return found
        kept = pending(found, marked.birth, (yield from now()))
        operation = Operation(Kind.DELETE, entry.key, etag=marked.etag)
        if kept:  # The mark stays, too: an insert that arrives later may have other values.
            properties = without(found, frozenset(intents(found)) - kept)
            operation = Operation(Kind.REPLACE, entry.key, properties, marked.etag)
    else:
        operation = Operation(Kind.MERGE, entry.key, filled(entry, marked.key, properties), marked.etag)
    try:
        yield from write(entry.table, [Planned(operation)], policy)
    except (Conflict, OutcomeUnknown):
        return None
    return None
