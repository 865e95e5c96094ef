"""Commits on the database: their statements, and their order beside commits of other processes."""

import asyncio
from collections.abc import Mapping, Sequence

import asyncpg
import pytest

from lazulite.engine.commit import ABSENT, Commit, Decision, Expect, Values, changing
from lazulite.engine.contract import SpaceDroppedError
from lazulite.engine.postgres import drops
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.partition_io import PartitionChange, PartitionRead, PartitionState
from lazulite.engine.postgres.sql_scripts import PartitionAddress
from tests.engine.postgres.conftest import OURS, SCRIPTS, Open, by_statements, execute
from tests.engine.postgres.gates import Gates
from tests.engine.postgres.write_if import RejectedError, WriteIf
from tests.postgres.server import SECONDS_MAX


async def test_write_that_meets_its_precondition_is_sent_unread(engine: PostgresEngine) -> None:
    insert = WriteIf("r", b"stamp", Expect.ABSENT)
    stamp = await engine.commit(1, "p", insert.commit())
    assert await engine.get(1, "p", "r") == b"%d" % stamp
    update = WriteIf("r", b"stamp", Expect.PRESENT, stamp)
    stamp = await engine.commit(1, "p", update.commit())
    replace = WriteIf("r", b"stamp", Expect.ANYTHING)
    last = await engine.commit(1, "p", replace.commit())
    assert last > stamp
    assert await engine.get(1, "p", "r") == b"%d" % last
    delete = WriteIf("r", None, Expect.PRESENT, last)
    await engine.commit(1, "p", delete.commit())
    assert await engine.get(1, "p", "r") is None
    assert [each.asked for each in (insert, update, replace, delete)] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("expects", "value", "there", "stamp"),
    [
        (Expect.ABSENT, b"new", True, None),
        (Expect.PRESENT, b"new", False, None),
        (Expect.PRESENT, b"new", True, 7),
        (Expect.PRESENT, None, False, None),
        (Expect.PRESENT, None, True, 7),
    ],
)
async def test_write_that_misses_its_precondition_calls_the_commit_function(
    engine: PostgresEngine, expects: Expect, value: bytes | None, there: bool, stamp: int | None
) -> None:
    if there:
        await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"old"}))
    decision = WriteIf("r", value, expects, stamp)
    with pytest.raises(RejectedError):
        await engine.commit(1, "p", decision.commit())
    assert decision.asked == 1
    assert await engine.get(1, "p", "r") == (b"old" if there else None)


async def test_a_row_copied_with_another_stamp_is_updated_all_the_same(engine: PostgresEngine) -> None:
    await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"77"}))
    decision = WriteIf("r", b"new", Expect.PRESENT, 77)
    await engine.commit(1, "p", decision.commit())
    assert decision.asked == 1
    assert await engine.get(1, "p", "r") == b"new"


async def test_of_many_inserts_of_one_row_one_succeeds(engine: PostgresEngine) -> None:
    async def insert() -> bool:
        try:
            await engine.commit(1, "p", WriteIf("r", b"x", Expect.ABSENT).commit())
        except RejectedError:
            return False
        return True

    assert sum(await asyncio.gather(*(insert() for _ in range(50)))) == 1


async def test_stamps_differ_and_grow_in_the_order_of_commits(engine: PostgresEngine) -> None:
    async def write(number: int) -> int:
        row = f"r{number % 30}"
        if number % 3:
            return await engine.commit(1, "p", WriteIf(row, b"stamp", Expect.ANYTHING).commit())
        return await engine.commit(1, "p", changing([row], lambda _, stamp: {row: b"%d" % stamp}))

    stamps = await asyncio.gather(*(write(number) for number in range(300)))
    assert len(set(stamps)) == 300
    rows = {row: int(await engine.get(1, "p", row) or b"0") for row in {f"r{number}" for number in range(30)}}
    assert all(rows[f"r{at}"] == max(stamps[at::30]) for at in range(30))


@pytest.mark.parametrize("skew", [0, 10**9, -(10**9)])
async def test_stamps_grow_over_processes_with_skewed_clocks(open_engine: Open, skew: int) -> None:
    now = 10**15
    engines = [open_engine(lambda: now), open_engine(lambda: now + skew, scripts=True), open_engine(lambda: now - 1)]
    last = 0
    for number in range(30):
        engine = engines[number % 3]
        decision = WriteIf("r", b"x", Expect.ANYTHING)
        if number % 2:
            stamp = await engine.commit(1, "p", decision.commit())
        else:
            stamp = await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"y"}))
        assert stamp > last
        last = stamp


