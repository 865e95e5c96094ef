"""Every interleaving of writers, a reader and a collector of blobs, with crashes; each rule is needed."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from lazulite_patterns.effects.blobs import BlobDelete, BlobPut
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored, Write
from lazulite_patterns.entities.bags import Bag, Bags
from lazulite_patterns.outcomes import Policy, Unavailable
from lazulite_patterns.shapes import Inconsistent
from lazulite_patterns.shapes.protocols.large import LargeProtocol, Upload, Uploaded
from lazulite_patterns.shapes.protocols.orphans import Collector
from lazulite_patterns.shapes.protocols.references import BlobReference, reference_of, reference_text
from lazulite_patterns.shapes.protocols.sinks import Sink
from lazulite_patterns.table.session import Session
from lazulite_patterns_simulation import Faults, InvariantError, Simulation, World, explore

from .model_time import Timed, is_over, passing

KEY = EntityKey("p", "e")
UNMARKED = Policy(marks=0)
SESSION: Session[Bag] = Session("t", Bags(), UNMARKED)
Process = Callable[[], Protocol[object]]


class Overwriting(LargeProtocol[Bag]):
    """Has one name for all blobs."""

    def _uploaded(self, key: EntityKey, upload: Upload) -> Protocol[Uploaded]:
        uploaded = yield from super()._uploaded(key, upload)
        assert isinstance(upload.data, bytes)
        with suppress(Rejected):
            yield from perform(BlobDelete("c", "t/one"))
        yield from perform(BlobPut("c", "t/one", upload.data))
        reference = uploaded.reference
        return uploaded._replace(reference=BlobReference("t/one", reference.length, reference.sha256))


class Hasty(LargeProtocol[Bag]):
    """Deletes the old blob before the entity names the new one."""

    def _named(self, key: EntityKey, base: Stored, uploaded: Uploaded, attempts: int) -> Protocol[Stored]:
        yield from self._removed(self._old(base))
        return (yield from super()._named(key, base, uploaded, attempts))


class Blind(LargeProtocol[Bag]):
    """Names its blob whatever the entity names: it may be that of another writer, which stays."""

    def _named(self, key: EntityKey, base: Stored, uploaded: Uploaded, attempts: int) -> Protocol[Stored]:
        properties = {self.field: reference_text(uploaded.reference)}
        yield from perform(Write("t", Operation(Kind.MERGE, key, properties)))
        return base


class EntityFirst(LargeProtocol[Bag]):
    """Names the blob before it is uploaded."""

    def put(self, key: EntityKey, upload: Upload, attempts: int = 8) -> Protocol[BlobReference]:
        base = yield from self._base(key)
        reference = BlobReference("t/early", 2, "")
        merge = Operation(Kind.MERGE, key, {self.field: reference_text(reference)}, base.etag)
        yield from perform(Write("t", merge))
        assert isinstance(upload.data, bytes)
        yield from perform(BlobPut("c", "t/early", upload.data))
        return reference


class Stubborn(LargeProtocol[Bag]):
    """Does not read the entity again."""

    def _passed_on(self, reference: BlobReference, sink: Sink) -> Protocol[bool]:
        if not (yield from super()._passed_on(reference, sink)):
            raise Inconsistent
        return True


class Impatient(LargeProtocol[Bag]):
    """Its collector deletes blobs that no entity names at once."""


def putting(kind: type[LargeProtocol[Bag]], data: bytes) -> Process:
    return lambda: kind(SESSION, "c", "Photo", UNMARKED).put(KEY, Upload(data, "text/plain"), 2)


def deletion(kind: type[LargeProtocol[Bag]]) -> Process:
    return lambda: kind(SESSION, "c", "Photo", UNMARKED).delete(KEY, 2)


def reading(kind: type[LargeProtocol[Bag]]) -> Process:
    def process() -> Protocol[None]:
        try:
            found = yield from kind(SESSION, "c", "Photo", UNMARKED, part_bytes=1).get(KEY)
        except (Inconsistent, Unavailable) as error:
            raise AssertionError("a reader met an entity without its blob") from error
        assert found is None or found.data in {b"00", b"11", b"22"}, "a torn read"

    return process


def collecting(kind: type[LargeProtocol[Bag]]) -> Process:
    def process() -> Protocol[object]:
        """Ask the model whether the grace of all blobs so far is over, instead of a clock."""
        over = kind is Impatient or (yield from is_over())
        return (yield from Collector("t", "c", "Photo", UNMARKED, -1 if over else 600).collect())

    return process


def start() -> World:
    simulation = Simulation()
    simulation.world = Timed()
    entity = Bag(PartitionKey="p", RowKey="e")
    simulation.run(LargeProtocol(SESSION, "c", "Photo", UNMARKED).insert(entity, Upload(b"00", "text/plain")))
    return simulation.world


def resolves(world: World) -> None:
    """The blob that the entity names is there."""
    row = world.entity("t", KEY)
    if row is None:
        return
    reference = reference_of(row.properties, "Photo")
    assert reference is not None
    assert reference.name in {each.name for each in world.blobs("c")}, "the blob is absent"


def scenarios(kind: type[LargeProtocol[Bag]]) -> list[list[Process]]:
    one, two = putting(kind, b"11"), putting(kind, b"22")
    return [
        [one, two, reading(kind)],
        [one, deletion(kind), reading(kind)],
        [one, collecting(kind)],
        [one, two, collecting(kind), passing],
    ]


@pytest.mark.parametrize("number", range(4))
def test_the_blob_of_an_entity_is_there_at_every_instant(number: int) -> None:
    explored = explore(start(), scenarios(LargeProtocol)[number], resolves)
    assert explored.states_count > 10


def test_an_insert_whose_answer_is_lost_begins_again_when_the_entity_is_deleted() -> None:
    session: Session[Bag] = Session("t", Bags(), Policy())

    def insertion() -> Protocol[None]:
        """Insert, and note which blob the caller gets."""
        entity = Bag(PartitionKey="p", RowKey="e")
        inserted = yield from LargeProtocol(session, "c", "Photo").insert(entity, Upload(b"00", "text/plain"))
        yield from perform(Write("returned", Operation(Kind.INSERT, EntityKey("blob", ""), {"Name": inserted.name})))

    def named(world: World) -> None:
        resolves(world)
        returned, row = world.entity("returned", EntityKey("blob", "")), world.entity("t", KEY)
        reference = None if row is None else reference_of(row.properties, "Photo")
        assert returned is None or reference is None or returned.properties["Name"] == reference.name, "another blob"

    processes = [insertion, deletion(LargeProtocol), reading(LargeProtocol)]
    for faults in (Faults(losses=1), Faults(losses=2), Faults(losses=1)):
        assert explore(Timed(), processes, named, faults=faults).complete
    # A request that arrives after all others writes the entity once more, with the blob of its time.
    assert explore(Timed(), processes, resolves, faults=Faults(lates=1)).complete


@pytest.mark.parametrize("mutation", [Overwriting, Hasty, EntityFirst, Impatient, Stubborn])
def test_each_rule_is_needed(mutation: type[LargeProtocol[Bag]]) -> None:
    def broken(processes: list[Process]) -> bool:
        try:
            explore(start(), processes, resolves)
        except (InvariantError, AssertionError):
            return True
        return False

    assert any(map(broken, scenarios(mutation)))


def tidy(kind: type[LargeProtocol[Bag]]) -> None:
    """Explore two writers without a crash: at the end the one blob is that of the entity."""

    def ended(data: bytes) -> Process:
        def process() -> Protocol[None]:
            yield from putting(kind, data)()
            yield from perform(Write("done", Operation(Kind.PUT, EntityKey("d", data.decode()))))

        return process

    def alone(world: World) -> None:
        resolves(world)
        if len(world.entities("done")) == 2:
            assert len(world.blobs("c")) == 1, "a blob is left"

    assert explore(start(), [ended(b"11"), ended(b"22")], alone, faults=Faults()).ends_count >= 1


def test_without_crashes_no_blob_is_left() -> None:
    tidy(LargeProtocol)
    with pytest.raises(InvariantError, match="a blob is left"):
        tidy(Blind)


def test_a_commit_is_not_sent_after_its_deadline() -> None:
    simulation = Simulation()
    protocol = LargeProtocol(SESSION, "c", "Photo", UNMARKED)

    class Slow:
        """Each commit meets another writer, and takes long."""

        def before(self, effect: object) -> None:
            if isinstance(effect, Write):
                write = Write("t", Operation(Kind.PUT, KEY))
                simulation.world, _ = simulation.world.perform(write)
                simulation.now_seconds += 151

        def after(self, effect: object) -> None: ...

    simulation.run(SESSION.insert(Bag(PartitionKey="p", RowKey="e")))
    simulation.runtime.failpoints = Slow()
    with pytest.raises(Unavailable, match="deadline"):
        simulation.run(protocol.put(KEY, Upload(b"11", "text/plain")))
    assert simulation.world.blobs("c") == [], "nothing is left"
