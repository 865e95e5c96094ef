"""What crashes and other programs leave of large properties: blobs that no entity names, and names without a blob."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lazulite_patterns.audit.finding import Finding
from lazulite_patterns.effects.ambient import UtcNow
from lazulite_patterns.effects.blobs import PART_BYTES, BlobFacts, BlobGet, BlobHead, BlobPage
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.tables import Read, Stored
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.outcomes.discards import discard
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds, blob_age_seconds
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.shapes.protocols.references import BlobReference, Owner, reference_of

ABSENT = "entity whose blob is absent"
CHANGED = "entity whose blob has other octets"
UNREADABLE = "entity whose reference to a blob cannot be read"
_KEYS = ("PartitionKey", "RowKey")


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
class Collector:
    """Deletes blobs that no entity names.

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

    def collect(self) -> Protocol[int]:
        """Delete blobs that are older than the grace and that no entity names; return their number."""
        continuation: str | None = None
        count = 0
        while True:
            now = yield from perform(UtcNow())
            page = BlobPage(self.container, f"{self.table}/", continuation)
            found = yield from read(page, (yield from begin(self.policy)))
            for facts in found.blobs:
                if blob_age_seconds(facts, now) > self.grace_seconds and (yield from self._is_orphan(facts)):
                    count += yield from discard(self.container, facts.name, self.policy, facts.etag)
            if (continuation := found.continuation) is None:
                return count

    def _is_orphan(self, facts: BlobFacts) -> Protocol[bool]:
        """Tell whether the entity of a blob does not name it. A property that cannot be read may name it."""
        owner = Owner.of(facts.metadata)
        if owner is None or (owner.table, owner.field) != (self.table, self.field):
            return False
        effect = Read(self.table, owner.key, (*_KEYS, self.field))
        row = yield from read(effect, (yield from begin(self.policy)))
        try:
            reference = None if row is None else reference_of(row.properties, self.field)
        except EntityFormatError:
            return False
        return reference is None or reference.name != facts.name
