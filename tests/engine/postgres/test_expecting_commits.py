"""Commits with a kept row: one round trip each while no other process commits, decided on what is there if one has."""

import asyncio
from collections.abc import Mapping
from random import Random

import pytest

from lazulite.engine.commit import ANYTHING, Commit, Decision, Expect, Precondition, Values, changing
from lazulite.engine.contract import EngineUnavailableError, KeyRange
from lazulite.engine.postgres import partition_commit
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.partition_commit import KeptRow, KeptRowCache
from lazulite.engine.postgres.partition_io import PartitionChange
from lazulite.engine.postgres.sql_scripts import PartitionAddress

from .conftest import SCRIPTS, Open


class RejectedError(Exception):
    """A row is not as expected, or the count is at its bound."""


class Take:
    """Deletes rows that begin as expected, adds others, and counts the rows in the row `n`, up to a bound."""

    def __init__(self, taken: Mapping[str, bytes], added: Mapping[str, bytes], bound: int = 1000) -> None:
        self.beginnings = taken
        self.added = dict(added)
        self.bound = bound
        self.asked = 0

    def commit(self) -> Commit[int]:
        return Commit(["n", *self.beginnings, *self.added], self._decide, self._expected, "n")

    def _expected(self, _: Values | None) -> list[Precondition | None]:
        taken = [Precondition(Expect.PRESENT, prefix=each, example=each) for each in self.beginnings.values()]
        return [None, *taken, *[ANYTHING] * len(self.added)]

    def _decide(self, current: Values, stamp: int) -> Decision[int]:
        self.asked += 1
        for value, beginning in zip(current[1:], self.beginnings.values(), strict=False):
            if value is None or not value.startswith(beginning):
                raise RejectedError
        count = int(current[0] or b"0") + len(self.added) - len(self.beginnings)
        if count > self.bound:
            raise RejectedError
        return Decision({"n": b"%d" % count, **dict.fromkeys(self.beginnings), **self.added}, stamp)


