"""The report: a Markdown table and the conditions it was measured under."""

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.comparison import Comparison, Round

CLIENT_BUSY_MAX = 0.9
"""A client busier than this may have been the limit."""

_HEAD = (
    "workload",
    "connections",
    "per second",
    "p50 ms",
    "p99 ms",
    "server CPU",
    "CPU µs",
    "floor",
    "floor CPU µs",
    "of the floor",
)


def _median(rounds: Sequence[Round], of: Callable[[Round], float | None]) -> float | None:
    values = [value for value in map(of, rounds) if value is not None]
    return median(values) if values else None


def _server_busy(part: Round) -> float | None:
    return None if part.server_cpu_s is None else part.server_cpu_s / part.found.seconds


def _server_us(part: Round) -> float | None:
    return None if part.server_cpu_s is None else part.server_cpu_s * 1e6 / part.found.requests


def _spell(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _cells(comparison: Comparison) -> list[str]:
    workload, ours, floor = comparison.workload, comparison.ours, comparison.floor
    rate = median(part.found.rate for part in ours) * workload.units
    floor_rate = median(part.found.rate for part in floor) * workload.units
    return [
        workload.name,
        str(workload.connections),
        f"{rate:,.0f} {workload.unit}",
        f"{median(part.found.p50_ms for part in ours):.2f}",
        f"{median(part.found.p99_ms for part in ours):.2f}",
        _spell(_median(ours, _server_busy), ".0%"),
        _spell(_median(ours, _server_us), ",.0f"),
        f"{floor_rate:,.0f}",
        _spell(_median(floor, _server_us), ",.0f"),
        f"{comparison.ratio:.0%}",
    ]


def _client_busy(rounds: Sequence[Round]) -> bool:
    return median(part.client_cpu_s / part.found.seconds for part in rounds) > CLIENT_BUSY_MAX


def _notes(comparisons: Sequence[Comparison]) -> list[str]:
    """Say where the client may have been the limit, and which responses were not what was asked for."""
    limited = [comparison.workload.name for comparison in comparisons if _client_busy(comparison.ours)]
    floor_limited = [comparison.workload.name for comparison in comparisons if _client_busy(comparison.floor)]
    notes = [f"{each.workload.name}: {each.errors} responses had a wrong status" for each in comparisons if each.errors]
    if limited:
        notes.append(f"the client's CPU was full, the service may do more: {', '.join(limited)}")
    if floor_limited:
        notes.append(f"at the floor the client's CPU was full, the floor may do more: {', '.join(floor_limited)}")
    return notes


def render(conditions: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    """Return the report as Markdown."""
    rows = [_HEAD, ["---", *["---:"] * (len(_HEAD) - 1)], *map(_cells, comparisons)]
    lines = [f"- {condition}" for condition in conditions]
    lines += ["", *("| " + " | ".join(cells) + " |" for cells in rows), ""]
    lines += [f"- {note}" for note in _notes(comparisons)]
    return "\n".join(lines).rstrip() + "\n"
