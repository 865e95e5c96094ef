"""Logs in append blobs: each record once, in order, found by its time; in memory and on the service."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import ContainerClient
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite_patterns.aio.shapes import BlobLog as AsyncBlobLog
from lazulite_patterns.effects.blobs import Append, AppendCreate, BlobDelete, BlobGet, BlobSetMetadata
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Write
from lazulite_patterns.outcomes import Policy, Unavailable
from lazulite_patterns.shapes import BlobLog, Inconsistent, LogRecord
from lazulite_patterns.shapes.protocols.blob_log import BLOCK_BYTES_MAX, Block, LogWriter, Open
from lazulite_patterns.shapes.protocols.log_format import FIRST, LAST, LogNames, line, record_of, span
from lazulite_patterns.shapes.protocols.log_reading import LogReader
from lazulite_patterns_simulation import Crash, Fault, FaultAt, Simulation, World, every_fault, explore

NAMES = LogNames("web", "hour")
START = datetime(2014, 7, 31, 18, 59, 58, tzinfo=UTC)


class Clock(Simulation):
    """A simulation whose time of the day is set."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.time = START
        self.runtime.utc_now = lambda: self.time


def writer(kind: type[LogWriter] = LogWriter, *, blocks_max: int = 50_000, flush_bytes: int = 1000) -> LogWriter:
    return kind("c", NAMES, flush_bytes, 5, blocks_max=blocks_max)


def read(simulation: Clock, first: datetime, last: datetime, part_bytes: int = 4096) -> list[LogRecord]:
    reader = LogReader("c", NAMES, part_bytes=part_bytes)
    wanted = span(first, last)
    found: list[LogRecord] = []
    for day in NAMES.days(wanted):
        for cursors in simulation.run(reader.periods(day, wanted)):
            while page := simulation.run(reader.page(cursors, wanted)):
                found += page
    return found


def everything(simulation: Clock) -> list[object]:
    return [each.record for each in read(simulation, START - timedelta(days=1), START + timedelta(days=1))]


Written = tuple[int, int, bool]
"""What a writer of a number does: it appends after some seconds, and flushes or not."""


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 600, 3600, 86_400]), st.booleans()), max_size=20),
    st.integers(1, 200),
    st.integers(0, 200_000),
    st.integers(0, 200_000),
)
@example([(0, 3600, True), (0, 0, True)], 40, 3600, 3600)
def test_a_range_is_what_a_filter_of_all_records_finds(
    written: list[Written], part_bytes: int, start: int, length: int
) -> None:
    simulation = Clock()
    writers = [writer(blocks_max=2, flush_bytes=100) for _ in range(3)]
    records: list[LogRecord] = []
    for number, (which, seconds, flushes) in enumerate(written):
        simulation.time += timedelta(seconds=seconds)
        simulation.run(writers[which].append({"n": number, "text": "x" * number}))
        records.append(LogRecord(simulation.time, {"n": number, "text": "x" * number}))
        if flushes:
            simulation.run(writers[which].flush())
    for each in writers:
        simulation.run(each.close())
    first, last = START + timedelta(seconds=start), START + timedelta(seconds=start + length)
    found = read(simulation, first, last, part_bytes)
    expected = [each for each in records if first <= each.time <= last]
    assert [each.time for each in found] == [each.time for each in expected], "oldest first"
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_a_blob_has_the_records_of_its_period_and_then_its_times() -> None:
    simulation, log = Clock(), writer(blocks_max=2)
    for number in range(5):
        simulation.run(log.append(number))
        simulation.run(log.flush())
        simulation.time += timedelta(seconds=1)
    blobs = simulation.world.blobs("c")
    assert [each.name for each in blobs] == [
        "web/2014/07/31/1800/000001.log",
        "web/2014/07/31/1900/000001.log",
        "web/2014/07/31/1900/000002.log",
    ]
    times = [(each.metadata[FIRST][14:19], each.metadata.get(LAST, "")[14:19]) for each in blobs]
    assert times == [("59:58", "59:59"), ("00:00", "00:01"), ("00:02", "")], "the last one is still written to"
    simulation.run(log.close())
    assert LAST in simulation.world.blobs("c")[-1].metadata
    assert everything(simulation) == [0, 1, 2, 3, 4]


