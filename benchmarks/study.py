"""`make study`: the experiments of the study of 2010 on this machine, and `docs/study.md` with their plots.

The study is *How to get most out of Windows Azure Tables*. Its client machines are processes here: a small one is one
process, an extra large one (XL) is two. Its threads are connections that each send one request after the other. After
a refusal, they pause for 3 s. Server and clients share the CPUs of this machine.
"""

import argparse
import asyncio
import math
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from benchmarks.exchange import probe
from benchmarks.processes import Server
from benchmarks.requests import ACCOUNT, Requests, account_sas
from benchmarks.subjects import LAZULITE, start
from benchmarks.workload import Workload
from lazulite.stress.client import Address
from lazulite.stress.plan import Load, Plan
from lazulite.stress.requests import Sample
from lazulite.stress.run import Step, run, store

ROOT = Path(__file__).parents[1]
PAGE, FOLDER = ROOT / "docs" / "study.md", ROOT / "docs" / "study"
TARGETS = "study-2010"
PROCESSES = {"small": 1, "XL": 2}
"""The processes of a machine of the study."""
BATCHES = (1, 2, 5, 10, 20, 40, 70, 100)
THREADS = (1, 2, 4, 6, 8, 15, 30)
MACHINES = (1, 2, 3, 5, 8)
MANY_MACHINES = (1, 2, 5, 10)
GROUPS = (10, 20, 30, 40, 50)
"""The threads of figure 15, ten for each machine."""
ROWS = 100
"""The entities of a partition that gets find."""
REFUSING_SHARE = 3
"""Runs in which clients pause take so much longer."""
OVERHEAD_SECONDS = 2.0
"""What a point takes beside its load: processes start, entities are stored."""
WARM_SHARE = 1.5
"""The longest warm-up, for each second of a measurement."""
SECONDS_MIN = 0.5


@dataclass(slots=True)
class Curve:
    """What was measured, by the value on the x axis."""

    name: str
    steps: dict[float, Step] = field(default_factory=dict)


Measure = Callable[[Plan], Step]
"""Measures the last step of a plan."""


