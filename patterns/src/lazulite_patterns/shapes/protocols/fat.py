"""Entities of any size: written at once where one transaction is enough, else generation by generation.

1. Read the head. Its ETag is the base.
2. Write the rows of a new generation. No reader knows of them.
3. Insert the head, or replace or delete it If-Match the base. This is the commit. It is not
   sent later than `FLIP_SECONDS` after step 1.
4. Delete the rows of the generation before.

If all of it fits, steps 2 to 4 are one transaction. A writer that loses at step 3 deletes its own rows, which no head
names, and begins again. A crash leaves rows of a generation that no head names: before step 3 those of the new one,
after it those of the old one. `collect` removes them when they are older than `GRACE_SECONDS`, after a second read of
the head: then no writer can commit them any more. This relies on time, as unique indexes do.

A reader reads the head, and then the rows of its generation. If rows are absent, it reads the head again: it is of
another generation then.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey, Found, Kind, Operation, Page, Properties, Read, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.values import value_size
from lazulite_patterns.filters import in_partition, in_range
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes.errors import Absent, Conflict, Restart, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, begin, read
from lazulite_patterns.outcomes.ring import RING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Identity, identity, unknown_outcome, write
from lazulite_patterns.shapes.errors import Inconsistent
from lazulite_patterns.shapes.protocols.chunks import FAT, Content, Sizes, chunks_of, cut, whole
from lazulite_patterns.shapes.protocols.groups import OPERATIONS_MAX, again, grouped, removal, remove

FLIP_SECONDS = 300
"""The longest from the beginning of a write to its commit. Less than the grace, by the time that a request may take."""

_OWNER = "Fat"


@dataclass(frozen=True)
class FatProtocol:
    """Makes the protocols of `Fat`."""

    table: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    compress: bool = False
    sizes: Sizes = Sizes()  # noqa: RUF009 - it is a tuple

    def get(self, key: EntityKey) -> Protocol[Bag | None]:
        """Read an entity; None if it is absent."""
        found = yield from self._read(key)
        return None if found is None else found.bag

    def insert(self, key: EntityKey, properties: Properties) -> Protocol[None]:
        """Write an entity that must be absent."""
        limits.check_key(_OWNER, key)
        yield from self._commit(key, None, properties)

    def upsert(self, key: EntityKey, properties: Properties, attempts: int = 8) -> Protocol[None]:
        """Write an entity, whatever is there."""

        def once() -> Protocol[bool]:
            yield from self._commit(key, (yield from self._base(key)), properties)
            return True

        yield from again(once, attempts)

    def update(self, key: EntityKey, change: Callable[[Bag], Properties], attempts: int = 8) -> Protocol[None]:
        """Read an entity, change it, and write it if its head is still the same."""

        def update() -> Protocol[bool]:
            found = yield from self._read(key)
            if found is not None:
                yield from self._commit(key, found.head, change(found.bag))
            return found is not None

        if not (yield from again(update, attempts)):
            raise Absent(f"{key} is absent")

    def delete(self, key: EntityKey, attempts: int = 8) -> Protocol[bool]:
        """Delete an entity with its rows; False if it is absent."""

        def delete() -> Protocol[bool]:
            base = yield from self._base(key)
            if base is not None:
                yield from self._commit(key, base, None)
            return base is not None

        return (yield from again(delete, attempts))

    def _base(self, key: EntityKey) -> Protocol[Stored | None]:
        """Read of a head what a write needs."""
        limits.check_key(_OWNER, key)
        select = ("PartitionKey", "RowKey", FAT, RING)
        return (yield from read(Read(self.table, key, select), (yield from begin(self.policy))))

    def _read(self, key: EntityKey) -> Protocol["_Found | None"]:
        """Read a head and its rows, again if a writer is faster."""
        limits.check_key(_OWNER, key)
        attempts = yield from begin(self.policy)
        head = yield from read(Read(self.table, key), attempts)
        while head is not None:
            content = Content.of(head.properties)
            stream = yield from self._stream(head, content, attempts)
            if stream is not None:
                bag = Bag(whole(head.properties, content, stream))
                return _Found(head, bag)
            again = yield from read(Read(self.table, key), attempts)
            if again is not None and again.etag == head.etag:
                raise Inconsistent(f"{key}: rows of generation {content and content.generation} are absent")
            if (yield from attempts.expired()):
                raise Unavailable(f"{key}: other writers were faster, each time")
            head = again
        return None

    def _stream(self, head: Stored, content: Content | None, attempts: Attempts) -> Protocol[bytes | None]:
        """Read the rows of a head; None if some are absent."""
        if content is None or not content.rows:
            return chunks_of(head.properties)
        keys = content.keys(head.key)
        between = KeyRange.of(keys[0].row_key, keys[-1].row_key)
        place = in_partition(head.key.partition_key) & in_range("RowKey", between)
        octets: list[bytes] = []
        page: Found | None = None
        while page is None or page.continuation is not None:
            effect = Page(self.table, place, (), self.sizes.page_rows, page and page.continuation)
            page = yield from read(effect, attempts)
            octets += [chunks_of(each.properties) for each in page.entities]
        stream = b"".join(octets)
        return stream if len(octets) == content.rows and len(stream) == content.length else None

    def _commit(self, key: EntityKey, base: Stored | None, properties: Properties | None) -> Protocol[None]:
        """Write or delete an entity of which the base was read.

        Raises:
            Conflict: another writer was faster. Nothing is left of this write.
        """
        own, old = (yield from identity()), _old(base)
        begun = yield from begin(self.policy)
        while True:
            started = yield from begin(replace(self.policy, deadline_seconds=FLIP_SECONDS))
            head, rows = self._planned(key, base, properties, (yield from perform(NewId())))
            if self._fits(head, rows, old):
                try:
                    yield from write(self.table, [head, *rows, *map(removal, old)], self.policy)
                except Absent:  # Of the head, as the next request tells; or of an old row, which need not be there.
                    pass
                else:
                    return
            try:
                yield from self._flip(head, rows, started, own)
            except Restart as restart:  # The rows stay for `collect`: a late request may name them yet.
                if (yield from begun.expired()):
                    raise unknown_outcome(own, key) from restart
            else:
                break
        yield from remove(self.table, old, self.policy)

    def _flip(self, head: Planned, rows: Sequence[Planned], started: Attempts, own: Identity) -> Protocol[None]:
        """Write the rows, and then the head."""
        per_batch = max(1, self.sizes.batch_bytes // (_encoded(self.sizes.row_bytes) + 1000))
        for group in grouped(rows, per_batch):
            yield from write(self.table, group, self.policy)
        if (yield from started.expired()):
            yield from remove(self.table, [each.operation.key for each in rows], self.policy)
            raise Unavailable(f"{head.operation.key}: the rows were not written within {FLIP_SECONDS} seconds")
        try:
            yield from write(self.table, [head], self.policy, identity=own)
        except Conflict:
            yield from remove(self.table, [each.operation.key for each in rows], self.policy)
            raise

    def _planned(
        self, key: EntityKey, base: Stored | None, properties: Properties | None, generation: str
    ) -> tuple[Planned, list[Planned]]:
        """Return the writes of a head and of its rows."""
        etag = None if base is None else base.etag
        ring = WriteIds() if base is None else WriteIds.of(base.properties)
        if properties is None:
            return Planned(Operation(Kind.DELETE, key, etag=etag), ring), []
        given = {**properties, "PartitionKey": key.partition_key, "RowKey": key.row_key}
        owner = f"{key.partition_key}/{key.row_key}"
        made = cut(owner, given, generation, compress=self.compress, marks=self.policy.marks, sizes=self.sizes)
        head = Operation(Kind.INSERT if base is None else Kind.REPLACE, key, made.head, etag)
        keys = made.content.keys(key) if made.content is not None else []
        rows = [Planned(Operation(Kind.PUT, *each)) for each in zip(keys, made.rows, strict=True)]
        return Planned(head, ring), rows

    def _fits(self, head: Planned, rows: Sequence[Planned], old: Sequence[EntityKey]) -> bool:
        """Tell whether a head, its rows and the removal of the old ones are one transaction, at least probably."""
        if 1 + len(rows) + len(old) > OPERATIONS_MAX:
            return False
        size = sum(1000 + sum(map(_encoded_value, each.operation.properties.values())) for each in (head, *rows))
        return size + 1000 * len(old) <= self.sizes.batch_bytes


class _Found(NamedTuple):
    head: Stored
    bag: Bag


def _old(base: Stored | None) -> list[EntityKey]:
    content = None if base is None else Content.of(base.properties)
    return [] if base is None or content is None else content.keys(base.key)


def _encoded(octets: int) -> int:
    """Return the length of octets in base64, with what stands around them."""
    return 4 * octets // 3 + 4


def _encoded_value(value: object) -> int:
    """Return the most octets that a value has in a request, with its name and type."""
    if isinstance(value, bytes):
        return _encoded(len(value)) + 600
    return 6 * value_size(value) + 600