class Calls:
    """Counts the reads and changes of an engine's partitions."""

    def __init__(self, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        assert engine._components is not None
        self.io = engine._components.partitions._io
        self.made: list[str] = []
        self.fails = False
        read, apply = self.io.read, self.io.apply

        async def noted_read(request: object) -> object:
            self.made.append("read")
            return await read(request)  # type: ignore[arg-type]  # it is passed on

        async def noted_apply(change: PartitionChange) -> bool:
            self.made.append("apply")
            done = await apply(change)
            if self.fails:
                raise EngineUnavailableError("as the test wants")
            return done

        monkeypatch.setattr(self.io, "read", noted_read)
        monkeypatch.setattr(self.io, "apply", noted_apply)

    def take(self) -> list[str]:
        made, self.made[:] = list(self.made), []
        return made


async def take(engine: PostgresEngine, commit: Take) -> bool:
    try:
        await engine.commit(1, "p", commit.commit())
    except RejectedError:
        return False
    return True


@pytest.fixture(name="two", params=SCRIPTS, ids=lambda scripts: "scripts" if scripts else "statements")
async def _two(open_engine: Open, request: pytest.FixtureRequest) -> tuple[PostgresEngine, PostgresEngine]:
    engines = open_engine(scripts=request.param), open_engine(scripts=request.param)
    for engine in engines:
        await engine.start()
    return engines


Two = tuple[PostgresEngine, PostgresEngine]


async def test_only_the_first_commit_of_a_partition_reads(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = two
    calls = Calls(one, monkeypatch)
    assert await take(one, Take({}, {"a": b"aa", "b": b"bb"}))
    assert calls.take() == ["read", "apply"]
    assert await take(one, Take({"a": b"a"}, {"c": b"cc"}))
    assert await take(one, Take({"b": b"bb", "c": b""}, {}))
    assert calls.take() == ["apply", "apply"]
    assert await one.get(1, "p", "n") == b"0"
    assert [await one.get(1, "p", row) for row in "abc"] == [None] * 3


@pytest.mark.parametrize("taken", [{"a": b"x"}, {"a": b"aaa"}, {"b": b""}, {"a": b"aa", "b": b""}])
async def test_rows_that_are_not_as_expected(
    two: Two, monkeypatch: pytest.MonkeyPatch, taken: Mapping[str, bytes]
) -> None:
    one, _ = two
    await take(one, Take({}, {"a": b"aa"}))
    calls = Calls(one, monkeypatch)
    commit = Take(taken, {"c": b""})
    assert not await take(one, commit)
    assert commit.asked == 2
    assert calls.take() == ["apply", "read"]
    assert await one.get(1, "p", "n") == b"1"
    assert await one.get(1, "p", "c") is None


async def test_what_another_process_has_changed_is_read(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = two
    await take(one, Take({}, {"a": b"a"}, bound=2))
    await take(other, Take({}, {"b": b"b"}, bound=2))
    calls = Calls(one, monkeypatch)
    assert not await take(one, Take({}, {"c": b""}, bound=2)), "two are there, whatever is kept"
    assert calls.take() == ["apply", "read"]
    await take(other, Take({"a": b"a", "b": b"b"}, {}))
    assert await take(one, Take({}, {"c": b""}, bound=1))
    assert await one.get(1, "p", "n") == b"1"


async def test_a_partition_that_others_change_is_kept_again_after_the_next_commit_but_one(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    await take(one, Take({}, {"a": b"a"}))
    await take(other, Take({}, {"b": b"b"}))
    calls = Calls(one, monkeypatch)
    for row, made in (("c", ["apply", "read", "apply"]), ("d", ["read", "apply"]), ("e", ["apply"])):
        await take(one, Take({}, {row: b""}))
        assert calls.take() == made


async def test_a_rejection_is_of_what_is_there(two: Two) -> None:
    """Not of what is kept."""
    one, other = two
    await take(one, Take({}, {"a": b"a"}, bound=1))
    await take(other, Take({"a": b"a"}, {}))
    assert await take(one, Take({}, {"b": b"b"}, bound=1))
    assert await one.get(1, "p", "n") == b"1"


async def test_other_commits_of_the_process_are_known(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = two
    await take(one, Take({}, {"a": b"a"}))
    await one.commit(1, "p", changing(["n", "b"], lambda *_: {"n": b"7"}))
    calls = Calls(one, monkeypatch)
    assert await take(one, Take({"a": b""}, {}))
    assert calls.take() == ["read", "apply"]
    assert await one.get(1, "p", "n") == b"6"


async def test_of_commits_at_once_each_sees_those_before(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = two
    await take(one, Take({}, {"a": b"a", "b": b"b"}))
    calls = Calls(one, monkeypatch)
    commits = [Take({"a": b"a"}, {"a": b"new"}), Take({"a": b"a"}, {}), Take({"a": b"new"}, {}), Take({"b": b"b"}, {})]
    commits[1].added = {"d": b"d"}
    done = await asyncio.gather(*(take(one, commit) for commit in commits))
    assert done == [True, False, True, True]
    assert calls.take().count("read") == 0
    assert await one.get(1, "p", "n") == b"0"
    assert await one.get(1, "p", "d") is None


async def test_after_an_unknown_outcome_rows_are_read(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = two
    await take(one, Take({}, {"a": b"a"}))
    calls = Calls(one, monkeypatch)
    calls.fails = True
    with pytest.raises(EngineUnavailableError):
        await take(one, Take({"a": b"a"}, {}))
    calls.fails = False
    calls.take()
    assert not await take(one, Take({"a": b"a"}, {}))
    assert calls.take() == ["read"]
    assert await one.get(1, "p", "n") == b"0"


def test_few_and_small_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_commit, "PARTITIONS_MAX", 2)
    kept = KeptRowCache()
    for number in range(3):
        kept.keep(PartitionAddress(number, b"p", None), KeptRow(number, b"n", b""))
    assert kept.take(PartitionAddress(0, b"p", None), b"n") is None
    assert kept.take(PartitionAddress(1, b"p", None), b"m") is None
    assert kept.take(PartitionAddress(2, b"p", None), b"n") == KeptRow(2, b"n", b"")
    assert kept.take(PartitionAddress(2, b"p", None), b"n") is None
    kept.keep(PartitionAddress(3, b"p", None), KeptRow(3, b"n", bytes(partition_commit.VALUE_BYTES_MAX + 1)))
    assert kept.take(PartitionAddress(3, b"p", None), b"n") is None


async def test_processes_that_commit_at_once_agree(two: Two) -> None:
    """Each row is taken by one process, and the count is that of the rows."""
    random = Random(1)
    known, left, taken = ["none"], set[str](), 0
    for step in range(60):
        only = step // 10 % 2  # Ten steps of both processes, then ten of the first one.
        commits: list[tuple[PostgresEngine, Take]] = []
        for number in range(random.randint(1, 5)):
            rows = random.sample(known, min(len(known), random.randint(0, 2)))
            commit = Take(dict.fromkeys(rows, b"v"), {f"{step}-{number}": b"value"}, bound=random.choice([3, 1000]))
            commits.append((two[0 if only else random.randint(0, 1)], commit))
        done = await asyncio.gather(*(take(*each) for each in commits))
        made = [commit for (_, commit), is_made in zip(commits, done, strict=True) if is_made]
        gone = [row for commit in made for row in commit.beginnings]
        added = [row for commit in made for row in commit.added]
        assert len(set(gone)) == len(gone)
        assert set(gone) <= left
        taken += len(gone)
        left = left - set(gone) | set(added)
        known += added
    whole = KeyRange(("p", ""), ("p\0", ""))
    found = {part.key(at)[1]: value async for part in two[0].scan(1, [whole]) for at, value in enumerate(part.values)}
    assert int(found.pop("n", b"0")) == len(found)
    assert set(found) == left
    assert taken > 20