@dataclass(slots=True)
class Study:
    """Runs experiments.

    Args:
        seconds_max: how long a point is measured at most.
        serve: yields what measures against a server, with targets or with none.
        points: how many points there are to measure.
        budget_seconds: how long all may take. Points are measured for a shorter time if it gets scarce.
        clock: returns seconds.
    """

    seconds_max: float
    serve: Callable[[str | None], Iterator[Measure]]
    points: int = 0
    budget_seconds: float = math.inf
    clock: Callable[[], float] = time.monotonic
    _until: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin."""
        self._until = self.clock() + self.budget_seconds

    def take_seconds(self) -> float:
        """Return how long the next point is measured."""
        share = (self._until - self.clock()) / max(1, self.points)
        self.points -= 1
        return min(self.seconds_max, max(SECONDS_MIN, (share - OVERHEAD_SECONDS) / (1 + WARM_SHARE)))

    def plan(self, workload: str, size: str, threads: int, machines: int = 1, **changes: object) -> Plan:
        """Return the plan of some machines. Each thread has a partition of its own, unless `partitions` says so."""
        clients, seconds = threads * machines, self.seconds_max
        plan = Plan(
            workload=workload,
            clients=(clients,),
            partitions=clients,
            entities=clients * ROWS,
            processes=min(PROCESSES[size] * machines, clients),
            seconds=seconds,
            warm_seconds=WARM_SHARE * seconds,
            retry="pause",
        )
        return replace(plan, **changes)  # type: ignore[arg-type]  # names and types of fields of `Plan`

    def measure(self) -> dict[str, Sequence[Curve]]:
        """Return the curves of all experiments, by the number of the first figure that shows them."""
        found: dict[str, Sequence[Curve]] = {}
        for targets in (None, TARGETS):
            with contextmanager(self.serve)(targets) as measure:
                for name, experiment in EXPERIMENTS.items():
                    if targets is None or name in WITH_TARGETS:
                        if self.points > 0:
                            say(f"figure {name}{' with targets' if targets else ''}, {self.points} points to go")
                        curves = experiment(self, partial(self._in_time, measure))
                        suffix = " with targets" if targets else ""
                        found[f"{name}{suffix}"] = curves
        return found

    def _in_time(self, measure: Measure, plan: Plan) -> Step:
        share = self.take_seconds() / self.seconds_max
        return measure(replace(plan, seconds=plan.seconds * share, warm_seconds=plan.warm_seconds * share))


def points() -> int:
    """Return how many points a study has."""
    empty = Step(Load(1, None), 1, (), 1.0, 0.0, is_steady=True)
    curves = Study(1.0, lambda _: iter([lambda _: empty])).measure()
    return sum(len(curve.steps) for group in curves.values() for curve in group)


def say(text: str) -> None:
    """Report progress."""
    print(f"study: {text}", file=sys.stderr, flush=True)


def _curve(name: str, measure: Measure, plans: dict[float, Plan]) -> Curve:
    return Curve(name, {x: measure(plan) for x, plan in plans.items()})


def _figure_3(study: Study, measure: Measure) -> Sequence[Curve]:
    return [_curve(name, measure, {15: study.plan(name, "XL", 15)}) for name in ("get", "insert")]


def _figure_4(study: Study, measure: Measure) -> Sequence[Curve]:
    return [
        _curve("100 in a batch", measure, {1: study.plan("batch", "small", 1)}),
        _curve("one by itself", measure, {1: study.plan("insert", "small", 1)}),
    ]


def _by_batch(study: Study, measure: Measure, threads: int) -> Sequence[Curve]:
    return [
        _curve(size, measure, {batch: study.plan("batch", size, threads, batch=batch) for batch in BATCHES})
        for size in PROCESSES
    ]


def _by_partitions(study: Study, measure: Measure, workload: str) -> Sequence[Curve]:
    return [
        _curve(
            name,
            measure,
            {
                count: study.plan(workload, "XL", 15, count, **({"partitions": 1, "entities": ROWS} if is_one else {}))
                for count in MANY_MACHINES
            },
        )
        for name, is_one in (("one partition", True), ("a partition for each thread", False))
    ]


def _by_threads(study: Study, measure: Measure, workload: str) -> Sequence[Curve]:
    return [
        _curve(size, measure, {threads: study.plan(workload, size, threads) for threads in THREADS})
        for size in PROCESSES
    ]


def _by_machines(study: Study, measure: Measure, workload: str, threads: int) -> Sequence[Curve]:
    return [
        _curve(size, measure, {count: study.plan(workload, size, threads, count) for count in MACHINES})
        for size in PROCESSES
    ]


def _figure_15(study: Study, measure: Measure) -> Sequence[Curve]:
    """Measure the second of two equal steps: a bucket that was full at first is empty then, and pauses are spread."""
    plans: dict[float, Plan] = {}
    for threads in GROUPS:
        plan = study.plan("batch", "small", 10, threads // 10, partitions=1, seconds=REFUSING_SHARE * study.seconds_max)
        plans[threads] = replace(plan, clients=plan.clients * 2, warm_seconds=study.seconds_max)
    return [_curve("one partition", measure, plans)]


EXPERIMENTS: dict[str, Callable[[Study, Measure], Sequence[Curve]]] = {
    "3": _figure_3,
    "4": _figure_4,
    "5": lambda study, measure: _by_batch(study, measure, 1),
    "7": lambda study, measure: _by_batch(study, measure, 30),
    "8": lambda study, measure: _by_partitions(study, measure, "insert"),
    "9": lambda study, measure: _by_partitions(study, measure, "get"),
    "10": lambda study, measure: _by_threads(study, measure, "batch"),
    "11": lambda study, measure: _by_threads(study, measure, "get"),
    "12": lambda study, measure: _by_machines(study, measure, "batch", 15),
    "13": lambda study, measure: _by_machines(study, measure, "batch", 30),
    "14": lambda study, measure: _by_machines(study, measure, "get", 30),
    "15": _figure_15,
}
"""By the first figure that shows the results: figure 6 is figure 5, divided."""
WITH_TARGETS = ("8", "9", "15")


def serve(targets: str | None) -> Iterator[Measure]:
    """Run a server on the disk of the temporary directory, and yield what measures against it."""
    options = ("--targets", targets) if targets else ()
    with (
        tempfile.TemporaryDirectory(prefix="lazulite-study-") as folder,
        start(LAZULITE, "--location", str(Path(folder, "data")), *options, pin=False) as server,
    ):
        yield lambda plan: _measured(server, plan)


def _measured(server: Server, plan: Plan) -> Step:
    """Return the last step of a plan, on a new table."""
    name = f"study{secrets.token_hex(4)}"
    token = account_sas(f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}")
    sample = Sample(server.host, f"/{ACCOUNT}", f"http://{server.host}/{ACCOUNT}", name, token)
    requests, address = Requests(server.host, datetime.now(UTC)), Address("127.0.0.1", server.port)
    body = b'{"TableName":"%b"}' % name.encode()
    create = requests.raw("POST", "Tables", body=body, Content_Type="application/json")
    probe(Workload("create", 1, 1, 201, [create]), server.port)

    async def work() -> Step:
        await store(plan, sample, address)
        return (await run(plan, sample, address, lambda _: None, probes=False))[-1]

    step = asyncio.run(work())
    probe(Workload("delete", 1, 1, 204, [requests.raw("DELETE", f"Tables('{name}')")]), server.port)
    if step.sum.failed:
        say(f"failed requests: {dict(step.sum.failed)}")
    return step


def main() -> None:
    """Measure, and write the page and its plots."""
    from benchmarks.study_page import write  # noqa: PLC0415 - it knows this module

    parser = argparse.ArgumentParser(prog="python -m benchmarks.study", description="Repeat the study on this machine.")
    parser.add_argument("--seconds", type=float, default=3, help="of each of some 140 points, at most (%(default)s)")
    parser.add_argument("--minutes", type=float, default=18, help="of all, about; points get shorter (%(default)s)")
    parser.add_argument("--docs", type=Path, default=PAGE.parent, help="where study.md and study/ go (%(default)s)")
    args = parser.parse_args()
    began = time.monotonic()
    curves = Study(args.seconds, serve, points(), args.minutes * 60).measure()
    seconds = time.monotonic() - began
    write(curves, args.docs, seconds, args.seconds)
    say(f"{seconds / 60:.1f} min; see {args.docs / PAGE.name}")


if __name__ == "__main__":
    main()
