"""What crashes and other programs leave of large properties: blobs that no entity names, and names without a blob."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lazulite_patterns.auditing.finding import Finding
from lazulite_patterns.auditing.source import Source
from lazulite_patterns.effects.blobs import PART_BYTES, BlobFacts, BlobGet, BlobHead, BlobPage
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import Continuation, EntityKey, Found, Read, Stored
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.outcomes.discards import discard
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds, now
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.shapes.protocols.references import BlobReference, Owner, reference_of

ABSENT = "entity whose blob is absent"
CHANGED = "entity whose blob has other octets"
UNREADABLE = "entity whose reference to a blob cannot be read"
ORPHAN = "blob that no entity names"
_KEYS = ("PartitionKey", "RowKey")
_OWNER = "Owner"


@dataclass(frozen=True)
class LargeCheck:
    """Each entity that names a blob has it, with its length, and with its hash if that is wanted."""

    table: str
    container: str
    field: str
    hashes: bool = False
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen

    @property
    def tables(self) -> Sequence[str]:
        """The table."""
        return [self.table]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for an entity without its blob."""
        try:
            reference = reference_of(row.properties, self.field)
        except EntityFormatError as error:
            return [Finding(UNREADABLE, table, row.key, age_seconds(row, now), detail=str(error))]
        if reference is None:
            return []
        facts = yield from read(BlobHead(self.container, reference.name), (yield from begin(self.policy)))
        same = facts is not None and facts.length == reference.length
        if same and (not self.hashes or (yield from self._hash(reference)) == reference.sha256):
            return []
        kind = ABSENT if facts is None else CHANGED
        return [Finding(kind, table, row.key, age_seconds(row, now), detail=reference.name)]

    def _hash(self, reference: BlobReference) -> Protocol[str]:
        digest = hashlib.sha256()
        for start in range(0, reference.length, PART_BYTES):
            effect = BlobGet(self.container, reference.name, start)
            digest.update((yield from read(effect, (yield from begin(self.policy)))) or b"")
        return digest.hexdigest()


@dataclass(frozen=True)
class LargeBlobs:
    """The blobs of a table in a container, as the auditor reads them: rows whose PartitionKey is the name."""

    table: str
    container: str

    @property
    def name(self) -> str:
        """The beginning of the blobs' names, with the container."""
        return f"{self.container}/{self.table}"

    def page(self, continuation: Continuation | None, policy: Policy) -> Protocol[Found]:
        """Read one page of the list of blobs."""
        page = BlobPage(self.container, f"{self.table}/", None if continuation is None else continuation[0])
        found = yield from read(page, (yield from begin(policy)))
        return Found(tuple(map(_row, found.blobs)), None if found.continuation is None else (found.continuation, ""))

    def row(self, key: EntityKey, policy: Policy) -> Protocol[Stored | None]:
        """Read again what the service knows of a blob; None if it is absent."""
        facts = yield from read(BlobHead(self.container, key.partition_key), (yield from begin(policy)))
        return None if facts is None else _row(facts)


def _row(facts: BlobFacts) -> Stored:
    properties = {"PartitionKey": facts.name, "RowKey": "", _OWNER: Owner.of(facts.metadata)}
    return Stored(properties, facts.etag, facts.last_modified)


@dataclass(frozen=True)
class Collector:
    """Finds or deletes blobs that no entity names.

    Attributes:
        table: of the entities. Blobs of other tables stay.
        container: the name by which the driver knows the container.
        field: the property of the entities that names the blob. Blobs of other properties stay.
        policy: of each request.
        grace_seconds: the age of the blobs that are looked at.
    """

    table: str
    container: str
    field: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    grace_seconds: float = GRACE_SECONDS

    @property
    def tables(self) -> Sequence[Source]:
        """The blobs."""
        return [LargeBlobs(self.table, self.container)]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return a finding for a blob that no entity names. A writer may be about to name a new one."""
        if not (yield from self._is_orphan(row)):
            return []
        found = Finding(ORPHAN, table, row.key, age_seconds(row, now), "delete the blob", deletes=True)
        return [replace(found, repair=lambda policy: discard(self.container, row.key.partition_key, policy, row.etag))]

    def collect(self) -> Protocol[int]:
        """Delete blobs that are older than the grace and that no entity names; return their number."""
        continuation: Continuation | None = None
        count = 0
        while True:
            found = yield from LargeBlobs(self.table, self.container).page(continuation, self.policy)
            for row in found.entities:
                if age_seconds(row, (yield from now())) > self.grace_seconds and (yield from self._is_orphan(row)):
                    count += yield from discard(self.container, row.key.partition_key, self.policy, row.etag)
            if (continuation := found.continuation) is None:
                return count

    def _is_orphan(self, blob: Stored) -> Protocol[bool]:
        """Tell whether the entity of a blob does not name it. A property that cannot be read may name it."""
        owner = blob.properties[_OWNER]
        if not isinstance(owner, Owner) or (owner.table, owner.field) != (self.table, self.field):
            return False
        effect = Read(self.table, owner.key, (*_KEYS, self.field))
        row = yield from read(effect, (yield from begin(self.policy)))
        try:
            reference = None if row is None else reference_of(row.properties, self.field)
        except EntityFormatError:
            return False
        return reference is None or reference.name != blob.key.partition_key
