"""Index entries in other partitions or tables, without a transaction: an order of steps.

1. Read the entity. Its ETag is the base.
2. Read the ETag of each entry that the change would leave behind.
3. Put each entry that the change gains. Always, even if it is there: so its ETag changes.
4. Insert the entity, or replace or delete it If-Match the base. This is the commit.
5. Delete the entries left behind, If-Match the ETags of step 2. It is fine if one was changed or is absent.

No ETag guards an insert: others may insert the entity and delete it after step 1. So step 3 of an insert leaves an
*intent* in each entry, a property with the id of the write, and the entity keeps the id of its insert in `_Born`. Step
5 lets an entry be that has another intent, unless that is older than `GRACE_SECONDS`. An insert that may have been sent
before takes another intent: of two with the same id, one may still arrive. Intents are merged, so that each one stays.
A writer whose insert is rejected withdraws its own, and step 5 that of the insert that was done.

A writer that loses at step 4 begins again at step 1, and never removes what it put. So does a writer that inserts an
entity, gets no answer, and finds the entity absent: it may have been inserted, and deleted with its entries. Entries in
the entity's own partition need no steps 3 and 5: the transaction of step 4 has them. Entries with copies are marked in
step 3 and settled in step 5: `copies` says how. `claims` says how one entry is put, also a unique one. A unique entry
that passes from one entity of the commit to another names both from step 3 to step 5.

What holds at every instant: a committed entity has its entries. An entry without its entity may be left behind; a
reader compares each entry with the entity, and drops it if they do not fit. A model checker explores every
interleaving, and shows that each rule is needed: If-Match in step 5, always in step 3, never removing what a loser put,
and those of intents.
"""

from collections.abc import Callable, Mapping

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import RandomNumber, Sleep
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored
from lazulite_patterns.indexes import lists
from lazulite_patterns.indexes.changes import Changed, Entries, InsertState, removal
from lazulite_patterns.indexes.claims import Claims
from lazulite_patterns.indexes.copies import PendingEntry, mark, settle
from lazulite_patterns.indexes.deferred import announce, show
from lazulite_patterns.indexes.entries import INTENT, NO_INTENT, Entry, contents, intent, intents, targets
from lazulite_patterns.indexes.errors import Busy, NotUnique
from lazulite_patterns.outcomes.errors import Conflict, Restart, Unavailable
from lazulite_patterns.outcomes.grace import now
from lazulite_patterns.outcomes.retries import Attempts, begin
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import ALONE, Identity, Joined, Written, identity, unknown_outcome, write

_Passing = tuple[Entry, EntityKey, str]
"""An entry that passes, its entity after the commit, and its ETag."""
_AGAIN = "_again"
"""The end of the name of an intent before a request that may not be the first one."""
_NO_LIVES: Mapping[EntityKey, InsertState] = {}
Change = Callable[[Stored | None], Properties | None]
"""The new properties of an entity from the row that is there; None to delete it, or to leave it absent."""


class _DeadlineExpired(Unavailable):
    """The commit was not sent: the deadline is over. The change may begin again."""