class Reads:
    """Counts the blobs that are read."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def before(self, effect: Effect[object]) -> None:
        if isinstance(effect, BlobGet):
            self.names.append(effect.name)

    def after(self, effect: Effect[object]) -> None: ...


def test_blobs_of_other_times_are_not_read() -> None:
    simulation, log = Clock(), writer(blocks_max=1)
    for number in range(4):
        simulation.run(log.append(number))
        simulation.run(log.flush())
        simulation.time += timedelta(seconds=1)
    simulation.run(log.close())
    simulation.runtime.failpoints = reads = Reads()
    second = START + timedelta(seconds=1)
    assert [each.record for each in read(simulation, second, second)] == [1]
    assert reads.names == ["web/2014/07/31/1800/000002.log"]


def test_records_wait_until_a_flush_is_due() -> None:
    simulation, log = Clock(), writer(flush_bytes=100)
    simulation.run(log.append(0))
    simulation.time += timedelta(seconds=4)
    simulation.run(log.append(1))
    assert everything(simulation) == []
    simulation.time += timedelta(seconds=1)
    simulation.run(log.append("x" * 100))
    assert everything(simulation) == [0, 1], "5 seconds are over"
    simulation.run(log.append(2))
    assert everything(simulation) == [0, 1, "x" * 100], "there were 100 octets"
    simulation.run(log.append(3))
    assert len(everything(simulation)) == 3, "those that were flushed do not count"


def test_records_that_wait_are_of_two_periods() -> None:
    simulation, log = Clock(), writer()
    simulation.run(log.append(1))
    simulation.time += timedelta(seconds=3)
    simulation.run(log.append(2))
    simulation.run(log.flush())
    assert [each.record for each in read(simulation, simulation.time, simulation.time)] == [2]


def test_a_clock_that_goes_back_leaves_the_order() -> None:
    simulation, log = Clock(), writer()
    for number in range(3):
        simulation.run(log.append(number))
        simulation.time -= timedelta(hours=1)
    simulation.run(log.flush())
    assert [(each.time, each.record) for each in read(simulation, START, START)] == [(START, n) for n in range(3)]


def meddling(simulation: Clock) -> None:
    """Write a line to the blob of another process, and create a blob of the next number."""
    other = Clock(seed=1)
    other.world = simulation.world
    for each in other.world.blobs("c"):
        other.run(perform(Append("c", each.name, line(LogRecord(START, "other")), each.length)))
    other.run(perform(AppendCreate("c", NAMES.numbered(NAMES.period(START), len(other.world.blobs("c")) + 1))))
    simulation.world = other.world


def faulty(kind: type[LogWriter]) -> Iterator[tuple[FaultAt, bool, list[object]]]:
    """Flush three records by three blocks in two blobs, with each fault; yield what is in the log after."""
    simulations: list[Clock] = []
    ended: list[bool] = []

    def attempt(fault: FaultAt) -> None:
        simulation, log = Clock(), writer(kind, blocks_max=2)
        simulations.append(simulation)
        simulation.runtime.failpoints = fault
        try:
            for number in range(3):
                simulation.run(log.append(number))
                simulation.run(log.flush())
            ended.append(True)
        except Crash:
            ended.append(False)
        simulation.runtime.failpoints = Reads()

    for fault in every_fault(attempt, lambda: meddling(simulations[-1])):
        yield fault, ended[-1], [each for each in everything(simulations[-1]) if each != "other"]


def test_every_fault_leaves_each_record_once() -> None:
    faults = list(faulty(LogWriter))
    for fault, ended, found in faults:
        assert found == list(range(3 if ended else len(found))), fault
    assert len(faults) == 7 * (2 + 3 + 2 + 1), "two claims, three blocks, the metadata of the first blob"


class Trusting(LogWriter):
    """Takes its block for appended if the blob has another length."""

    def _is_there(self, *_: object) -> Protocol[bool]:
        return True
        yield


class Doubtful(LogWriter):
    """Takes its block for absent then."""

    def _is_there(self, *_: object) -> Protocol[bool]:
        return False
        yield


class Blind(LogWriter):
    """Appends wherever the blob ends."""

    def _appended(self, blob: Open, block: Block, attempts: object) -> Protocol[bool]:
        while True:
            length = next(each.length for each in SHOWN[-1].world.blobs("c") if each.name == blob.name)
            with suppress(ResultUnknown):
                yield from perform(Append("c", blob.name, block.data, length))
                return True


SHOWN: list[Clock] = []


@pytest.mark.parametrize("mutation", [Trusting, Doubtful])
def test_the_octets_at_the_position_must_decide(mutation: type[LogWriter]) -> None:
    assert any(found != list(range(3 if ended else len(found))) for _, ended, found in faulty(mutation))


def test_the_position_is_needed() -> None:
    for kind, doubled in ((LogWriter, False), (Blind, True)):
        simulation, log = Clock(), writer(kind)
        SHOWN.append(simulation)
        simulation.run(log.append(1))
        simulation.runtime.failpoints = FaultAt(2, Fault.ANSWER_LOST)
        simulation.run(log.flush())
        assert everything(simulation) == [1] * (1 + doubled)


class Silent:
    """No answer to an append comes. It is done or not."""

    def __init__(self, *, done: bool) -> None:
        self.done = done

    def before(self, effect: Effect[object]) -> None:
        if isinstance(effect, Append) and not self.done:
            raise ResultUnknown

    def after(self, effect: Effect[object]) -> None:
        if isinstance(effect, Append):
            raise ResultUnknown


def test_a_block_whose_result_is_unknown_stays_as_it_is() -> None:
    simulation, log = Clock(), writer()
    simulation.run(log.append(1))
    simulation.runtime.failpoints, log.policy = Silent(done=True), Policy(deadline_seconds=0)
    with pytest.raises(Unavailable):
        simulation.run(log.flush())
    simulation.runtime.failpoints, log.policy = Reads(), Policy()
    simulation.run(log.append(2))
    simulation.run(log.flush())
    assert everything(simulation) == [1, 2]


@pytest.mark.parametrize("done", [True, False])
def test_a_block_whose_result_stays_unknown_is_there_once_after_the_next_flush(done: bool) -> None:
    simulation, log = Clock(), writer()
    simulation.run(log.append(1))
    simulation.runtime.failpoints, log.policy = Silent(done=done), Policy(deadline_seconds=0)
    with pytest.raises(Unavailable):
        simulation.run(log.flush())
    simulation.time += timedelta(hours=1)
    with nullcontext() if done else pytest.raises(Unavailable):
        simulation.run(log.append(2))
    simulation.runtime.failpoints, log.policy = Reads(), Policy()
    simulation.run(log.append(3))
    simulation.run(log.flush())
    assert everything(simulation) == ([1, 2, 3] if done else [1, 3]), "what raises was not taken"


def test_a_writer_whose_blob_is_deleted_takes_another_one() -> None:
    simulation, log = Clock(), writer()
    for number in range(2):
        simulation.run(log.append(number))
        simulation.run(log.flush())
        if number == 0:
            simulation.run(perform(BlobDelete("c", "web/2014/07/31/1800/000001.log")))
    assert everything(simulation) == [1]


@pytest.mark.parametrize("rejected", [Append, AppendCreate, BlobSetMetadata])
def test_other_rejections_are_raised_and_the_records_wait(rejected: type[Effect[object]]) -> None:
    class Closed:
        def before(self, effect: Effect[object]) -> None:
            if isinstance(effect, rejected):
                raise Rejected(403, "AuthorizationFailure")

        def after(self, effect: Effect[object]) -> None: ...

    simulation, log = Clock(), writer(blocks_max=1)
    simulation.run(log.append(1))
    simulation.runtime.failpoints = Closed()
    with nullcontext() if rejected is BlobSetMetadata else pytest.raises(Rejected):  # Metadata are no record.
        simulation.run(log.close())
    simulation.runtime.failpoints = Reads()
    simulation.run(log.flush())
    assert everything(simulation) == [1]


def test_what_is_no_record_is_rejected() -> None:
    simulation, log = Clock(), writer()
    with pytest.raises(TypeError):
        simulation.run(log.append(object()))
    rest = len(line(LogRecord(START, "")))
    simulation.run(log.append("x" * (BLOCK_BYTES_MAX - rest)))
    with pytest.raises(ValueError, match="4,194,304 fit"):
        simulation.run(log.append("x" * (BLOCK_BYTES_MAX - rest + 1)))
    simulation.run(log.flush())
    assert len(read(simulation, START, START, BLOCK_BYTES_MAX)) == 1


@pytest.mark.parametrize("text", ["{}", '{"time":"2014-07-31T18:00:00","record":1}', "\udcff", '{"time":1,"record":1}'])
def test_a_line_of_another_program_is_named(text: str) -> None:
    with pytest.raises(Inconsistent, match="b/1"):
        record_of("b/1", text.encode("utf-8", "surrogateescape"))


def test_a_line_that_is_too_long_and_foreign_metadata() -> None:
    simulation = Clock()
    name = NAMES.numbered(NAMES.period(START), 1)
    simulation.run(perform(AppendCreate("c", name, {FIRST: "yesterday", LAST: "2014"})))
    simulation.run(perform(Append("c", name, b"x" * (BLOCK_BYTES_MAX + 1), 0)))
    with pytest.raises(Inconsistent, match="longer than a record"):
        read(simulation, datetime(2013, 1, 1, tzinfo=UTC), datetime(2014, 12, 1, tzinfo=UTC), BLOCK_BYTES_MAX + 1)


@pytest.mark.parametrize("name", ["", "/web", "web/", "a//b", "a b", "ä", "x" * 901, "web/.."])
def test_names_that_sort_and_need_no_escape(name: str) -> None:
    with pytest.raises(ValueError, match="characters at most"):
        LogNames(name, "day")


def test_times_have_a_zone_and_days_end_with_the_calendar() -> None:
    with pytest.raises(ValueError, match="zone"):
        span(datetime(2014, 7, 31), START)
    end = datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert list(LogNames("a", "day").days(span(end, end))) == ["a/9999/12/31/"]
    assert LogNames("a", "day").period(START) == "a/2014/07/31/"


def now_and_then() -> tuple[datetime, datetime]:
    now = datetime.now(UTC)
    return now - timedelta(hours=1), now + timedelta(hours=1)


def test_a_log_on_the_service(container_client: ContainerClient) -> None:
    with BlobLog(container_client, "web", every="day") as log:
        log._writer.blocks_max = 1
        for number in range(4):
            log.append({"n": number})
            if number % 2:
                log.flush()
        assert [each.record for each in log.between(*now_and_then())] == [{"n": number} for number in range(4)]
        log.append("last")
    blobs = list(container_client.list_blobs(include=["metadata"]))
    assert [(each.blob_type, sorted(each.metadata or {})) for each in blobs] == [("AppendBlob", [FIRST, LAST])] * 3
    assert len(list(log.between(*now_and_then()))) == 5


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.NEVER_SENT])
def test_threads_of_a_durable_log_share_blocks_and_lose_nothing(
    container_client: ContainerClient, fault: Fault
) -> None:
    runtime = Runtime(failpoints=FaultAt(3, fault))
    log = BlobLog(container_client, "web", durable=True, runtime=runtime, policy=Policy(first_wait_seconds=0.001))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(log.append, range(40)))
    found = [each.record for each in log.between(*now_and_then())]
    assert sorted(found, key=repr) == sorted(range(40), key=repr)


def test_tasks_of_a_durable_log_share_blocks(container_client: ContainerClient, connection_string: str) -> None:
    class Blocks:
        count = 0

        def before(self, effect: Effect[object]) -> None:
            self.count += isinstance(effect, Append)

        def after(self, effect: Effect[object]) -> None: ...

    async def main() -> list[object]:
        name = container_client.container_name
        async with AsyncContainerClient.from_connection_string(connection_string, name) as client:
            blocks = Blocks()
            async with AsyncBlobLog(client, "web", durable=True, runtime=Runtime(failpoints=blocks)) as log:
                await asyncio.gather(*(log.append(number) for number in range(20)))
                assert blocks.count == 2, "that of the first record, and that of all others"
                return [each.record async for each in log.between(*now_and_then())]

    assert asyncio.run(main()) == list(range(20))


def appending(log: str, *records: str) -> Callable[[], Protocol[None]]:
    """Append records by a flush each, and note each one that is done."""

    def process() -> Protocol[None]:
        own = writer(blocks_max=1)
        for each in records:
            yield from own.append(each)
            yield from own.flush()
            yield from perform(Write("done", Operation(Kind.PUT, EntityKey(log, each))))

    return process


def once_each(world: World) -> None:
    simulation = Clock()
    simulation.world = world
    then = datetime(2026, 1, 1, tzinfo=UTC)  # As the explorer has it.
    found = [each.record for each in read(simulation, then, then)]
    assert len(set(found)) == len(found), "a record is in the log twice"
    for log in ("a", "b"):
        own = [each for each in found if str(each).startswith(log)]
        assert own == sorted(own, key=str), "out of order"
    assert {each.key.row_key for each in world.entities("done")} <= set(found), "a record is lost"


def test_writers_take_blobs_of_their_own_in_every_interleaving() -> None:
    processes = [appending("a", "a1", "a2"), appending("b", "b1")]
    assert explore(World(), processes, once_each).states_count > 10
