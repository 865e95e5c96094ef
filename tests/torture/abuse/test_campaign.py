"""The short form: every scenario at once beside a good client, and no look at the clock.

The tests assert the outcomes of each attack, and that every request of the good client gets the right response. The
share of its throughput is for `make torture`, the scheduler for `tests/server/admission/test_scheduler.py`.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from benchmarks.entities import entity
from benchmarks.requests import TABLE

from tests.certificates import Authority
from tests.server_process import ServerProcess
from tests.torture.campaign import mutation_cases

from .campaign import Findings, Sample
from .probes import preload, unauthenticated_body
from .scenarios import SCENARIOS
from .target import Scenario, Target, Wire, abuse

AT_ONCE_MAX = 3
WAITING = {
    "slow heads": ("--header-read-seconds", "1"),
    "slow bodies": ("--body-read-seconds", "1"),
    "unauthenticated bodies": ("--body-read-seconds", "1"),
    "half-sent heads": ("--header-read-seconds", "1"),
    "silent connections": ("--keep-alive-seconds", "1"),
    "10,000 idle": ("--keep-alive-seconds", "1"),
}
"""Scenarios that do nothing until the server ends it, and how to make that soon."""

FOREVER = [*WAITING, "non-reading clients"]


@asynccontextmanager
async def _target(directory: Path, *flags: str, program: Sequence[str] = ("lazulite",)) -> AsyncIterator[Target]:
    """Serve a table of 1,000 entities."""
    secure = (*Authority(directory).issue().flags, "--https-port", "0")
    server = ServerProcess.start(directory / "data", *secure, *flags, program=program)
    try:
        https = re.search(r"https://[^/]*:(\d+)/", server.line())
        assert https is not None
        target = Target(int(server.account.host.split(":")[1]), int(https[1]))
        wire = await Wire.open(target)
        for request in (target.requests.create_table(), *preload(target.requests, 1000)):
            await wire.send(request)
            assert await wire.outcome() in ("201", "202/204")
        wire.close()
        yield target
    finally:
        assert server.terminate() == 0


async def _one(name: str, target: Target) -> Counter[str]:
    """Let a few of a scenario attack once each; return the outcomes."""
    mine = replace(target, outcomes=Counter(), wires=set())
    await abuse(_few(name), mine, 1)
    return mine.outcomes


def _few(name: str) -> Scenario:
    return replace(SCENARIOS[name], at_once=min(SCENARIOS[name].at_once, AT_ONCE_MAX))


async def _good(target: Target) -> int:
    """Write and read until it is enough; return how much that was."""
    requests = target.requests
    wire = await Wire.open(target)
    answered = 0
    try:
        for answered in count():
            row = f"{answered:06d}"
            await wire.send(requests.insert(entity("good", row)))
            assert (await wire.answer())[0] == "204"
            await wire.send(requests.raw("GET", f"{TABLE}(PartitionKey='good',RowKey='{row}')"))
            status, _, body = await wire.answer()
            assert status == "200"
            assert entity("good", row)[-200:] in body
    except asyncio.CancelledError:
        return answered
    finally:
        wire.close()
    raise AssertionError("a count that ends")


async def test_each_scenario_has_its_outcomes_beside_a_good_client(tmp_path: Path) -> None:
    async with _target(tmp_path) as target:
        others = replace(target, outcomes=Counter(), wires=set())
        waiting = [asyncio.create_task(abuse(_few(name), others)) for name in FOREVER]
        good = asyncio.create_task(_good(target))
        for name, scenario in SCENARIOS.items():
            if name not in FOREVER:
                outcomes = await _one(name, target)
                assert set(outcomes) <= scenario.outcomes, name
                assert outcomes, f"{name}: nothing came of it"
        good.cancel()
        assert await good > 0
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)


async def test_inactive_clients_are_disconnected(tmp_path: Path) -> None:
    flags = [flag for flags in set(WAITING.values()) for flag in flags]
    async with _target(tmp_path, *flags) as target:
        for name, outcomes in zip(
            WAITING, await asyncio.gather(*(_one(name, target) for name in WAITING)), strict=True
        ):
            assert set(outcomes) <= SCENARIOS[name].outcomes, name
            assert outcomes, f"{name}: nothing came of it"


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_unauthenticated_bodies_leave_the_body_budget_to_others(tmp_path: Path, workers: str) -> None:
    """65 bodies of 4 MiB that never end, with wrong signatures: each was held, and kept all others from writing."""
    async with _target(tmp_path, "--workers", workers) as target:
        unauthenticated = [await Wire.open(target) for _ in range(65)]
        [body] = unauthenticated_body(target.requests)
        await asyncio.gather(*(wire.send(body) for wire in unauthenticated))
        good = await Wire.open(target)
        for number in range(4):
            await good.send(target.requests.insert(entity("good", f"{number}")))
            assert await good.outcome() == "204"
        assert [await wire.outcome() for wire in unauthenticated] == ["403"] * 65
        for wire in (*unauthenticated, good):
            wire.close()


@pytest.mark.parametrize(
    ("mutation", "name", "patience_seconds"),
    mutation_cases(
        "credentials unauthenticated bodies",
        [
            ("deadlines", "slow heads", 3),
            ("bounds", "oversized bodies", 60),
            ("close", "smuggling", 0.2),
            ("credentials", "unauthenticated bodies", 0.2),
        ],
    ),
)
async def test_mutation_is_found(tmp_path: Path, mutation: str, name: str, patience_seconds: float) -> None:
    flags = ("--header-read-seconds", "1", "--drain-seconds", "0.1")
    async with _target(tmp_path, *flags, program=("tests.torture.mutations", mutation)) as target:
        outcomes = await _one(name, replace(target, patience_seconds=patience_seconds))
        assert not set(outcomes) <= SCENARIOS[name].outcomes


def _findings(ratio: float, busy: float, count: int = 3) -> Findings:
    return Findings([(Sample(1000, busy, 1), Sample(1000 * ratio, busy, 2))] * count)


def test_a_slowed_good_client_is_a_problem() -> None:
    assert list(_findings(0.7, 0.95).problems("churn")) == ["churn: the good client keeps 0.70 of its throughput"]
    assert not list(_findings(0.85, 0.95).problems("churn"))


def test_pairs_on_a_busy_machine_are_ignored() -> None:
    assert not list(_findings(0.7, 0.5).problems("churn"))
    assert not list(_findings(0.7, 0.95, 2).problems("churn"))
    assert _findings(0.7, 0.5).summary() == "(0.70 p99 1.0 → 2.0 ms)"


def test_memory_taken_by_unauthenticated_clients_is_a_problem() -> None:
    found = replace(_findings(1.0, 0.95), grown_mb=250.0)
    assert list(found.problems("half-sent heads")) == ["half-sent heads: the server's memory grew by 250 MB"]
    assert not list(found.problems("non-reading clients"))


def test_an_unexpected_outcome_is_a_problem() -> None:
    assert list(Findings(outcomes=Counter({"200": 3, "left": 1})).problems("churn"))
