"""The plots, as SVG, from the rows alone: the same rows give the same files, byte for byte."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.rows import CLOSED, FIXED, Row
from benchmarks.subjects import AZURITE, FLOOR, LAZULITE
from benchmarks.targets import middle

COLOURS = {LAZULITE: "#2a52be", FLOOR: "#888888", AZURITE: "#d9822b"}
LATENCIES: dict[str, Callable[[Row], float]] = {
    "p50": lambda row: row.p50_ms,
    "p99": lambda row: row.p99_ms,
    "p99.9": lambda row: row.p999_ms,
}
MODES = {CLOSED: "closed loop", FIXED: "fixed rate, half of the closed loop's"}
STYLES = {"p50": "-", "p99": "--", "p99.9": ":"}
SIZE_INCHES = (11, 7)

mpl.rcParams["svg.hashsalt"] = "lazulite"
mpl.rcParams["font.size"] = 9


def draw(rows: Sequence[Row], directory: Path) -> list[str]:
    """Write the plots for which there are rows; return the names of their files."""
    names = []
    for name, (section, plot) in PLOTS.items():
        shown = [row for row in rows if row.section in section]
        if shown:
            figure = Figure(figsize=SIZE_INCHES, layout="constrained")
            plot(figure, shown)
            figure.savefig(directory / name, format="svg", metadata={"Date": None})
            names.append(name)
    return names


def line(axes: Axes, rows: Sequence[Row], by: Callable[[Row], float], of: Callable[[Row], float], **how: str) -> None:
    """Draw the medians of a value against another."""
    places = sorted({by(row) for row in rows})
    values = [middle([row for row in rows if by(row) == place], of) for place in places]
    if places:
        axes.plot(places, [value or 0.0 for value in values], marker="o", markersize=3, **how)  # type: ignore[arg-type]


def _throughput(figure: Figure, rows: Sequence[Row]) -> None:
    for axes, workload in zip(figure.subplots(1, 2), ("point GET, SAS", "durable insert"), strict=True):
        for subject, colour in COLOURS.items():
            shown = [row for row in rows if (row.workload, row.subject, row.mode) == (workload, subject, CLOSED)]
            line(axes, shown, _connections, lambda row: row.rate, color=colour, label=subject)
        _dress(axes, f"{workload}, closed loop", "connections", "requests/s")


def _latency(figure: Figure, rows: Sequence[Row]) -> None:
    grid = figure.subplots(2, 2)
    for line_of_axes, workload in zip(grid, ("point GET, SAS", "durable insert"), strict=True):
        for axes, (mode, words) in zip(line_of_axes, MODES.items(), strict=True):
            for subject, colour in COLOURS.items():
                shown = [row for row in rows if (row.workload, row.subject, row.mode) == (workload, subject, mode)]
                for name, of in LATENCIES.items():
                    style = STYLES[name]
                    line(axes, shown, _connections, of, color=colour, linestyle=style, label=f"{subject} {name}")
            _dress(axes, f"{workload}, {words}", "connections", "ms")


def _growth(figure: Figure, rows: Sequence[Row]) -> None:
    panels = figure.subplots(2, 2).flatten()
    by_size = [row for row in rows if row.section == "big" and row.mode == CLOSED and row.variant in {"", "big"}]
    for workload in ("point GET, SAS", "range of 100", "durable insert", "entity group transaction"):
        shown = [row for row in by_size if row.workload == workload]
        line(panels[0], shown, lambda row: row.entities, _microseconds, label=workload)
    _dress(panels[0], "by entities in the table", "entities", "µs of a request")
    for workload in ("point GET by properties", "durable insert by properties"):
        shown = [row for row in rows if row.workload == workload]
        line(panels[1], shown, _variant, _microseconds, label=workload)
    _dress(panels[1], "by properties of an entity", "properties", "µs of a request")
    sized = [row for row in rows if row.workload == "entity group transaction by size"]
    line(panels[2], sized, _variant, lambda row: 1e6 / row.rate, label="time")
    line(panels[2], sized, _variant, lambda row: (row.cpu_per_thousand or 0.0) * 1000 / row.units, label="server CPU")
    _dress(panels[2], "by size of a transaction, 4 connections", "entities of a transaction", "µs of an entity")
    for workload in ("point GET, SAS", "durable insert"):
        chosen = [row for row in rows if (row.section, row.subject) == ("connections", LAZULITE)]
        shown = [row for row in chosen if (row.workload, row.mode) == (workload, CLOSED)]
        line(panels[3], shown, _connections, _microseconds, label=workload)
    _dress(panels[3], "by connections", "connections", "µs of a request")


def _microseconds(row: Row) -> float:
    """Return the time for one request: elapsed time over answers, whatever the number of connections."""
    return row.seconds / row.requests * 1e6


def _connections(row: Row) -> float:
    return row.connections


def _variant(row: Row) -> float:
    return float(row.variant)


def _dress(axes: Axes, title: str, abscissa: str, ordinate: str) -> None:
    axes.set(title=title, xlabel=abscissa, ylabel=ordinate, xscale="log", yscale="log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.xaxis.set_minor_formatter("")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(visible=True, which="major", alpha=0.3)
    if axes.lines:
        axes.legend(fontsize=6)


PLOTS: dict[str, tuple[set[str], Callable[[Figure, Sequence[Row]], None]]] = {
    "throughput.svg": ({"connections"}, _throughput),
    "latency.svg": ({"connections"}, _latency),
    "growth.svg": ({"big", "growth", "connections"}, _growth),
}
"""By file: the sections that it shows, and how."""
