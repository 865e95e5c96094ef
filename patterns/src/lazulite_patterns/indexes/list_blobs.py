"""Lists of entities in blobs: a blob is a list of any length, which is read and written as the one row of a list is.

The name is `<table>/<PartitionKey>`, with the PartitionKey that a row would have. So the names of lists begin alike if
their values do. The blob has the items as JSON. Each write is conditional: the blob has the ETag that was read, or is
absent.
"""

from dataclasses import dataclass

from lazulite_patterns.effects.blobs import (
    PART_BYTES,
    BlobDelete,
    BlobFacts,
    BlobGet,
    BlobHead,
    BlobPage,
    BlobPut,
    segment,
    text_of,
)
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.tables import Continuation, EntityKey, Found, Kind, Operation, Stored
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.indexes.entries import ENTRIES, ENTRY, Entry
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.outcomes.errors import Conflict, OutcomeUnknown
from lazulite_patterns.outcomes.retries import Policy, begin, read

NAME_MAX = 1024
"""The most characters of a blob's name."""
LIST_BYTES_MAX = 64 * 1024 * 1024
"""The most octets of a list: what the SDK uploads by one request."""
_FIRST = "0000"
_CHANGED = frozenset({404, 409, 412})


def name(table: str, partition_key: str) -> str:
    """Return the name of a list's blob."""
    return f"{table}/{segment(partition_key)}"


def rows(entry: Entry, policy: Policy) -> Protocol[list[Stored]]:
    """Read the list that an entry is in, as one row; none if it is absent."""
    head = BlobHead(entry.container, name(entry.table, entry.key.partition_key))
    while (facts := (yield from read(head, (yield from begin(policy))))) is not None:
        row = yield from _row(entry.container, facts, entry.key.partition_key, policy)
        if row is not None:
            return [row]
    return []


def page(
    table: str, container: str, keys: KeyRange, continuation: Continuation | None, policy: Policy
) -> Protocol[Found]:
    """Read the lists of some values, as rows.

    Args:
        table: of the entities.
        container: the name by which the driver knows the container.
        keys: the PartitionKeys that rows of these lists would have.
        continuation: where the page begins; None for the first one.
        policy: of each request.
    """
    first = f"{table}/"
    effect = BlobPage(container, first + segment(keys.lower), None if continuation is None else continuation[0])
    found = yield from read(effect, (yield from begin(policy)))
    out = []
    for facts in found.blobs:
        try:
            partition_key = text_of(facts.name.removeprefix(first))
        except ValueError:
            continue  # A blob of another program.
        if partition_key in keys:
            row = yield from _row(container, facts, partition_key, policy)
            entry = Entry(table, EntityKey(partition_key, ""), container=container)
            out += [row] if row is not None else (yield from rows(entry, policy))
    return Found(tuple(out), None if found.continuation is None else (found.continuation, ""))


@dataclass(frozen=True)
class BlobLists:
    """The lists of a table in a container, as the auditor reads them."""

    table: str
    container: str

    @property
    def name(self) -> str:
        """The beginning of the blobs' names, with the container."""
        return f"{self.container}/{self.table}/{ENTRY}"

    def page(self, continuation: Continuation | None, policy: Policy) -> Protocol[Found]:
        """Read one page of lists."""
        return page(self.table, self.container, ENTRIES, continuation, policy)

    def row(self, key: EntityKey, policy: Policy) -> Protocol[Stored | None]:
        """Read a list again; None if it is absent."""
        return next(iter((yield from rows(Entry(self.table, key, container=self.container), policy))), None)


def write(entry: Entry, operation: Operation, items: bytes, policy: Policy) -> Protocol[None]:
    """Write a list, or delete it.

    Args:
        entry: one that is in the list.
        operation: the write of the row that stands for the blob.
        items: what the blob shall have.
        policy: of the request.

    Raises:
        Conflict: another writer was faster, or the answer was lost: what is there now tells.
        OutcomeUnknown: there was no answer before the deadline.
        EntityValueError: the list exceeds 64 MiB.
    """
    if len(items) > LIST_BYTES_MAX:
        raise EntityValueError(f"the list of {entry.key} has {len(items):,} bytes; {LIST_BYTES_MAX:,} fit")
    blob = name(entry.table, entry.key.partition_key)
    attempts = yield from begin(policy)
    try:
        if operation.kind is Kind.DELETE:
            yield from attempts.perform(BlobDelete(entry.container, blob, operation.etag))
        else:
            put = BlobPut(entry.container, blob, items, content_type="application/json", etag=operation.etag)
            yield from attempts.perform(put)
    except Rejected as rejected:
        if rejected.status not in _CHANGED or rejected.code == "ContainerNotFound":
            raise
        raise Conflict(f"the blob {blob} was changed") from rejected
    except ResultUnknown as unknown:
        if not (yield from attempts.wait(unknown)):
            raise OutcomeUnknown(str(unknown)) from unknown
        raise Conflict(f"whether the blob {blob} was changed is not known") from unknown


def _row(container: str, facts: BlobFacts, partition_key: str, policy: Policy) -> Protocol[Stored | None]:
    """Read a list; None if it was changed meanwhile. A blob that is too long for a list is not read to its end."""
    parts: list[bytes] = []
    for start in range(0, min(facts.length, LIST_BYTES_MAX), PART_BYTES):
        effect = BlobGet(container, facts.name, start, PART_BYTES, facts.etag)
        try:
            part = yield from read(effect, (yield from begin(policy)))
        except Rejected as rejected:
            if rejected.status not in _CHANGED:
                raise
            return None
        if part is None:
            return None
        parts.append(part)
    keys = {"PartitionKey": partition_key, "RowKey": _FIRST}
    return Stored({**keys, "List": b"".join(parts)}, facts.etag, facts.last_modified)
