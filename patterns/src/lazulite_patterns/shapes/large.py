# Generated from lazulite_patterns/aio/shapes/large.py. Do not edit this module: edit that one, and run `make twins`.
"""Large properties in blobs, with a synchronous client."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, Generic, TypeVar

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.blobs import ByteStream
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.outcomes.grace import ARRIVAL_SECONDS, GRACE_SECONDS
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.protocols.large import FLIP_SECONDS, LargeProtocol, Loaded, Upload
from lazulite_patterns.shapes.protocols.orphans import Collector, LargeCheck
from lazulite_patterns.shapes.protocols.references import BlobReference, checked_content_type
from lazulite_patterns.shapes.protocols.sinks import File
from lazulite_patterns.table.table import Table

if TYPE_CHECKING:
    from azure.storage.blob import ContainerClient

E = TypeVar("E")
_OCTETS = "application/octet-stream"


class Large(Generic[E]):
    """Entities with a property in a blob of its own. The entity names the blob, its length and its SHA-256.

    Attributes:
        table: the entities. What it writes besides the property keeps the blob.
        client: the SDK's client of the container.
        driver: what runs the protocols; `audit` needs it.
        policy: deadlines of requests to blobs; `audit` has the same.

    Writes raise `OutcomeUnknown`, as those of the table do. Every method raises `Rejected` for what the service
    rejects, and `Unavailable` if there is no answer before the deadline.
    """

    def __init__(
        self,
        table: Table[E],
        container: "ContainerClient",
        field: str,
        *,
        audit_hashes: bool = False,
        policy: Policy | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        """Take the table and the SDK's client.

        Args:
            table: of the entities.
            container: the client of the container. Its own retries are used for blocks of streams only.
            field: the property that names the blob. A class declares it as
                `Column[BlobReference | None] = column(form="json", default=None)`, or not at all.
            audit_hashes: whether `audit` reads the blobs, to compare their hashes.
            policy: deadlines of requests to blobs; None for that of the table.
            runtime: clock, randomness and failpoints, for tests.

        Raises:
            ValueError: a deadline is so long that a writer may meet the collector.
        """
        session = table.session
        policy = policy or session.policy
        longest = GRACE_SECONDS - FLIP_SECONDS - ARRIVAL_SECONDS
        if max(policy.deadline_seconds, session.policy.deadline_seconds) >= longest:
            raise ValueError(f"with blobs, the deadline is less than {longest} seconds")
        self.table, self.policy = table, policy
        self.client = container
        name = container.container_name
        self.driver = Driver(table.clients, runtime, containers={**table.containers, name: container})
        self._protocol = LargeProtocol(session, name, field, policy)
        self._collector = Collector(session.name, name, field, policy)
        self._check = LargeCheck(session.name, name, field, audit_hashes, policy)

    def get(self, key: E | EntityKey) -> Loaded[E] | None:
        """Return an entity and what its blob has; None if the entity is absent.

        Raises:
            Inconsistent: another program changed or deleted the blob.
        """
        return self.driver.run(self._protocol.get(self._key(key)))

    def save(self, key: E | EntityKey, file: BinaryIO) -> bool:
        """Write the blob of an entity to a file, from where that is; False if there is no entity or it names no blob.

        Args:
            key: of the entity, or the entity.
            file: can be positioned and cut off. It is written part by part.

        Raises:
            Inconsistent: another program changed or deleted the blob.
        """
        row = self.driver.run(self._protocol.load(self._key(key), File(file)))
        return row is not None and self._protocol.field in row.properties

    def insert(self, entity: E, data: bytes | ByteStream, content_type: str = _OCTETS) -> BlobReference:
        """Write an entity that must be absent, with a blob, and return what it names.

        Args:
            entity: the entity.
            data: octets; or a stream, which is sent block by block. One that can be positioned is read again if
                sending fails.
            content_type: of the blob, such as `image/jpeg`.

        Raises:
            Exists: the entity is there. Nothing is left of this write.
        """
        upload = Upload(data, checked_content_type(content_type))
        return self.driver.run(self._protocol.insert(entity, upload))

    def put(self, key: E | EntityKey, data: bytes | ByteStream, content_type: str = _OCTETS) -> BlobReference:
        """Give an entity another blob, whatever it names, and return what it names now. Arguments are as of `insert`.

        Raises:
            Absent: there is no such entity. Nothing is left of this write.
            Conflict: other writers were faster, each of eight times. Nothing is left of this write.
        """
        upload = Upload(data, checked_content_type(content_type))
        return self.driver.run(self._protocol.put(self._key(key), upload))

    def clear(self, key: E | EntityKey) -> bool:
        """Take the blob from an entity, and delete it; False if there is no entity or it names no blob."""
        return self.driver.run(self._protocol.clear(self._key(key)))

    def delete(self, key: E | EntityKey) -> bool:
        """Delete an entity with its blob; False if it is absent."""
        return self.driver.run(self._protocol.delete(self._key(key)))

    def collect(self) -> int:
        """Delete the blobs that no entity names, and return their number; none younger than 10 minutes."""
        return self.driver.run(self._collector.collect())

    def checks(self) -> Sequence[Check]:
        """Return what `audit` examines: entities whose blob is absent or another one, and blobs that none names."""
        return [self._check, self._collector]

    def _key(self, key: E | EntityKey) -> EntityKey:
        return self.table.session.key(key)
