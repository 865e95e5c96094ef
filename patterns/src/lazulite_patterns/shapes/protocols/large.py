"""Octets of an entity in a blob: uploaded first, and then named by the entity.

1. Read the entity. Its ETag is the base.
2. Upload a blob with a new name, which is never used again. No entity names it yet.
3. Insert, merge or delete the entity, If-Match the base. This is the commit. It is not sent later than `FLIP_SECONDS`
   after step 2. If another writer was faster, the entity is read again.
4. Delete the blob that the entity named before.

A blob is never changed. So the name in an entity leads to the whole of what one writer uploaded. A crash leaves a blob
that no entity names: before step 3 the new one, after it the old one. `collect` deletes blobs that are older than
`GRACE_SECONDS` and that their entity does not name. No writer can commit them any more. This relies on time, as fat
entities do.

A reader reads the entity, and then the blob. If the blob is absent, the reader reads the entity again: it names another
blob then.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from lazulite_patterns.effects.blobs import PART_BYTES, BlobGet, BlobPut, ByteStream
from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError
from lazulite_patterns.outcomes.discards import discard
from lazulite_patterns.outcomes.errors import Absent, Conflict, Restart, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, begin, read
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Identity, Joined, identity, unknown_outcome
from lazulite_patterns.shapes.errors import Inconsistent
from lazulite_patterns.shapes.protocols.references import BlobReference, Hashing, Owner, reference_of, reference_text
from lazulite_patterns.shapes.protocols.sinks import Memory, Sink
from lazulite_patterns.table.session import Session

E = TypeVar("E")
FLIP_SECONDS = 300
"""The longest from an upload to its commit. Less than the grace, by the time that a request may take."""
_EXISTS, _BEYOND = 409, 416
_NOT_NAMED = (Conflict, EntityValueError, Unavailable)
"""Errors after which no entity names the blob that was uploaded."""


class Loaded(NamedTuple, Generic[E]):
    """An entity with what its blob has; None if it names no blob."""

    entity: E
    data: bytes | None
    reference: BlobReference | None


class Upload(NamedTuple):
    """What shall be in a blob: octets, or a stream from where it is."""

    data: bytes | ByteStream
    content_type: str


class Uploaded(NamedTuple):
    """A blob that no entity names yet, and until when one may."""

    reference: BlobReference
    flip: Attempts


@dataclass(frozen=True)
class LargeProtocol(Generic[E]):
    """Makes the protocols of `Large`.

    Attributes:
        session: of the table.
        container: the name by which the driver knows the container.
        field: the property of the entities that names the blob.
        policy: of each request.
        part_bytes: what one request reads of a blob.
    """

    session: Session[E]
    container: str
    field: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    part_bytes: int = PART_BYTES

    def __post_init__(self) -> None:
        """Check the property.

        Raises:
            EntityValueError: the service takes none of this name.
        """
        limits.check_properties("Large", {self.field: ""})

    def get(self, key: EntityKey) -> Protocol[Loaded[E] | None]:
        """Read an entity and its blob; None if the entity is absent."""
        memory = Memory()
        row = yield from self.load(key, memory)
        if row is None:
            return None
        reference = reference_of(row.properties, self.field)
        return Loaded(self.session.decode(row), None if reference is None else memory.data, reference)

    def load(self, key: EntityKey, sink: Sink) -> Protocol[Stored | None]:
        """Read an entity, and pass its blob on part by part; again from the start if a writer is faster."""
        attempts = yield from begin(self.policy)
        row = yield from self._row(key)
        while row is not None and (reference := reference_of(row.properties, self.field)) is not None:
            yield from sink.restart()
            if (yield from self._passed_on(reference, sink)):
                return row
            row = yield from self._row(key)
            if row is not None and reference_of(row.properties, self.field) == reference:
                raise Inconsistent(f"{key}: the blob {reference.name} is absent")
            if (yield from attempts.expired()):
                raise Unavailable(f"{key}: other writers were faster, each time")
        return row

    def insert(self, entity: E, upload: Upload) -> Protocol[BlobReference]:
        """Write an entity that must be absent, with a blob."""
        planned = self.session.planned(Kind.INSERT, entity)
        key, own = planned.operation.key, (yield from identity())
        started = yield from begin(self.policy)
        while True:
            uploaded = yield from self._uploaded(key, upload)
            try:
                named = {**planned.operation.properties, self.field: reference_text(uploaded.reference)}
                write = self.session.fitting(Planned(replace(planned.operation, properties=named)))
                yield from self.session.write([write], joined=Joined(within=uploaded.flip, identity=own))
            except Restart as restart:  # The blob stays for `collect`: a late request may name it yet.
                if (yield from started.expired()):
                    raise unknown_outcome(own, key) from restart
            except _NOT_NAMED as error:
                if own.unsure:
                    raise unknown_outcome(own, key) from error
                yield from self._removed(uploaded.reference)
                raise
            else:
                return (yield from self._inserted(key, uploaded.reference, own))

    def _inserted(self, key: EntityKey, uploaded: BlobReference, own: Identity) -> Protocol[BlobReference]:
        """Return what an inserted entity names: after lost answers, it may be the blob of an earlier attempt."""
        row = (yield from self._row(key)) if own.unsure else None
        reference = self._old(row) if row is not None and own.is_of(row) else None
        return reference or uploaded

    def put(self, key: EntityKey, upload: Upload, attempts: int = 8) -> Protocol[BlobReference]:
        """Give an entity another blob, whatever it names. Its other properties stay."""
        base = yield from self._base(key)
        uploaded = yield from self._uploaded(key, upload)
        try:
            base = yield from self._named(key, base, uploaded, attempts)
        except _NOT_NAMED:
            yield from self._removed(uploaded.reference)
            raise
        yield from self._removed(self._old(base))
        return uploaded.reference

    def clear(self, key: EntityKey, attempts: int = 8) -> Protocol[bool]:
        """Take the blob from an entity; False if it names none."""

        def without(base: Stored) -> Operation | None:
            kept = {name: value for name, value in base.properties.items() if name != self.field}
            return None if len(kept) == len(base.properties) else Operation(Kind.REPLACE, key, kept, base.etag)

        return (yield from self._unnamed(key, without, attempts))

    def delete(self, key: EntityKey, attempts: int = 8) -> Protocol[bool]:
        """Delete an entity with its blob; False if it is absent."""
        return (yield from self._unnamed(key, lambda base: Operation(Kind.DELETE, key, etag=base.etag), attempts))

    def _row(self, key: EntityKey) -> Protocol[Stored | None]:
        limits.check_key("Large", key)
        return (yield from self.session.stored(key))

    def _base(self, key: EntityKey) -> Protocol[Stored]:
        if (base := (yield from self._row(key))) is None:
            raise Absent(f"{key} is absent")
        return base

    def _named(self, key: EntityKey, base: Stored, uploaded: Uploaded, attempts: int) -> Protocol[Stored]:
        """Let an entity name a blob, and return the row that it was before."""
        properties = {self.field: reference_text(uploaded.reference)}
        limits.check(str(key), {**properties, "PartitionKey": key.partition_key, "RowKey": key.row_key})
        for number in range(attempts):
            merge = Operation(Kind.MERGE, key, properties, base.etag)
            try:
                write = self.session.fitting(Planned(merge, WriteIds.of(base.properties)))
                yield from self.session.write([write], [base], Joined(within=uploaded.flip))
            except Absent:
                raise
            except Conflict:
                if number == attempts - 1:
                    raise
            else:
                return base
            base = yield from self._base(key)
        raise ValueError("attempts is at least 1")

    def _unnamed(self, key: EntityKey, change: Callable[[Stored], Operation | None], attempts: int) -> Protocol[bool]:
        """Let an entity name its blob no more, and delete the blob; False if there is nothing to write."""
        for number in range(attempts):
            base = yield from self._row(key)
            if base is None or (operation := change(base)) is None:
                return False
            try:
                yield from self.session.write([Planned(operation, WriteIds.of(base.properties))], [base])
            except Conflict:
                if number == attempts - 1:
                    raise
            else:
                yield from self._removed(self._old(base))
                return True
        raise ValueError("attempts is at least 1")

    def _uploaded(self, key: EntityKey, upload: Upload) -> Protocol[Uploaded]:
        """Upload a blob. Each attempt has a name of its own: after a lost answer, the blob may be old already."""
        owner = Owner(self.session.name, key, self.field)
        data: Any = upload.data
        start = data.tell() if hasattr(data, "seek") and data.seekable() else None
        attempts = yield from begin(self.policy)
        unsure: list[str] = []
        while True:
            name = owner.blob_name((yield from perform(NewId())))
            source = Hashing(data)
            octets: bytes | ByteStream = data if isinstance(data, bytes) else source
            try:
                put = BlobPut(self.container, name, octets, owner.metadata, upload.content_type)
                yield from attempts.perform(put)
                break
            except ResultUnknown as unknown:
                error = unknown
            except Rejected as rejected:
                if rejected.status != _EXISTS:  # The client sent the last request again: it was done before.
                    raise
                error = ResultUnknown(str(rejected))
            unsure.append(name)
            if not (isinstance(data, bytes) or start is not None) or not (yield from attempts.wait(error)):
                raise Unavailable(f"{key}: the blob was not uploaded: {error}")
            if start is not None:
                yield from perform(Call(data.seek, (start,)))
        flip = yield from begin(replace(self.policy, deadline_seconds=FLIP_SECONDS))
        for each in unsure:
            yield from self._discarded(each)
        if isinstance(data, bytes):
            length, digest = len(data), hashlib.sha256(data).hexdigest()
        else:
            length, digest = source.length, source.sha256
        return Uploaded(BlobReference(name, length, digest, upload.content_type), flip)

    def _passed_on(self, reference: BlobReference, sink: Sink) -> Protocol[bool]:
        """Read a blob, and check it; False if it is absent.

        Raises:
            Inconsistent: the blob has other octets than the entity says.
        """
        digest, start = hashlib.sha256(), 0
        while start < reference.length:
            count = min(self.part_bytes, reference.length - start)
            try:
                effect = BlobGet(self.container, reference.name, start, count)
                part = yield from read(effect, (yield from begin(self.policy)))
            except Rejected as rejected:
                if rejected.status != _BEYOND:
                    raise
                break
            if part is None:
                return False
            start += len(part)
            digest.update(part)
            yield from sink.write(part)
        if start != reference.length or digest.hexdigest() != reference.sha256:
            raise Inconsistent(f"the blob {reference.name} has other octets than its entity says")
        return True

    def _old(self, base: Stored) -> BlobReference | None:
        """Return the blob that a row names; None if it names none, or its property is of another program."""
        try:
            return reference_of(base.properties, self.field)
        except EntityFormatError:
            return None

    def _removed(self, reference: BlobReference | None) -> Protocol[None]:
        if reference is not None:
            yield from self._discarded(reference.name)

    def _discarded(self, name: str) -> Protocol[None]:
        """Delete a blob that no entity names. If that fails, it is left to `collect`."""
        with suppress(Rejected, Unavailable):
            yield from discard(self.container, name, self.policy)
