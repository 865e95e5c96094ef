"""Engines against a dictionary: random commits, rejections, scans, drops and restarts must agree with it."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from lazulite.engine.commit import changing
from lazulite.engine.contract import LISTED, Key, KeyRange, SpaceDroppedError
from lazulite.engine.ordinal import ordinal
from tests.engine.conftest import ENGINES, EngineFactory

T = TypeVar("T")

texts = st.sampled_from(["", "\0", "a", "a\0", "a\0b", "b", "é", "\ud7ff", "￿", "\U00010000", "\U0010ffff"])
keys = st.tuples(texts, texts)
spaces = st.sampled_from([0, 1, 2, LISTED, LISTED | 1, LISTED | 2])
values = st.binary(max_size=20) | st.just(bytes(3000))
changes = st.dictionaries(texts, st.none() | values, max_size=5)


class RejectionError(Exception):
    pass


def order(key: Key) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])


class EngineMachine(RuleBasedStateMachine):
    """One engine and the dictionary it must equal. `kind` makes the engine."""

    kind: Callable[[Path], EngineFactory]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="lazulite-model-"))
        self.runner = asyncio.Runner()
        self.factory = type(self).kind(self.directory)
        self.now = 1000
        self.last_timestamps: dict[tuple[int, str], int] = {}
        self.model: dict[int, dict[Key, bytes]] = {}
        self.dropped: set[int] = set()
        self.ever_dropped: set[int] = set()
        self.engine = self.factory.open(lambda: self.now)

    def run(self, work: Coroutine[None, None, T]) -> T:
        return self.runner.run(work)

    def space(self, space: int) -> dict[Key, bytes]:
        return self.model.setdefault(space, {})

    @rule(space=spaces, partition=texts, named=st.sets(texts), change=changes, reject=st.booleans())
    def commit(
        self, space: int, partition: str, named: set[str], change: dict[str, bytes | None], reject: bool
    ) -> None:
        rows = sorted(named | change.keys())
        expected = [self.space(space).get((partition, row)) for row in rows]

        def decide(current: Sequence[bytes | None], timestamp: int) -> Mapping[str, bytes | None]:
            assert list(current) == expected
            assert timestamp > self.last_timestamps.get((space, partition), 0)
            if reject:
                raise RejectionError
            return change

        try:
            timestamp = self.run(self.engine.commit(space, partition, changing(rows, decide)))
        except SpaceDroppedError:
            assert space in self.ever_dropped
            return
        except RejectionError:
            assert reject
            return
        assert not reject
        assert space not in self.dropped
        if change:  # Nothing keeps the timestamp of a commit that wrote nothing.
            self.last_timestamps[space, partition] = timestamp
        for row, value in change.items():
            if value is None:
                self.space(space).pop((partition, row), None)
            else:
                self.space(space)[partition, row] = value

    @rule(
        space=spaces,
        bounds=st.lists(keys, min_size=1, max_size=4, unique=True),
        limit=st.none() | st.integers(0, 5),
        keys_only=st.booleans(),
    )
    def scan(self, space: int, bounds: list[Key], limit: int | None, keys_only: bool) -> None:
        bounds.sort(key=order)
        ranges = [
            KeyRange(bounds[at], bounds[at + 1] if at + 1 < len(bounds) else None) for at in range(0, len(bounds), 2)
        ]
        expected = [
            (key, value)
            for key, value in sorted(self.space(space).items(), key=lambda item: order(item[0]))
            if any(
                order(lower) <= order(key) and (upper is None or order(key) < order(upper)) for lower, upper in ranges
            )
        ]

        async def scanned() -> list[tuple[Key, bytes]]:
            found = []
            async for part in self.engine.scan(space, ranges, limit, keys_only=keys_only):
                found += [(part.key(at), value) for at, value in enumerate(part.values)]
            return found

        rows = self.run(scanned())
        assert [key for key, _ in rows] == [key for key, _ in expected[:limit]]
        assert keys_only or rows == expected[:limit]

    @rule(space=spaces, key=keys)
    def get(self, space: int, key: Key) -> None:
        assert self.run(self.engine.get(space, *key)) == self.space(space).get(key)

    @rule(space=st.sampled_from([2, LISTED | 2]))
    def drop(self, space: int) -> None:
        self.run(self.engine.drop(space))
        self.model.pop(space, None)
        self.dropped.add(space)
        self.ever_dropped.add(space)

    @rule(step=st.integers(-500, 500))
    def let_the_clock_step(self, step: int) -> None:
        self.now += step

    @rule()
    def restart(self) -> None:
        if self.factory.keeps:
            self.run(self.engine.close())
            self.engine = self.factory.open(lambda: self.now)
            self.dropped.clear()  # Rejecting commits to a dropped space is promised for the process only.

    @invariant()
    def spaces_hold_the_same(self) -> None:
        async def size(space: int) -> int:
            return sum([len(part.values) async for part in self.engine.scan(space, [KeyRange(("", ""), None)])])

        for space in self.model:
            assert self.run(size(space)) == len(self.model[space])

    def teardown(self) -> None:
        self.run(self.engine.close())
        self.runner.close()
        shutil.rmtree(self.directory)


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_equals_a_dictionary(kind: str) -> None:
    machine = type("Machine", (EngineMachine,), {"kind": staticmethod(ENGINES[kind])})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=15, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
