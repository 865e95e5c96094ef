"""The report: Markdown made from the raw data alone. `python -m benchmarks.report` makes it, and the plots, again."""

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from benchmarks import database_report
from benchmarks.markdown import spell, table
from benchmarks.rows import CLOSED, Row, read_conditions, read_rows
from benchmarks.subjects import AZURITE, BARE, FLOOR, LAZULITE
from benchmarks.targets import TARGETS, Results, Target, middle, ratio

DIRECTORY = Path(__file__).with_name("results")
REPORT = Path(__file__).with_name("RESULTS.md")
REMARK = "remark: "
"""A condition that begins so qualifies the rows of its section, and is printed beside them."""
CLIENT_BUSY_MAX = 0.9
"""A client busier than this may have been the limit."""

_TARGET_HEAD = ("workload", "asked", "measured", "met", "the bare path")
_RUN_HEAD = (
    *(
        "workload",
        "entities",
        "connections",
        "subject",
        "mode",
        "per second",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "worst ms",
    ),
    *("server CPU s / 1,000", "server CPU", "RSS MB", "of the floor", "Lazulite is × it"),
)
_NAMES = {
    "table": "The workloads of the targets",
    "connections": "By connections, closed loop and fixed rate",
    "big": "The big table",
    "growth": "How cost grows",
    "postgres": "On PostgreSQL",
    "startup": "Commands and idle servers",
}


def _target_cells(target: Target, results: Results) -> list[str]:
    value, bare = target.measured(results), target.bare and target.bare(results)
    least = "" if bare is None else target.spell(bare)
    if value is None:
        return [target.of, target.text, "–", "not measured", least]
    return [target.of, target.text, target.spell(value), "met" if target.met(value) else "**not met**", least]


def _group(row: Row) -> tuple[str, str, int, str, int]:
    """Return what the rows of all rounds and subjects have in common."""
    return row.workload, row.variant, row.connections, row.mode, row.entities