class PointerIndex(Claims):
    """Writes entities with their entries."""

    def change(self, key: EntityKey, change: Change, attempts: int = 8) -> Protocol[Written | None]:
        """Change an entity, and its entries with it.

        Raises:
            Conflict: another writer was faster, each time. `NotUnique` and `Busy` are of a unique entry.
            OutcomeUnknown: the result of the commit is not known. Entries that are too many may be left behind.
            Unavailable: the entries were not written before the deadline, or a read was not answered.
        """
        return (yield from self.change_all({key: change}, attempts))

    def change_all(
        self,
        changes: Mapping[EntityKey, Change],
        attempts: int = 8,
        known: Mapping[EntityKey, Stored] | None = None,
        joined: Joined = ALONE,
    ) -> Protocol[Written | None]:
        """Change entities of one partition in one transaction, and their entries with them.

        Args:
            changes: of each entity, by its keys.
            attempts: times to begin, at most.
            known: rows that were read already, for the first attempt.
            joined: other rows of the transaction, and until when it may begin.

        Raises:
            Conflict: as `change` does.
        """
        own = joined.identity or (yield from identity())
        try:
            return (yield from self._changed_once(changes, attempts, known or {}, joined._replace(identity=own), own))
        except Restart as restart:
            if joined.identity is not None:
                raise
            raise unknown_outcome(own, next(iter(changes))) from restart
        except (Conflict, Unavailable) as error:
            if own.unsure:
                raise unknown_outcome(own, next(iter(changes))) from error
            raise

    def _changed_once(
        self,
        changes: Mapping[EntityKey, Change],
        attempts: int,
        known: Mapping[EntityKey, Stored],
        joined: Joined,
        own: Identity,
    ) -> Protocol[Written | None]:
        """Begin again until the commit is done, or is known not to be done."""
        started = yield from begin(self.policy)
        for number in range(attempts):
            rows: dict[EntityKey, Stored | None] = {}
            for key in changes:
                rows[key] = known[key] if key in known else (yield from self._read(Entry(self.table, key)))
            known = {}
            if own.unsure and (done := [key for key, row in rows.items() if own.is_of(row)]):
                yield from self._restore(done)
                return Written(("",) * len(rows), own.operation_id)
            each = [Changed.of(self.entries, key, row, changes[key](row)) for key, row in rows.items()]
            try:
                return (yield from self._changed(each, Entries.of(each, self.not_unique), joined))
            except (NotUnique, Busy):
                yield from self._retract(each, own)
                raise
            except (Conflict, _DeadlineExpired, Restart) as error:
                if isinstance(error, Conflict):
                    yield from self._retract(each, own)
                late = isinstance(error, Restart) and (yield from started.expired())
                if late or number == attempts - 1:
                    raise
            # Rows of lists are changed by many writers: they do not all begin again at once.
            yield from perform(Sleep((yield from perform(RandomNumber())) * 0.01 * 2**number))
        raise ValueError("attempts is at least 1")

    def _restore(self, keys: list[EntityKey]) -> Protocol[None]:
        """Put the entries of entities whose commit arrived late: meanwhile others may have removed them."""
        for key in keys:
            row = yield from self._read(Entry(self.table, key))
            entries = frozenset[Entry]() if row is None else self.entries(row.properties)
            here = [(each, key) for each in sorted(entries) if not each.eventual and not self._inside(each, key)]
            yield from self._put_again([each for each in here if not each[0].copy])
            # They stay marked: the writer of an earlier mark may be about to commit.
            yield from self._marks([each for each in here if each[0].copy])

    def _changed(self, changes: list[Changed], entries: Entries, joined: Joined) -> Protocol[Written | None]:
        """Do the steps 2 to 5 of a change."""
        one = changes[0].key
        lives = yield from self._lives(changes, joined.identity)
        again = joined.identity is not None and joined.identity.unsure
        marking = [
            each
            for each in (*entries.gained, *entries.rewritten, *entries.left)
            if each[0].copy and not self._inside(each[0], one)
        ]
        listed = [each for each in (*entries.gained, *entries.left) if each[0].listed and self._inside(each[0], one)]
        later = [(each.key, each.deferred) for each in changes if each.deferred]
        elsewhere = frozenset(dict(marking)) | frozenset(dict(listed)) | frozenset().union(*dict(later).values())
        found = yield from self._etags(frozenset(dict(entries.left)) - elsewhere)
        before = {(entry, each.key) for each in changes for entry in each.old}
        left = [each for each in found if any((each[0], key) in before for key in targets(each[1]))]
        started = yield from begin(self.policy)
        after = {each.key: each.properties for each in changes}
        gained = [each for each in entries.gained if each[0] not in elsewhere]
        passes: list[_Passing] = []
        inside = [*joined.planned, *(yield from self._written(entries, gained, lives, after, passes))]
        inside += [removal(*each) for each in left if self._inside(each[0], one)]
        inside += yield from self._lists(listed, entries.new)
        marks = yield from self._marks(marking, lives)
        sent = yield from announce(self.queue, self.table, later, self.policy, started)
        if (yield from started.expired()):
            raise _DeadlineExpired("the entries were not written before the deadline")
        yield from joined.check()
        written = yield from self._commit(changes, inside, started, joined.identity)
        if again or ((gained or marks) and (yield from started.expired())):
            # The commit may be by an earlier request, before these marks: they are not to be settled.
            yield from self._put_again(gained)
            yield from self._marks(marking)
        else:
            for each in marks:
                overtaken = yield from self._settled(each, after[each.key] if each.entry in entries.new else None)
                if overtaken is not None:
                    yield from self._withdraw(each.entry, overtaken, frozenset({f"{INTENT}{each.birth}"}))
        for passing in passes:
            yield from self._settle_pass(*passing)
        outside = [each for each in left if not self._inside(each[0], one)]
        yield from self._clean((yield from self._removable_of(outside, entries, lives)))
        yield from show(self.queue, sent)
        return written

    def _written(
        self,
        entries: Entries,
        gained: list[tuple[Entry, EntityKey]],
        lives: Mapping[EntityKey, InsertState],
        after: Mapping[EntityKey, Properties | None],
        passes: list["_Passing"],
    ) -> Protocol[list[Planned]]:
        """Write the entries that a change gains or passes on; return the ones of the commit itself.

        Args:
            entries: of the change.
            gained: the gained ones, but those of workers and those with copies.
            lives: of the entities.
            after: the properties of the entities after the commit.
            passes: gets the passes that are to be settled after the commit.
        """
        inside = []
        claims: list[tuple[Entry, str]] = []
        try:
            for entry, key in gained:
                if self._inside(entry, key):
                    inside.append((yield from self._joining(entry, key, after[key] or {})))
                elif etag := (yield from self._put(entry, key, lives[key].intent)):
                    claims.append((entry, etag))
            for entry, giver, key in entries.passed:
                if self._inside(entry, key):
                    inside.append((yield from self._joining(entry, key, after[key] or {}, giver)))
                else:
                    etag = yield from self._pass(entry, giver, key, lives[giver].birth)
                    passes.append((entry, key, etag))
        except (NotUnique, Busy) as error:
            error.index = [*after].index(key) if len(after) > 1 else None
            if not any(_AGAIN in name for life in lives.values() for name in life.intent):
                yield from self._release(claims)  # No request was sent that needs them.
            raise
        inside += [
            Planned(Operation(Kind.PUT, entry.key, contents(entry, key, after[key] or {})))
            for entry, key in entries.rewritten
            if self._inside(entry, key)
        ]
        return inside

    def _removable_of(
        self, left: list[tuple[Entry, Stored]], entries: Entries, lives: Mapping[EntityKey, InsertState]
    ) -> Protocol[list[tuple[Entry, Stored]]]:
        """Return the entries left behind that no insert may need. The others stay, without the intents that are done.

        Else the intents of an entity that is inserted and deleted again and again would become too many.
        """
        found = []
        for entry, stored in left:
            if pending := (yield from self._pending(stored, lives[entries.old[entry]].birth)):
                yield from self._withdraw(entry, stored, frozenset(intents(stored)) - pending)
            else:
                found.append((entry, stored))
        return found

    def _retract(self, changes: list[Changed], own: Identity) -> Protocol[None]:
        """Withdraw the intents of an insert that is known not to be done."""
        name = f"{INTENT}{own.operation_id}"
        for each in changes:
            for entry in sorted(each.new) if each.base is None and not own.unsure else ():
                if entry.eventual or self._inside(entry, each.key):
                    continue
                stored = yield from self._read(entry)
                if stored is not None and name in stored.properties:
                    yield from self._withdraw(entry, stored, frozenset({name}))

    def _lists(self, entries: list[tuple[Entry, EntityKey]], new: Mapping[Entry, EntityKey]) -> Protocol[list[Planned]]:
        """Return the writes of lists that are part of the commit."""
        by_list: dict[EntityKey, list[tuple[Entry, EntityKey]]] = {}
        for entry, key in entries:
            by_list.setdefault(lists.row_key(entry, 0), []).append((entry, key))
        planned = []
        for each in by_list.values():
            put = tuple(lists.Item(*key) for entry, key in each if entry in new)
            take = tuple((key, None) for entry, key in each if entry not in new)
            found = yield from lists.rows(each[0][0], self.policy)
            planned += lists.changed(each[0][0], found, lists.Change(put, take))
        return planned

    def _lives(self, changes: list[Changed], own: Identity | None) -> Protocol[dict[EntityKey, InsertState]]:
        """Return the lives of the entities of a commit. Of two inserts with one id, no one knows which was done."""
        intended = NO_INTENT
        if own is not None and any(each.base is None for each in changes):
            name = own.operation_id + _AGAIN if own.unsure else own.operation_id
            intended = intent(name, (yield from now()))
        return {
            each.key: InsertState(intent=intended) if each.base is None else InsertState(each.birth) for each in changes
        }

    def _marks(
        self, entries: list[tuple[Entry, EntityKey]], lives: Mapping[EntityKey, InsertState] = _NO_LIVES
    ) -> Protocol[list[PendingEntry]]:
        """Mark the entries with copies that a commit changes."""
        marks = []
        for entry, key in entries:
            marks.append((yield from mark(entry, key, self.policy, lives.get(key, InsertState()))))
        return marks

    def _settled(self, marked: PendingEntry, properties: Properties | None) -> Protocol[Stored | None]:
        """Fill or delete an entry that was marked; return it if it was to be deleted and has a later mark."""
        return (yield from settle(marked, properties, self.policy))

    def _commit(
        self, changes: list[Changed], inside: list[Planned], started: Attempts, identity: Identity | None
    ) -> Protocol[Written | None]:
        own = "" if identity is None else identity.operation_id
        planned = [one for each in changes if (one := each.planned(own)) is not None]
        if not planned:
            return None
        return (yield from write(self.table, [*planned, *inside], self.policy, started, identity))
