"""How commits reach the database: in how many statements, and beside those of other processes."""

import asyncio
from collections.abc import Mapping, Sequence

import asyncpg
import pytest

from lazulite.engine.contract import Decide, SpaceDroppedError
from lazulite.engine.postgres import batch_window, drops, single_writes
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.partition_io import Asked, ByScripts, ByStatements, Change, Reading
from lazulite.engine.postgres.sql_scripts import Place
from lazulite.engine.postgres.sql_statements import APPLY, INSERT, REPLACE
from lazulite.engine.precondition import Expect, Foreseeing, Foreseen
from tests.engine.postgres.conftest import OURS, SCRIPTS, Open, by_statements, execute, statements_of
from tests.engine.postgres.gates import Gates
from tests.postgres.server import CITUS, SECONDS_MAX


class RefusedError(Exception):
    pass


class Foretold(Foreseeing):
    """Writes `value` to `row` if it is as expected, else refuses."""

    def __init__(self, row: str, value: bytes | None, expects: Expect, stamp: int | None = None) -> None:
        self.row = row
        self.new = value
        self.foreseen = Foreseen(expects, value is None, stamp)
        self.asked = 0

    def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        self.asked += 1
        absent = current[0] is None
        if self.foreseen.expects is (Expect.PRESENT if absent else Expect.ABSENT):
            raise RefusedError
        if self.foreseen.stamp is not None and current[0] != b"%d" % self.foreseen.stamp:
            raise RefusedError
        return {self.row: self.value(stamp)}

    def foresee(self) -> Foreseen | None:
        return self.foreseen

    def value(self, stamp: int) -> bytes | None:
        return b"%d" % stamp if self.new == b"stamp" else self.new


async def test_what_is_as_foreseen_is_written_without_asking(engine: PostgresEngine) -> None:
    insert = Foretold("r", b"stamp", Expect.ABSENT)
    stamp = await engine.commit(1, "p", ["r"], insert)
    assert await engine.get(1, "p", "r") == b"%d" % stamp
    update = Foretold("r", b"stamp", Expect.PRESENT, stamp)
    stamp = await engine.commit(1, "p", ["r"], update)
    replace = Foretold("r", b"stamp", Expect.ANYTHING)
    last = await engine.commit(1, "p", ["r"], replace)
    assert last > stamp
    assert await engine.get(1, "p", "r") == b"%d" % last
    delete = Foretold("r", None, Expect.PRESENT, last)
    await engine.commit(1, "p", ["r"], delete)
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
async def test_what_is_not_as_foreseen_is_asked(
    engine: PostgresEngine, expects: Expect, value: bytes | None, there: bool, stamp: int | None
) -> None:
    if there:
        await engine.commit(1, "p", ["r"], lambda *_: {"r": b"old"})
    decision = Foretold("r", value, expects, stamp)
    with pytest.raises(RefusedError):
        await engine.commit(1, "p", ["r"], decision)
    assert decision.asked == 1
    assert await engine.get(1, "p", "r") == (b"old" if there else None)


async def test_a_row_copied_with_another_stamp_is_updated_all_the_same(engine: PostgresEngine) -> None:
    await engine.commit(1, "p", ["r"], lambda *_: {"r": b"7"})
    decision = Foretold("r", b"new", Expect.PRESENT, 7)
    await engine.commit(1, "p", ["r"], decision)
    assert decision.asked == 1
    assert await engine.get(1, "p", "r") == b"new"


async def test_of_many_inserts_of_one_row_one_succeeds(engine: PostgresEngine) -> None:
    async def insert() -> bool:
        try:
            await engine.commit(1, "p", ["r"], Foretold("r", b"x", Expect.ABSENT))
        except RefusedError:
            return False
        return True

    assert sum(await asyncio.gather(*(insert() for _ in range(50)))) == 1


async def test_stamps_differ_and_grow_in_the_order_of_commits(engine: PostgresEngine) -> None:
    async def write(number: int) -> int:
        row = f"r{number % 30}"
        if number % 3:
            return await engine.commit(1, "p", [row], Foretold(row, b"stamp", Expect.ANYTHING))
        return await engine.commit(1, "p", [row], lambda _, stamp: {row: b"%d" % stamp})

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
        decision = Foretold("r", b"x", Expect.ANYTHING)
        if number % 2:
            stamp = await engine.commit(1, "p", ["r"], decision)
        else:
            stamp = await engine.commit(1, "p", ["r"], lambda *_: {"r": b"y"})
        assert stamp > last
        last = stamp


