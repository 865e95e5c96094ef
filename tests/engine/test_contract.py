"""What every engine promises. Nothing here may know which engine it is."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence

import pytest

from lazulite.engine.commit import Change, Commit, CompanionWrite, Decision, changing, put_rows
from lazulite.engine.contract import (
    UNKNOWN,
    Engine,
    EngineUnavailableError,
    Key,
    KeyRange,
    SpaceDroppedError,
)
from lazulite.engine.key_encoding import encode_text
from lazulite.engine.ordinal import ordinal
from lazulite.protocol.clock import system_clock
from tests.engine.conftest import EngineFactory
from tests.engine.postgres.adds import Adds
from tests.engine.remote.over_channel import EngineOverChannel

ALL = KeyRange(("", ""), None)
ODD = ["", "\0", "\0\0", "a", "a\0", "a\0b", "ab", "é", "\ud7ff", "\ue000", "￿", "\U00010000", "\U0010ffff"]


class RejectionError(Exception):
    pass


def write(changes: Mapping[str, bytes | None]) -> Change:
    return lambda current, timestamp: changes


def reject(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
    raise RejectionError


async def put(engine: Engine, space: int, partition: str, row: str, value: bytes | None) -> int:
    return await engine.commit(space, partition, changing([row], write({row: value})))


async def rows_of(
    engine: Engine, space: int, ranges: Sequence[KeyRange] = (ALL,), limit: int | None = None
) -> list[tuple[Key, bytes]]:
    found = []
    async for part in engine.scan(space, ranges, limit):
        found += [(part.key(index), value) for index, value in enumerate(part.values)]
    return found


async def test_an_absent_row_is_none(engine: Engine) -> None:
    assert await engine.get(1, "p", "r") is None
    assert await rows_of(engine, 1) == []


async def test_a_snapshot_has_what_scans_and_reads_have(engine: Engine) -> None:
    for partition in ODD:
        await engine.commit(1, partition, put_rows({row: f"{partition}/{row}".encode() for row in ODD}))
    await put(engine, 2, "p", "r", b"another space")
    expected = await rows_of(engine, 1)
    async with engine.snapshot() as snapshot:
        keys = await snapshot.keys(1, ALL, 1000)
        assert keys == [key for key, _ in expected]
        assert await snapshot.values(1, keys) == [value for _, value in expected]
        assert await snapshot.values(2, [("p", "r"), ("p", "s"), ("q", "r")]) == [b"another space", None, None]
        assert await snapshot.keys(1, ALL, 5) == keys[:5]
        within = KeyRange(keys[3], keys[40])
        assert await snapshot.keys(1, within, 1000) == keys[3:40]
        assert await snapshot.keys(1, KeyRange(keys[3], keys[3]), 10) == []
        assert await snapshot.keys(3, ALL, 10) == []


@pytest.mark.parametrize("length", [400, 600, 1000])
async def test_a_snapshot_has_long_keys(engine: Engine, length: int) -> None:
    rows = ["\uffff" * length + end for end in ("", "a", "b\0")]
    await engine.commit(1, "p" * length, put_rows(dict.fromkeys(rows, b"value")))
    async with engine.snapshot() as snapshot:
        keys = await snapshot.keys(1, ALL, 10)
        assert keys == [("p" * length, row) for row in rows]
        assert await snapshot.values(1, keys) == [b"value"] * 3


async def test_a_snapshot_does_not_change(engine: Engine) -> None:
    await engine.commit(1, "p", put_rows({"a": b"1", "b": b"1", "c": b"1"}))
    async with engine.snapshot() as snapshot:
        assert await snapshot.keys(1, ALL, 1) == [("p", "a")]
        await engine.commit(1, "p", put_rows({"a": b"2", "b": None, "d": b"2"}))
        await put(engine, 2, "p", "r", b"2")
        assert await snapshot.keys(1, ALL, 10) == [("p", "a"), ("p", "b"), ("p", "c")]
        assert await snapshot.values(1, [("p", "a"), ("p", "b"), ("p", "d")]) == [b"1", b"1", None]
        assert await snapshot.keys(2, ALL, 10) == []
    async with engine.snapshot() as snapshot:
        assert await snapshot.keys(1, ALL, 10) == [("p", "a"), ("p", "c"), ("p", "d")]
        assert await snapshot.values(1, [("p", "a"), ("p", "b"), ("p", "d")]) == [b"2", None, b"2"]


async def test_a_snapshot_shows_no_part_of_a_commit(engine: Engine) -> None:
    """Rows and companions of commits in flight are seen together, or not at all."""

    async def write_all() -> None:
        for number in range(40):
            value = str(number).encode()
            companions = [CompanionWrite(2, ("p", row), value) for row in "ab"]
            await engine.commit(1, "p", with_companions(["r"], {"r": value}, *companions))

    writing = asyncio.create_task(write_all())
    while not writing.done():
        async with engine.snapshot() as snapshot:
            one = await snapshot.values(1, [("p", "r")])
            await asyncio.sleep(0)
            assert await snapshot.values(2, [("p", "a"), ("p", "b")]) == one * 2
    await writing


def with_companions(
    rows: Sequence[str], changes: Mapping[str, bytes | None], *companions: CompanionWrite
) -> Commit[int]:
    return Commit(rows, lambda _, timestamp: Decision(changes, timestamp, companions))


async def test_companions_are_written_with_the_changes(engine: Engine) -> None:
    await engine.commit(
        1,
        "p",
        with_companions(
            ["r"], {"r": b"row"}, *(CompanionWrite(2, ("p", row), row.encode()) for row in ("a", "b", "c"))
        ),
    )
    assert await rows_of(engine, 2) == [(("p", "a"), b"a"), (("p", "b"), b"b"), (("p", "c"), b"c")]
    moved = (
        CompanionWrite(2, ("p", "a"), None),
        CompanionWrite(2, ("p", "b"), b"new"),
        CompanionWrite(3, ("p", "b"), b""),
    )
    await engine.commit(1, "p", with_companions(["r"], {"r": None}, *moved))
    assert await engine.get(1, "p", "r") is None
    assert await rows_of(engine, 2) == [(("p", "b"), b"new"), (("p", "c"), b"c")]
    assert await rows_of(engine, 3) == [(("p", "b"), b"")]


@pytest.mark.parametrize("row", ODD)
async def test_companions_have_any_keys(engine: Engine, row: str) -> None:
    for value in (b"one", b"two", None):
        await engine.commit(1, "p", with_companions(["r"], {"r": b""}, CompanionWrite(2, ("p", row * 700), value)))
        assert await engine.get(2, "p", row * 700) == value


async def test_a_commit_may_write_companions_alone(engine: Engine) -> None:
    await put(engine, 1, "p", "r", b"row")
    await engine.commit(1, "p", with_companions(["r"], {}, CompanionWrite(2, ("p", "r"), b"entry")))
    assert await engine.get(1, "p", "r") == b"row"
    assert await engine.get(2, "p", "r") == b"entry"


async def test_a_rejected_commit_writes_no_companions(engine: Engine) -> None:
    def decide(values: Sequence[bytes | None], timestamp: int) -> Decision[None]:
        if values[0] is not None:
            raise RejectionError
        return Decision({"r": b"row"}, None, [CompanionWrite(2, ("p", str(timestamp)), b"")])

    await engine.commit(1, "p", Commit(["r"], decide))
    with pytest.raises(RejectionError):
        await engine.commit(1, "p", Commit(["r"], decide))
    assert len(await rows_of(engine, 2)) == 1


async def test_companions_of_a_dropped_space_are_left_out(engine: Engine) -> None:
    await engine.drop(2)
    writes = CompanionWrite(2, ("p", "r"), b"entry"), CompanionWrite(3, ("p", "r"), b"entry")
    await engine.commit(1, "p", with_companions(["r"], {"r": b"row"}, *writes))
    assert await engine.get(1, "p", "r") == b"row"
    assert await rows_of(engine, 2) == []
    assert await engine.get(3, "p", "r") == b"entry"


async def test_companions_follow_the_order_of_the_commits(engine: Engine) -> None:
    """Each commit moves the one entry of its row; so many at once are decided together on some engines."""

    def move(name: str) -> Commit[None]:
        def decide(values: Sequence[bytes | None], _: int) -> Decision[None]:
            before = values[0]
            gone = [] if before is None else [CompanionWrite(2, ("p", before.decode()), None)]
            return Decision({"r": name.encode()}, None, [*gone, CompanionWrite(2, ("p", name), b"")])

        return Commit(["r"], decide)

    await asyncio.gather(*(engine.commit(1, "p", move(str(number % 7))) for number in range(30)))
    value = await engine.get(1, "p", "r")
    assert value is not None
    assert await rows_of(engine, 2) == [(("p", value.decode()), b"")]


async def test_a_commit_writes_overwrites_and_deletes(engine: Engine) -> None:
    await put(engine, 1, "p", "r", b"one")
    assert await engine.get(1, "p", "r") == b"one"
    await put(engine, 1, "p", "r", b"")
    assert await engine.get(1, "p", "r") == b""
    await put(engine, 1, "p", "r", None)
    assert await engine.get(1, "p", "r") is None


async def test_a_value_at_hand_is_the_value_that_is_awaited(engine: Engine) -> None:
    values = {key: f"{key[0]}|{key[1]}".encode() for key in ((p, r) for p in ODD for r in ODD) if key[1] != "ab"}
    for key, value in values.items():
        await put(engine, 1, *key, value)
    await put(engine, 1, "p", "deleted", b"before")
    await put(engine, 1, "p", "deleted", None)
    await put(engine, 1, "p", "empty", b"")
    await put(engine, 3, "p", "r", b"dropped")
    await engine.drop(3)
    asked = [(1, *key) for key in values] + [
        (1, "p", "deleted"),
        (1, "p", "empty"),
        (1, "a", "absent"),
        (2, "a", "a"),
        (3, "p", "r"),
    ]
    for row in asked:
        assert engine.get_now(*row) in (UNKNOWN, await engine.get(*row)), row


async def test_a_value_at_hand_is_that_of_a_commit_at_its_end(engine: Engine) -> None:
    for number in range(50):
        value = b"%d" % number
        commit = asyncio.create_task(put(engine, 1, "p", "r", value))
        while engine.get_now(1, "p", "r") != value and not commit.done():  # noqa: ASYNC110 - looks in each iteration
            await asyncio.sleep(0)
        for _ in range(3):  # The value shows in the iteration that resumes the commit.
            await asyncio.sleep(0)
        if isinstance(engine, EngineOverChannel):
            await commit  # Its response is on the way.
        assert commit.done()
        assert engine.get_now(1, "p", "r") in (UNKNOWN, value)


async def test_decide_sees_the_named_rows_in_order(engine: Engine) -> None:
    await put(engine, 1, "p", "a", b"A")
    await put(engine, 1, "p", "b", b"B")
    seen: list[bytes | None] = []

    def look(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        seen.extend(current)
        return {}

    await engine.commit(1, "p", changing(["b", "missing", "a"], look))
    assert seen == [b"B", None, b"A"]


async def test_rows_that_a_decision_leaves_out_stay(engine: Engine) -> None:
    await engine.commit(1, "p", changing(["a", "b"], write({"a": b"1", "b": b"2"})))
    await engine.commit(1, "p", changing(["a", "b"], write({"b": None})))
    assert await rows_of(engine, 1) == [(("p", "a"), b"1")]


async def test_a_rejection_surfaces_as_it_is_and_changes_nothing(engine: Engine) -> None:
    await put(engine, 1, "p", "r", b"before")
    with pytest.raises(RejectionError):
        await engine.commit(1, "p", changing(["r"], reject))
    assert await rows_of(engine, 1) == [(("p", "r"), b"before")]


async def test_concurrent_commits_to_a_row_lose_no_update(engine: Engine) -> None:
    def increment(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        return {"n": b"%d" % (int(current[0] or b"0") + 1)}

    timestamps = await asyncio.gather(*(engine.commit(1, "p", changing(["n"], increment)) for _ in range(200)))
    assert await engine.get(1, "p", "n") == b"200"
    assert len(set(timestamps)) == 200


async def test_rows_come_in_ordinal_order_and_keys_never_meet(engine: Engine) -> None:
    for partition in ODD:
        await engine.commit(1, partition, changing(ODD, write({row: f"{partition}|{row}".encode() for row in ODD})))
    keys = sorted(((p, r) for p in ODD for r in ODD), key=lambda key: (ordinal(key[0]), ordinal(key[1])))
    assert await rows_of(engine, 1) == [((p, r), f"{p}|{r}".encode()) for p, r in keys]
    for partition, row in keys:
        assert await engine.get(1, partition, row) == f"{partition}|{row}".encode()


async def test_spaces_are_apart(engine: Engine) -> None:
    for space in (0, 1, 2, 2**40):
        await put(engine, space, "p", "r", b"%d" % space)
    for space in (0, 1, 2, 2**40):
        assert await rows_of(engine, space) == [(("p", "r"), b"%d" % space)]


async def test_ranges_are_half_open(engine: Engine) -> None:
    rows = ["a", "a\0", "b", "c"]
    await engine.commit(1, "p", changing(rows, write(dict.fromkeys(rows, b""))))

    async def found(*ranges: KeyRange) -> list[str]:
        return [key[1] for key, _ in await rows_of(engine, 1, ranges)]

    assert await found(KeyRange(("p", "a"), ("p", "b"))) == ["a", "a\0"]
    assert await found(KeyRange(("p", "a"), ("p", "a\0"))) == ["a"]
    assert await found(KeyRange(("p", "a\0"), ("p\0", ""))) == ["a\0", "b", "c"]
    assert await found(KeyRange(("p", "b"), ("p", "b"))) == []
    assert await found(KeyRange(("q", ""), None)) == []
    assert await found(
        KeyRange(("", ""), ("p", "a\0")), KeyRange(("p", "aa"), ("p", "ab")), ALL._replace(lower=("p", "c"))
    ) == [
        "a",
        "c",
    ]
    assert await found() == []


@pytest.mark.parametrize("limit", [0, 1, 255, 256, 257, 599, 600, 601])
async def test_a_limit_is_exact(engine: Engine, limit: int) -> None:
    rows = [f"{number:04}" for number in range(600)]
    await engine.commit(1, "p", changing(rows, write(dict.fromkeys(rows, b"x"))))
    halves = [KeyRange(("p", ""), ("p", "0300")), KeyRange(("p", "0300"), None)]
    assert [key[1] for key, _ in await rows_of(engine, 1, halves, limit)] == rows[:limit]


async def test_a_scan_keeps_to_its_snapshot_and_gives_the_loop_iterations(engine: Engine) -> None:
    rows = [f"{number:04}" for number in range(2000)]
    for start in range(0, 2000, 500):
        some = rows[start : start + 500]
        await engine.commit(1, "p", changing(some, write(dict.fromkeys(some, b"old"))))
    scan = engine.scan(1, [KeyRange(("p", ""), ("p", "1000")), KeyRange(("p", "1000"), None)])
    values = list((await anext(scan)).values)
    assert 0 < len(values) < 2000
    await put(engine, 1, "p", rows[-1], b"new")
    await put(engine, 1, "p", rows[-2], None)
    async for part in scan:
        values += part.values
    assert values == [b"old"] * 2000
    assert await engine.get(1, "p", rows[-1]) == b"new"


async def test_a_scan_of_keys_keeps_to_its_snapshot(engine: Engine) -> None:
    rows = [f"{number:04}" for number in range(2500)]
    for start in range(0, 2500, 500):
        some = rows[start : start + 500]
        await engine.commit(1, "p", changing(some, write(dict.fromkeys(some, bytes(100)))))
    scan = engine.scan(1, [KeyRange(("p", ""), ("p", "1000")), KeyRange(("p", "1000"), None)], keys_only=True)
    found = list((await anext(scan)).columns()[1])
    assert 0 < len(found) < 2500
    await put(engine, 1, "p", rows[-1], None)
    await put(engine, 1, "p", "9999", b"new")
    async for part in scan:
        found += part.columns()[1] if part.values else []
    assert found == rows


async def test_a_row_of_a_slice_is_found_by_its_key(engine: Engine) -> None:
    for partition in ODD:
        await engine.commit(1, partition, changing(ODD, write(dict.fromkeys(ODD, b""))))
    async for part in engine.scan(1, [ALL]):
        keys = [part.key(index) for index in range(len(part.values))]
        assert list(zip(*part.columns(), strict=True)) == keys
        for start in range(min(2, len(keys))):
            together = part.joined(start)
            assert together.keys == joined(keys[start:], together.keys[: together.head])
        for sought in itertools.product([*ODD, "b"], [*ODD, "b"]):
            behind = [index for index, key in enumerate(keys) if (*map(ordinal, key),) >= (*map(ordinal, sought),)]
            first = min(behind, default=len(keys))
            for start in {0, max(len(keys) - 1, 0), len(keys)}:
                assert part.find(sought, start) == max(first, start)


def joined(keys: Sequence[Key], head: bytes) -> bytes:
    texts = [(encode_text(partition).replace(b"\0", b"\0\xff"), encode_text(row)) for partition, row in keys]
    return b"".join(b"%b%b\0%b\xff" % (head, *key) for key in texts)


async def test_large_values_make_small_slices(engine: Engine) -> None:
    for number in range(8):
        await put(engine, 1, "p", str(number), bytes(1 << 20))
    async for part in engine.scan(1, [ALL]):
        assert len(part.values) <= 2


async def test_an_abandoned_scan_does_no_harm(engine: Engine) -> None:
    await engine.commit(1, "p", changing(["a", "b"], write({"a": b"", "b": b""})))
    scan = engine.scan(1, [ALL])
    await anext(scan)
    await scan.aclose()
    assert len(await rows_of(engine, 1)) == 2


async def test_a_multi_row_commit_is_seen_whole_or_not_at_all(engine: Engine) -> None:
    rows = [str(number) for number in range(10)]

    async def writer(value: bytes) -> None:
        await engine.commit(1, "p", changing(rows, write(dict.fromkeys(rows, value))))

    async def reader() -> set[bytes]:
        return {value for _, value in await rows_of(engine, 1)}

    seen = await asyncio.gather(*(task for n in range(20) for task in (writer(b"%d" % n), reader())))
    assert all(values is None or len(values) <= 1 for values in seen)


async def test_a_drop_empties_a_space_for_good(engine: Engine) -> None:
    await put(engine, 1, "p", "r", b"x")
    await put(engine, 2, "p", "r", b"y")
    await engine.drop(1)
    assert await engine.get(1, "p", "r") is None
    assert await rows_of(engine, 1) == []
    with pytest.raises(SpaceDroppedError):
        await put(engine, 1, "p", "r", b"z")
    await engine.drop(1)
    assert await rows_of(engine, 2) == [(("p", "r"), b"y")]


async def test_dropping_an_unknown_space_is_fine(engine: Engine) -> None:
    await engine.drop(12345)


async def test_check_writable_passes(engine: Engine) -> None:
    await engine.check_writable()


async def test_timestamps_grow_when_the_clock_steps_back(engine_factory: EngineFactory) -> None:
    times = [1000, 1000, 10, 2000, 5]
    engine = engine_factory.open(lambda: times.pop(0))
    timestamps = [await put(engine, 1, "p", "r", b"") for _ in range(5)]
    assert timestamps == [1000, 1001, 1002, 2000, 2001]
    await engine.close()


async def test_decide_gets_the_timestamp_that_the_commit_returns(engine: Engine) -> None:
    seen = []

    def note(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
        seen.append(timestamp)
        return {"r": b""}

    timestamp = await engine.commit(1, "p", changing(["r"], note))
    assert seen[-1] == timestamp


async def test_a_clock_that_cannot_be_believed_rejects_what_needs_a_timestamp_and_nothing_else(
    engine_factory: EngineFactory,
) -> None:
    jumped = False

    def clock() -> int:
        if jumped:
            raise EngineUnavailableError("the clock has jumped")
        return system_clock()

    engine = engine_factory.open(clock)
    await put(engine, 1, "p", "r", b"before")
    await engine.commit(2, "p", Adds(b"a").commit())
    jumped = True
    for rejected in (
        put(engine, 1, "p", "r", b"meanwhile"),
        engine.commit(1, "p", changing(["a", "b"], write({"a": b"1", "b": b"2"}))),
        engine.commit(2, "p", Adds(b"b").commit()),
        engine.commit(2, "p", put_rows({"r": b"c"})),
        engine.check_writable(),
    ):
        with pytest.raises(EngineUnavailableError, match="the clock has jumped"):
            await rejected
    assert await engine.get(1, "p", "r") == b"before"
    assert await rows_of(engine, 1) == [(("p", "r"), b"before")]
    jumped = False
    await engine.check_writable()
    await put(engine, 1, "p", "r", b"after")
    assert await engine.get(1, "p", "r") == b"after"
    await engine.close()


async def test_a_closed_engine_rejects(engine_factory: EngineFactory) -> None:
    engine = engine_factory.open(system_clock)
    await engine.close()
    await engine.close()
    assert engine.get_now(1, "p", "r") is UNKNOWN
    with pytest.raises(EngineUnavailableError):
        await engine.get(1, "p", "r")
    with pytest.raises(EngineUnavailableError):
        await put(engine, 1, "p", "r", b"")
    with pytest.raises(EngineUnavailableError):
        await rows_of(engine, 1)
    with pytest.raises(EngineUnavailableError):
        await engine.drop(1)
    with pytest.raises(EngineUnavailableError):
        await engine.check_writable()


async def test_close_answers_what_is_in_flight(engine_factory: EngineFactory) -> None:
    engine = engine_factory.open(system_clock)
    commits = [asyncio.create_task(put(engine, 1, "p", str(n), b"")) for n in range(10)]
    await asyncio.sleep(0)
    await engine.close()
    assert all(isinstance(timestamp, int) for timestamp in await asyncio.gather(*commits))


async def test_rows_drops_and_timestamps_outlive_a_restart(engine_factory: EngineFactory) -> None:
    if not engine_factory.keeps:
        pytest.skip("this engine keeps nothing")
    engine = engine_factory.open(lambda: 5000)
    await put(engine, 1, "p", "r", b"kept")
    await put(engine, 2, "p", "r", b"dropped")
    last = await put(engine, 1, "p", "s", b"kept")
    await engine.drop(2)
    await engine.close()
    engine = engine_factory.open(lambda: 1)
    assert await rows_of(engine, 1) == [(("p", "r"), b"kept"), (("p", "s"), b"kept")]
    assert await rows_of(engine, 2) == []
    assert await put(engine, 1, "p", "t", b"") > last
    await engine.close()