def _grouped(rows: Iterable[Row]) -> list[list[Row]]:
    groups: dict[tuple[str, str, int, str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault(_group(row), []).append(row)
    return list(groups.values())


def _times(ours: Sequence[Row], theirs: Sequence[Row]) -> float | None:
    return ratio(ours, theirs, lambda row: row.rate)


def _run_cells(subject: str, by_subject: dict[str, list[Row]]) -> list[str]:
    rows = by_subject[subject]
    first = rows[0]
    latencies: list[Callable[[Row], float | None]] = [
        lambda row: row.p50_ms or None,
        lambda row: row.p99_ms or None,
        lambda row: row.p999_ms or None,
    ]
    share = None if subject == FLOOR else _times(rows, by_subject.get(FLOOR, []))
    multiple = _times(by_subject.get(LAZULITE, []), rows) if subject in (AZURITE, BARE) else None
    name = f"{first.workload} {first.variant}".strip()
    asked = middle(rows, lambda row: row.asked_rate)
    return [
        name if subject == next(iter(by_subject)) else "",
        f"{first.entities:,}" if first.entities else "",
        str(first.connections),
        subject,
        first.mode if asked is None else f"{asked:,.0f}/s",
        spell(middle(rows, lambda row: row.rate), ",.0f"),
        *(spell(middle(rows, of), ".2f") for of in latencies),
        spell(max(row.max_ms for row in rows) or None, ".2f"),
        spell(middle(rows, lambda row: row.cpu_per_thousand), ".3f"),
        spell(middle(rows, lambda row: None if row.server_cpu_s is None else row.server_cpu_s / row.seconds), ".0%"),
        spell(middle(rows, lambda row: row.rss_mb), ".0f"),
        spell(share if first.mode == CLOSED else None, ".0%"),
        spell(multiple if first.mode == CLOSED else None, ".2f" if subject == BARE else ".1f"),
    ]


def _runs(rows: Sequence[Row]) -> list[str]:
    cells = []
    for group in _grouped(row for row in rows if row.requests):
        by_subject: dict[str, list[Row]] = {}
        for row in group:
            by_subject.setdefault(row.subject, []).append(row)
        cells += [_run_cells(subject, by_subject) for subject in by_subject]
    return table(_RUN_HEAD, cells)


def _memory(rows: Sequence[Row]) -> list[str]:
    """Return resident memory by section and subject: the least of idle servers, and the peak."""
    cells = []
    for section, subject in itertools.product(_NAMES, (LAZULITE, AZURITE, FLOOR)):
        here = [row for row in rows if (row.section, row.subject) == (section, subject)]
        idle = min((row.rss_mb for row in here if row.workload == "idle" and row.rss_mb is not None), default=None)
        peak = max((row.peak_mb for row in here if row.peak_mb is not None), default=None)
        if peak is not None:
            cells.append([section, subject, spell(idle, ".0f"), spell(peak, ".0f")])
    return table(("section", "subject", "idle MB", "peak MB"), cells, left=2)


def _load(rows: Sequence[Row]) -> list[str]:
    """Say how long the load of the big table took."""
    steps = [row for row in rows if (row.section, row.workload) == ("big", "load")]
    if not steps:
        return []
    stored, seconds = sum(row.requests * row.units for row in steps), sum(row.seconds for row in steps)
    return [f"{stored:,} entities were loaded by transactions in {seconds:,.0f} s, {stored / seconds:,.0f} a second"]


def _notes(rows: Sequence[Row]) -> list[str]:
    """Say where the client may have been the limit, and which responses were not what was asked for."""
    closed = [row for row in rows if row.mode == CLOSED and row.client_cpu_s is not None]
    notes = _load(rows)
    notes += [
        f"{row.workload}, {row.subject}: {row.errors} answers had a wrong status, or did not come"
        for row in rows
        if row.errors
    ]
    for subject, its in (("Lazulite", LAZULITE), ("the floor", FLOOR), ("Azurite", AZURITE)):
        limited = [
            f"{group[0].section}: {group[0].workload} × {group[0].connections}"
            for group in _grouped(row for row in closed if row.subject == its)
            if (middle(group, lambda row: (row.client_cpu_s or 0.0) / row.seconds) or 0.0) > CLIENT_BUSY_MAX
        ]
        if limited:
            notes.append(f"at {subject} the client's CPU was full, it may do more: {'; '.join(limited)}")
    return notes


def _remarks(conditions: Sequence[tuple[str, str]], sections: Collection[str]) -> list[str]:
    """Return what qualifies the rows of some sections."""
    found = [text.removeprefix(REMARK) for name, text in conditions if name in sections and text.startswith(REMARK)]
    return [*(f"- {text}" for text in found), ""] if found else []


def render(rows: Sequence[Row], conditions: Sequence[tuple[str, str]], plots: Sequence[str] = ()) -> str:
    """Return the report as Markdown."""
    results = Results(rows)
    common = [text for _, text in conditions if not text.startswith(REMARK)]
    lines = ["# Results", "", "Made by `make bench` from the raw data in `benchmarks/results`; [how](README.md).", ""]
    lines += ["## Conditions", "", *(f"- {text}" for text in dict.fromkeys(common)), "", "## Targets"]
    lines += table(_TARGET_HEAD, (_target_cells(target, results) for target in TARGETS), left=5)
    lines += _remarks(conditions, _NAMES)
    for name in plots:
        lines += [f"![{name}](results/{name})", ""]
    for section, title in _NAMES.items():
        shown = database_report.runs if section == database_report.SECTION else _runs
        of_section = shown([row for row in rows if row.section == section])
        lines += [f"## {title}", *of_section, *_remarks(conditions, [section])] if of_section else []
    lines += ["## Memory", *_memory(rows)]
    notes = [*_notes(rows), *database_report.notes(rows)]
    lines += ["## Notes", "", *(f"- {note}" for note in notes)] if notes else []
    return "\n".join(lines).rstrip() + "\n"


def write_report(directory: Path, report: Path, *, plots: bool = True) -> str:
    """Make the report and, if wanted, the plots from the files in `directory`; return the report."""
    rows = read_rows(directory)
    drawn: list[str] = []
    if plots:
        from benchmarks.plots import draw  # noqa: PLC0415  # only here is matplotlib needed

        drawn = draw(rows, directory)
    text = render(rows, read_conditions(directory), drawn)
    report.write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    print(write_report(DIRECTORY, REPORT), end="")
