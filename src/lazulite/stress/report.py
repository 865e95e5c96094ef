"""The report of a run: as JSON, as CSV, and as plots. No key and no token is in it."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from lazulite.stress.histogram import quantile
from lazulite.stress.plan import Plan
from lazulite.stress.plot import Panel, Plot, Series
from lazulite.stress.run import Step
from lazulite.stress.verdict import Verdict

_COLUMNS = (
    *("step", "clients", "rate", "seconds", "warm_seconds", "is_steady", "per_second", "requests", "refused"),
    *("failed", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "late_p99_ms", "client_busy", "round_trip_ms"),
    "machine_busy",
)
_QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1.0}


def rows(steps: Sequence[Step]) -> Sequence[Mapping[str, object]]:
    """Return a row for each step, by the names of columns. Numbers are rounded, and None is not known."""
    found = []
    for number, step in enumerate(steps, 1):
        window = step.sum
        row = {
            "step": number,
            "clients": step.load.clients,
            "rate": step.load.rate,
            "seconds": step.seconds,
            "warm_seconds": step.warm_seconds,
            "is_steady": step.is_steady,
            "per_second": step.rate,
            "requests": window.requests,
            "refused": window.refused.total(),
            "failed": window.failed.total(),
            **{name: step.quantile_ms(share) for name, share in _QUANTILES.items()},
            "late_p99_ms": quantile(window.late, 0.99) * 1000 if window.late else None,
            "client_busy": window.busy,
            "round_trip_ms": None if step.round_trip is None else step.round_trip * 1000,
            "machine_busy": step.machine_busy,
        }
        found.append({name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()})
    return found


def csv_text(steps: Sequence[Step]) -> str:
    """Return a table with a line for each step."""
    written = io.StringIO()
    writer = csv.DictWriter(written, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(steps))
    return written.getvalue()


def json_text(steps: Sequence[Step], plan: Plan, verdict: Verdict, endpoint: str) -> str:
    """Return an object with everything.

    Args:
        steps: what was measured.
        plan: what was asked for.
        verdict: about it.
        endpoint: its URL, without a token.
    """
    found = {
        "endpoint": endpoint,
        "plan": asdict(plan),
        "verdict": {
            "outcome": verdict.outcome.name.lower(),
            "limit": verdict.limit.value,
            "sentence": verdict.sentence,
        },
        "steps": [
            {**row, "refused_by": dict(step.sum.refused), "failed_by": dict(step.sum.failed)}
            for row, step in zip(rows(steps), steps, strict=True)
        ],
    }
    return json.dumps(found, indent=1) + "\n"


def plot(steps: Sequence[Step], plan: Plan, verdict: Verdict) -> Plot:
    """Return the plot of a run over time: rates above latencies, with a line between steps."""
    good, refused, median, slow = Series("succeeded"), Series("throttled"), Series("p50"), Series("p99")
    at, marks = 0.0, list[tuple[float, str]]()
    for step in steps:
        marks.append((at, step.load.name))
        for window in step.windows:
            at += step.window_seconds
            good.points.append((at, window.requests * plan.cost / step.window_seconds))
            refused.points.append((at, window.refused.total() * plan.cost / step.window_seconds))
            if window.latencies:
                median.points.append((at, quantile(window.latencies, 0.5) * 1000))
                slow.points.append((at, quantile(window.latencies, 0.99) * 1000))
    units = {"queue": "messages/s", "blob": "requests/s"}.get(plan.service, "entities/s")
    panels = (
        Panel("Rate", "measured seconds", units, (good, refused), marks=marks),
        Panel("Latency", "measured seconds", "ms", (median, slow), marks=marks),
    )
    partitions = f"{plan.partitions:,} {'partition' if plan.partitions == 1 else 'partitions'}"
    return Plot(f"{plan.workload}, {partitions}, {plan.keys} keys: {verdict.outcome.name.lower()}", panels)