@by_statements
async def test_a_head_that_another_process_set_meanwhile_costs_a_write_one_more_try(open_engine: Open) -> None:
    clock = iter(range(10**15, 10**16, 100))
    one, other = open_engine(lambda: next(clock)), open_engine(lambda: 10**15 + 50)
    stamp = await other.commit(1, "p", ["r"], Foretold("r", b"x", Expect.ANYTHING))
    inserts = [Foretold(row, b"stamp", Expect.ABSENT) for row in ("s", "t")]
    taken = await asyncio.gather(*(one.commit(1, "p", [insert.row], insert) for insert in inserts))
    assert min(taken) > stamp
    assert [await other.get(1, "p", row) for row in ("s", "t")] == [b"%d" % each for each in taken]
    assert [insert.asked for insert in inserts] == [0, 0]


@pytest.mark.parametrize("scripts", SCRIPTS)
async def test_who_must_read_gets_on_beside_one_who_always_is_faster(
    open_engine: Open, scripts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_engine(scripts=scripts), open_engine()
    changes = (await one._started()).partitions._changes
    read = changes.read

    async def beaten(asked: Asked) -> Reading:
        found = await read(asked)
        await other.commit(1, "p", ["r"], Foretold("r", b"x", Expect.ANYTHING))
        return found

    monkeypatch.setattr(changes, "read", beaten)
    for number in (b"1", b"2"):
        last = await other.commit(1, "p", ["q"], Foretold("q", b"x", Expect.ANYTHING))
        assert await one.commit(1, "p", ["s"], lambda *_, number=number: {"s": number}) > last
        assert await other.get(1, "p", "s") == number


async def test_a_partition_is_settled_while_nobody_else_can_write_to_it(engine: PostgresEngine) -> None:
    await engine.commit(1, "p", ["r"], lambda *_: {"r": b"x"})
    readings = []

    def decide(reading: Reading) -> None:
        readings.append(reading.rows)
        with pytest.raises(asyncpg.LockNotAvailableError):
            execute("SELECT 1 FROM lazulite.partitions WHERE partition_key = 'p' FOR UPDATE NOWAIT")

    changes = (await engine._started()).partitions._changes
    assert await changes.settle(Asked(Place(1, b"p", None), [b"r", b"s"]), decide)
    assert readings == [{b"r": b"x"}]


async def test_processes_lose_no_update_of_each_other(open_engine: Open) -> None:
    engines = [open_engine(scripts=SCRIPTS[number % len(SCRIPTS)]) for number in range(4)]

    def increment(current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
        count, last = (int(part) for part in (current[0] or b"0 0").split())
        assert stamp > last
        return {"n": b"%d %d" % (count + 1, stamp), "m": b"%d %d" % (count + 1, stamp)}

    async def work(engine: PostgresEngine, partition: str) -> None:
        for _ in range(15):
            await engine.commit(1, partition, ["n", "m"], increment)

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
        await engine.commit(1, "p\0\\'", ["r\\x41"], lambda *_: {"r\\x41": value})
        assert await engine.get(1, "p\0\\'", "r\\x41") == value
        async with engine._pool.connection() as connection:
            assert await connection.fetchval("SHOW standard_conforming_strings") == "on"
            assert await connection.fetchval("SHOW transaction_isolation") == "read committed"
    finally:
        for name in ODD_SETTINGS:
            execute(f"ALTER DATABASE {database} RESET {name}")


@by_statements
async def test_commits_of_many_partitions_go_together(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine()
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    await asyncio.gather(*(engine.commit(1, str(at), ["r"], lambda *_: {"r": b"x"}) for at in range(64)))
    assert len(sent) <= 8
    rows = [f"{at:04}" for at in range(150)]
    sent.clear()
    await asyncio.gather(*(engine.commit(2, str(at), rows, lambda *_: dict.fromkeys(rows, b"x")) for at in range(4)))
    assert len(sent) == 8, "groups are bounded"
    sent.clear()
    large = bytes(1 << 20)
    await asyncio.gather(*(engine.commit(3, str(at), ["r"], lambda *_: {"r": large}) for at in range(12)))
    assert sent.count(APPLY) >= 4, "in bytes as well"


@by_statements
async def test_a_single_write_is_one_statement_and_a_batch_two(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    await engine.start()
    sent = statements_of(engine, monkeypatch)
    for value, expects in ((b"", Expect.ABSENT), (b"", Expect.ANYTHING), (b"", Expect.PRESENT), (None, Expect.PRESENT)):
        await engine.commit(1, "p", ["r"], Foretold("r", value, expects))
        assert len(sent) == 1
        sent.clear()
    rows = [f"{number:03}" for number in range(100)]
    await engine.commit(1, "p", rows, lambda *_: dict.fromkeys(rows, b"x"))
    assert len(sent) == 2
    sent.clear()
    halves: dict[str, bytes | None] = {row: b"y" if number % 2 else None for number, row in enumerate(rows)}
    await engine.commit(1, "p", rows, lambda *_: halves)
    assert len(sent) == 2


async def test_a_drop_closes_a_space_to_others_when_they_look(open_engine: Open) -> None:
    one, other = open_engine(), open_engine()
    await one.commit(7, "p", ["r"], lambda *_: {"r": b"x"})
    assert await other.get(7, "p", "r") == b"x"
    await one.drop(7)
    await (await other._started()).drops.look()
    assert await other.get(7, "p", "r") is None
    with pytest.raises(SpaceDroppedError):
        await other.commit(7, "p", ["r"], lambda *_: {"r": b"x"})


async def test_a_decision_that_fails_harms_no_neighbour(engine: PostgresEngine) -> None:
    class Broken(Foretold):
        def value(self, stamp: int) -> bytes | None:
            raise RefusedError

    calls = [engine.commit(1, f"p{at}", ["r"], Foretold("r", b"x", Expect.ABSENT)) for at in range(5)]
    broken = engine.commit(1, "q", ["r"], Broken("r", b"x", Expect.ABSENT))
    outcomes = await asyncio.gather(*calls, broken, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int] * 5 + [RefusedError]


@pytest.mark.parametrize("foreseen", [False, True])
@pytest.mark.parametrize(
    ("error", "raised"),
    [(StopIteration, RuntimeError), (asyncio.CancelledError, asyncio.CancelledError), (GeneratorExit, GeneratorExit)],
)
async def test_whatever_a_decision_raises_is_told_to_who_asked_alone(
    open_engine: Open, foreseen: bool, error: type[BaseException], raised: type[BaseException]
) -> None:
    class Broken(Foretold):
        def __call__(self, current: Sequence[bytes | None], stamp: int) -> Mapping[str, bytes | None]:
            raise error

        def foresee(self) -> Foreseen | None:
            return self.foreseen if foreseen else None

        def value(self, stamp: int) -> bytes | None:
            raise error

    engine = open_engine()
    broken = asyncio.create_task(engine.commit(1, "p", ["r"], Broken("r", b"x", Expect.ABSENT)))
    whole = asyncio.create_task(engine.commit(1, "p", ["s"], lambda *_: {"s": b"x"}))
    _, hang = await asyncio.wait([broken, whole], timeout=SECONDS_MAX)
    for task in hang:
        task.cancel()
    assert not hang
    with pytest.raises(raised):
        await broken
    await whole


@pytest.mark.parametrize("foreseen", [False, True])
async def test_close_waits_for_what_nobody_waits_for_any_more(engine: PostgresEngine, foreseen: bool) -> None:
    await engine.start()
    decision = Foretold("r", b"x", Expect.ABSENT) if foreseen else lambda *_: {"r": b"x"}
    commit = asyncio.create_task(engine.commit(1, "p", ["r"], decision))
    read = asyncio.create_task(engine.get(1, "p", "r"))
    for _ in range(3):
        await asyncio.sleep(0)
    commit.cancel()
    read.cancel()
    await engine.close()
    assert asyncio.all_tasks() - {asyncio.current_task(), commit, read} == set()


@by_statements
async def test_who_waits_for_its_turn_is_not_forgotten_for_a_batch(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if nothing else is written any more, and if batches keep the partition for ever."""
    monkeypatch.setattr(batch_window, "_GROUPS_MAX", 1)
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    await engine.start()
    gates.hold(INSERT, APPLY)
    first = asyncio.create_task(engine.commit(1, "first", ["r"], Foretold("r", b"x", Expect.ABSENT)))
    await gates.come(INSERT)
    insert = asyncio.create_task(engine.commit(1, "p", ["r"], Foretold("r", b"x", Expect.ABSENT)))
    await asyncio.sleep(0)
    batch = asyncio.create_task(engine.commit(1, "p", ["s"], lambda *_: {"s": b"x"}))
    await gates.come(APPLY)
    gates.let(INSERT)
    await first
    gates.let(APPLY)
    async with asyncio.timeout(SECONDS_MAX):
        assert await insert > await batch


@by_statements
async def test_who_comes_while_many_are_written_goes_with_the_others_that_come(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_writes, "_PATIENCE_SECONDS", 3600.0)
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    await engine.start()
    gates.hold(INSERT)

    def write(partition: str) -> "asyncio.Task[int]":
        return asyncio.create_task(engine.commit(1, partition, ["r"], Foretold("r", b"x", Expect.ABSENT)))

    writes = [write(f"first {number}") for number in range(4)]
    await gates.come(INSERT)
    for number in range(5):
        writes.append(write(f"later {number}"))
        await asyncio.sleep(0)
    gates.let(INSERT)
    await asyncio.gather(*writes)
    assert gates.answered.count(INSERT) == 2


@by_statements
async def test_who_cannot_go_is_no_company(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is what nobody waits for any more sent."""
    monkeypatch.setattr(single_writes, "_PATIENCE_SECONDS", 3600.0)
    monkeypatch.setattr(single_writes, "_GROUP_MAX", 6)
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    await engine.start()
    gates.hold(INSERT)

    def write(partition: str, row: int) -> "asyncio.Task[int]":
        return asyncio.create_task(engine.commit(1, partition, [f"{row}"], Foretold(f"{row}", b"x", Expect.ABSENT)))

    writes = [write("busy", row) for row in range(4)]
    await gates.come(INSERT)
    writes += [write("busy", row) for row in range(10, 16)]
    gone = write("elsewhere", 1)
    writes.append(write("elsewhere", 2))
    for _ in range(5):
        await asyncio.sleep(0)
    gone.cancel()
    assert gates.answered.count(INSERT) == 1
    gates.let(INSERT)
    await asyncio.gather(*writes)
    assert gates.answered.count(INSERT) == 3
    assert await engine.get(1, "elsewhere", "1") is None


@by_statements
async def test_who_waits_for_a_partition_keeps_nobody_from_others(
    open_engine: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    gates = Gates(engine, monkeypatch)
    gates.hold(REPLACE)

    def write(partition: str, expects: Expect) -> "asyncio.Task[int]":
        return asyncio.create_task(engine.commit(1, partition, ["r"], Foretold("r", b"x", expects)))

    held = write("p", Expect.ANYTHING)
    await gates.come(REPLACE)
    waits = write("p", Expect.ABSENT)
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            await write("q", Expect.ABSENT)
        assert not waits.done()
    finally:
        gates.let(REPLACE)
    await held
    with pytest.raises(RefusedError):
        await waits


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
        return await engine.commit(1, "p", ["r"], Foretold("r", b"stamp", Expect.ANYTHING))

    stamps = await asyncio.gather(*(replace() for _ in range(50)))
    assert await engine.get(1, "p", "r") == b"%d" % max(stamps)


@by_statements
@pytest.mark.parametrize("foreseen", [True, False])
async def test_processes_that_write_the_same_partitions_do_not_lock_each_other_out(
    open_engine: Open, foreseen: bool
) -> None:
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = execute(deadlocks)
    one, other, holder = (open_engine() for _ in range(3))
    partitions = [str(number) for number in range(10, 30)]

    async def write(engine: PostgresEngine, order: Sequence[str]) -> None:
        def decision() -> Decide:
            return Foretold("r", b"x", Expect.ANYTHING) if foreseen else lambda *_: {"r": b"x"}

        await asyncio.gather(*(engine.commit(1, partition, ["r"], decision()) for partition in order))

    await write(holder, partitions)
    await write(one, ["warm"])
    await write(other, ["warm"])
    async with holder._pool.connection() as connection, connection.transaction():
        await connection.execute("SELECT 1 FROM lazulite.partitions WHERE partition_key = '20' FOR UPDATE")
        calls = asyncio.gather(write(one, partitions), write(other, partitions[::-1]))
        while execute(f"{OURS} AND wait_event_type = 'Lock'")[0][0] != 2:  # noqa: ASYNC110 - nobody tells.
            await asyncio.sleep(0)
    await calls
    for engine in (one, other, holder):
        await engine.close()
    while execute(OURS)[0][0]:  # They tell of deadlocks when they end.
        continue
    assert execute(deadlocks) == before


@by_statements
async def test_large_values_do_not_all_go_together(open_engine: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine()
    await engine.start()
    fetch, sizes = engine._pool.fetch, []

    async def measured(statement: str, *arguments: object, reads: bool = False) -> object:
        values = arguments[8]
        assert isinstance(values, tuple)
        sizes.append(sum(map(len, values)))
        return await fetch(statement, *arguments, reads=reads)

    monkeypatch.setattr(engine._pool, "fetch", measured)
    calls = (engine.commit(1, str(at), ["r"], Foretold("r", bytes(1 << 20), Expect.ABSENT)) for at in range(20))
    assert len(set(await asyncio.gather(*calls))) == 20
    assert sizes == [4 << 20] * 5


@pytest.mark.parametrize("changes", [ByScripts] if CITUS else [ByStatements, ByScripts])
async def test_what_the_database_undid_while_its_partition_was_locked_is_not_done(
    open_engine: Open, changes: type[ByStatements | ByScripts]
) -> None:
    engine = open_engine()
    await engine.start()

    def undone(reading: Reading) -> Change | None:
        raise asyncpg.SerializationError

    asked = Asked(Place(1, b"p", None), [b"r"])
    assert not await changes(engine._pool).settle(asked, undone)
    assert await changes(engine._pool).settle(asked, lambda _: None)