@by_statements
async def test_version_that_another_process_set_meanwhile_costs_a_write_one_retry(open_engine: Open) -> None:
    clock = iter(range(10**15, 10**16, 100))
    one, other = open_engine(lambda: next(clock)), open_engine(lambda: 10**15 + 50)
    stamp = await other.commit(1, "p", WriteIf("r", b"x", Expect.ANYTHING).commit())
    inserts = [WriteIf(row, b"stamp", Expect.ABSENT) for row in ("s", "t")]
    taken = await asyncio.gather(*(one.commit(1, "p", insert.commit()) for insert in inserts))
    assert min(taken) > stamp
    assert [await other.get(1, "p", row) for row in ("s", "t")] == [b"%d" % each for each in taken]
    assert [insert.asked for insert in inserts] == [0, 0]


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_commit_that_must_read_succeeds_beside_a_faster_process(
    open_engine: Open, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_engine(scripts=scripts), open_engine()
    io = (await one._ensure_started()).partitions._io
    read = io.read

    async def beaten(request: PartitionRead) -> PartitionState:
        found = await read(request)
        await other.commit(1, "p", WriteIf("r", b"x", Expect.ANYTHING).commit())
        return found

    monkeypatch.setattr(io, "read", beaten)
    for number in (b"1", b"2"):
        last = await other.commit(1, "p", WriteIf("q", b"x", Expect.ANYTHING).commit())
        assert await one.commit(1, "p", changing(["s"], lambda *_, number=number: {"s": number})) > last
        assert await other.get(1, "p", "s") == number


async def test_locked_commit_excludes_other_processes(engine: PostgresEngine) -> None:
    await engine.commit(1, "p", changing(["r"], lambda *_: {"r": b"x"}))
    readings = []

    def decide(state: PartitionState) -> tuple[None, bool]:
        readings.append(state.rows)
        with pytest.raises(asyncpg.LockNotAvailableError):
            execute("SELECT 1 FROM lazulite.partitions WHERE partition_key = 'p' FOR UPDATE NOWAIT")
        return None, True

    io = (await engine._ensure_started()).partitions._io
    assert await io.apply_locked(PartitionAddress(1, b"p", None), lambda: [b"r", b"s"], decide)
    assert readings == [{b"r": b"x"}]


async def test_processes_lose_no_update_of_each_other(open_engine: Open) -> None:
    engines = [open_engine(scripts=SCRIPTS[number % len(SCRIPTS)]) for number in range(4)]

    def increment(current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        count, last = (int(part) for part in (current[0] or b"0 0").split())
        assert stamp > last
        return {"n": b"%d %d" % (count + 1, stamp), "m": b"%d %d" % (count + 1, stamp)}

    async def work(engine: PostgresEngine, partition: str) -> None:
        for _ in range(15):
            await engine.commit(1, partition, changing(["n", "m"], increment))

    await asyncio.gather(*(work(engine, partition) for engine in engines for partition in "pqr"))
    for partition in "pqr":
        value = await engines[0].get(1, partition, "n")
        assert value is not None
        assert value.split()[0] == b"60"
        assert await engines[1].get(1, partition, "m") == value


ODD_SETTINGS = {
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "default_transaction_deferrable": "on",
    "default_transaction_isolation": "serializable",
    "escape_string_warning": "on",
    "search_path": "nowhere",
    "standard_conforming_strings": "off",
}


async def test_settings_of_the_database_change_nothing(engine: PostgresEngine) -> None:
    database = execute("SELECT current_database()")[0][0]
    for name, odd in ODD_SETTINGS.items():
        execute(f"ALTER DATABASE {database} SET {name} = '{odd}'")
    try:
        value = bytes(range(256))
        await engine.commit(1, "p\0\\'", changing(["r\\x41"], lambda *_: {"r\\x41": value}))
        assert await engine.get(1, "p\0\\'", "r\\x41") == value
        async with engine._pool.connection() as connection:
            assert await connection.fetchval("SHOW standard_conforming_strings") == "on"
            assert await connection.fetchval("SHOW transaction_isolation") == "read committed"
    finally:
        for name in ODD_SETTINGS:
            execute(f"ALTER DATABASE {database} RESET {name}")


async def test_a_drop_closes_a_space_to_others_when_they_look(open_engine: Open) -> None:
    one, other = open_engine(), open_engine()
    await one.commit(7, "p", changing(["r"], lambda *_: {"r": b"x"}))
    assert await other.get(7, "p", "r") == b"x"
    await one.drop(7)
    await (await other._ensure_started()).drops.reload()
    assert await other.get(7, "p", "r") is None
    with pytest.raises(SpaceDroppedError):
        await other.commit(7, "p", changing(["r"], lambda *_: {"r": b"x"}))


async def test_conditional_write_that_fails_leaves_its_batch_alone(engine: PostgresEngine) -> None:
    class Broken(WriteIf):
        def value(self, stamp: int) -> bytes | None:
            raise RejectedError

    calls = [engine.commit(1, f"p{at}", WriteIf("r", b"x", Expect.ABSENT).commit()) for at in range(5)]
    broken = engine.commit(1, "q", Broken("r", b"x", Expect.ABSENT).commit())
    outcomes = await asyncio.gather(*calls, broken, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int] * 5 + [RejectedError]


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize(
    ("error", "raised"),
    [(StopIteration, RuntimeError), (asyncio.CancelledError, asyncio.CancelledError), (GeneratorExit, GeneratorExit)],
)
async def test_error_of_a_commit_function_reaches_its_caller_only(
    open_engine: Open, conditional: bool, error: type[BaseException], raised: type[BaseException]
) -> None:
    def fail(_: Values, __: int) -> Decision[int]:
        raise error

    engine = open_engine()
    failing = Commit(["r"], fail, (lambda _: [ABSENT]) if conditional else None)
    broken = asyncio.create_task(engine.commit(1, "p", failing))
    whole = asyncio.create_task(engine.commit(1, "p", changing(["s"], lambda *_: {"s": b"x"})))
    _, hang = await asyncio.wait([broken, whole], timeout=SECONDS_MAX)
    for task in hang:
        task.cancel()
    assert not hang
    with pytest.raises(raised):
        await broken
    await whole


@pytest.mark.parametrize("conditional", [False, True])
async def test_close_waits_for_statements_of_cancelled_callers(engine: PostgresEngine, conditional: bool) -> None:
    await engine.start()
    writing = WriteIf("r", b"x", Expect.ABSENT).commit() if conditional else changing(["r"], lambda *_: {"r": b"x"})
    commit = asyncio.create_task(engine.commit(1, "p", writing))
    read = asyncio.create_task(engine.get(1, "p", "r"))
    for _ in range(3):
        await asyncio.sleep(0)
    commit.cancel()
    read.cancel()
    await engine.close()
    assert asyncio.all_tasks() - {asyncio.current_task(), commit, read} == set()


async def test_close_ends_what_starts_meanwhile(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    gates.hold(drops._ALL)
    start = asyncio.create_task(engine.start())
    await gates.come(drops._ALL)
    close = asyncio.create_task(engine.close())
    await asyncio.sleep(0)
    gates.let(drops._ALL)
    await asyncio.wait([start, close])
    await close
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_many_may_replace_one_row_at_once(engine: PostgresEngine) -> None:
    async def replace() -> int:
        return await engine.commit(1, "p", WriteIf("r", b"stamp", Expect.ANYTHING).commit())

    stamps = await asyncio.gather(*(replace() for _ in range(50)))
    assert await engine.get(1, "p", "r") == b"%d" % max(stamps)


@by_statements
@pytest.mark.parametrize("conditional", [True, False])
async def test_processes_that_write_the_same_partitions_do_not_lock_each_other_out(
    open_engine: Open, conditional: bool
) -> None:
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = execute(deadlocks)
    one, other, holder = (open_engine() for _ in range(3))
    partitions = [str(number) for number in range(10, 30)]

    async def write(engine: PostgresEngine, order: Sequence[str]) -> None:
        def writing() -> Commit[int]:
            if conditional:
                return WriteIf("r", b"x", Expect.ANYTHING).commit()
            return changing(["r"], lambda *_: {"r": b"x"})

        await asyncio.gather(*(engine.commit(1, partition, writing()) for partition in order))

    await write(holder, partitions)
    await write(one, ["warm"])
    await write(other, ["warm"])
    async with holder._pool.connection() as connection, connection.transaction():
        await connection.execute("SELECT 1 FROM lazulite.partitions WHERE partition_key = '20' FOR UPDATE")
        calls = asyncio.gather(write(one, partitions), write(other, partitions[::-1]))
        while execute(f"{OURS} AND wait_event_type = 'Lock'")[0][0] != 2:  # noqa: ASYNC110 - there is no event to wait for.
            await asyncio.sleep(0)
    await calls
    for engine in (one, other, holder):
        await engine.close()
    while execute(OURS)[0][0]:  # Connections report deadlocks when they end.
        continue
    assert execute(deadlocks) == before


async def test_locked_commit_that_the_database_undid_is_not_done(engine: PostgresEngine) -> None:
    io = (await engine._ensure_started()).partitions._io

    def undone(state: PartitionState) -> tuple[PartitionChange | None, bool]:
        raise asyncpg.SerializationError

    place = PartitionAddress(1, b"p", None)
    assert not await io.apply_locked(place, lambda: [b"r"], undone)
    assert await io.apply_locked(place, lambda: [b"r"], lambda _: (None, True))
