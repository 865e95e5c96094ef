"""The report: Markdown made from the raw data alone. `python -m benchmarks.report` makes it again."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import CLOSED, Row, read_sections
from benchmarks.sections import SECTIONS
from benchmarks.subjects import AZURITE, BASELINE, HELD, LAZULITE, MINIMAL, PGBENCH, PLAIN, TWO, TWO_HELD, WORKERS
from benchmarks.targets import TARGETS, find, middle, ratio

DIRECTORY = Path(__file__).with_name("results")
REPORT = Path(__file__).with_name("RESULTS.md")
ONE_PROCESS = {TWO: LAZULITE, TWO_HELD: HELD, **dict.fromkeys(WORKERS, LAZULITE)}
"""By subject of several processes: the one of a single process."""
NONE = "–"


class Line(NamedTuple):
    """A line of a table: rows of one subject, one a round; and the rows of all subjects that took turns with it."""

    rows: Sequence[Row]
    group: Sequence[Row]

    def against(self, subject: str | None) -> float | None:
        """Return the rate as a multiple of another subject's on as many connections; pgbench may have others."""
        others = find(self.group, {"subject": subject, "connections": self.rows[0].connections})
        if subject == PGBENCH:
            others = others or find(self.group, {"subject": subject})
        is_other = self.rows[0].mode == CLOSED and self.rows[0].subject != subject
        return ratio(self.rows, others) if is_other else None

    def lazulite(self) -> float | None:
        """Return the rate of Lazulite as a multiple of that of Azurite, or of the minimal server."""
        share = self.against(LAZULITE) if self.rows[0].subject in (AZURITE, MINIMAL) else None
        return 1 / share if share else None


def _cell(form: str, value: float | None) -> str:
    return NONE if value is None else format(value, form)


def _of(field: str | Callable[[Row], float | None]) -> Callable[[Line], float | None]:
    return lambda line: middle(line.rows, field) or None


COLUMNS: dict[str, tuple[str, Callable[[Line], float | None]]] = {
    "per second": (",.0f", _of("rate")),
    "p50 ms": (".2f", _of("p50_ms")),
    "p99 ms": (".2f", _of("p99_ms")),
    "p99.9 ms": (".2f", _of("p999_ms")),
    "worst ms": (".2f", _of("max_ms")),
    "server CPU, µs": (",.1f", _of(lambda row: row.each_us("server"))),
    "store CPU, µs": (",.1f", _of(lambda row: row.each_us("store"))),
    "client CPU, µs": (",.1f", _of(lambda row: row.each_us("client"))),
    "server CPU": (".0%", _of(lambda row: row.busy("server"))),
    "client CPU": (".0%", _of(lambda row: row.busy("client"))),
    "CPUs busy": (".2f", _of(lambda row: row.busy("server", "client", "store"))),
    "per server core": (",.0f", _of(lambda row: row.per_core("server") if row.store_cpu_s else None)),
    "per store core": (",.0f", _of("per_store_core")),
    "RSS MB": (".0f", _of("rss_mb")),
    "peak MB": (".0f", _of("peak_mb")),
    "grown MB": (".1f", _of("grown_mb")),
    "bytes of an entity": (",.1f", _of("entity_bytes")),
    "of the baseline": (".0%", lambda line: line.against(BASELINE)),
    "Lazulite is × it": (".2f", Line.lazulite),
    "of pgbench": (".0%", lambda line: line.against(PGBENCH)),
    "of plain PostgreSQL": (".2f", lambda line: line.against(PLAIN)),
    "of one process": (".2f", lambda line: line.against(ONE_PROCESS.get(line.rows[0].subject))),
}
"""By head: the form and the value of a cell. A table has the columns of which it has a number."""


def table(head: Sequence[str], cells: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Return a Markdown table whose first `left` columns are texts, between empty lines; nothing without rows."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    lines = ["| " + " | ".join(each) + " |" for each in (head, rule, *cells)]
    return ["", *lines, ""] if len(lines) > 2 else []


def grouped(rows: Iterable[Row], *names: str) -> list[list[Row]]:
    """Return groups of rows with the same values of these fields, in the order in which they begin."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, name) for name in names), []).append(row)
    return list(groups.values())


def _targets(rows: Sequence[Row]) -> list[str]:
    cells = []
    for target in TARGETS:
        value = target.measured(rows)
        minimal = target.measured(rows, MINIMAL) if target.subject == LAZULITE else None
        verdict = "not measured" if value is None else "met" if target.met(value) else "**not met**"
        measured, least = ("" if each is None else target.form.format(each) for each in (value, minimal))
        cells.append([target.name, target.text, measured or NONE, verdict, least])
    return table(("workload", "asked", "measured", "met", "the minimal server"), cells, left=5)


def _runs(rows: Sequence[Row]) -> list[str]:
    """Return a table of runs."""
    groups = grouped(rows, "workload", "variant", "mode", "entities")
    lines = [Line(each, group) for group in groups for each in grouped(group, "subject", "connections")]
    columns = {head: [_cell(form, value(line)) for line in lines] for head, (form, value) in COLUMNS.items()}
    shown = {head: cells for head, cells in columns.items() if {*cells} != {NONE}}
    labels = zip(*map(_labels, lines), strict=True)
    cells = zip(*labels, *shown.values(), strict=True)
    return table(("workload", "entities", "connections", "subject", "mode", *shown), cells)


def _labels(line: Line) -> list[str]:
    row = line.rows[0]
    first = find(line.group, {"connections": row.connections})[0]
    name = f"{row.workload} {row.variant}".strip() if row is first else ""
    mode = row.mode if row.asked_rate is None else f"{middle(line.rows, 'asked_rate'):,.0f}/s"
    return [name, f"{row.entities:,}" if row.entities else "", str(row.connections), row.subject, mode]


def render(rows: Sequence[Row], conditions: Sequence[str]) -> str:
    """Return the report as Markdown."""
    lines = ["# Results", "", "Made by `make bench` from the raw data in `benchmarks/results`; [how](README.md).", ""]
    lines += ["## Conditions", "", *(f"- {text}" for text in conditions)]
    wrong = [
        f"- {row.workload}, {row.subject}: {row.errors} responses were wrong, or did not come"
        for row in rows
        if row.errors
    ]
    lines += ["", "## Errors", "", *wrong] if wrong else []
    lines += ["", "## Targets", *_targets(rows)]
    for name, (title, _) in SECTIONS.items():
        here = find(rows, {"section": name})
        lines += [f"## {title}", *_runs(here)] if here else []
    return "\n".join(lines).rstrip() + "\n"


def write_report(directory: Path, report: Path) -> str:
    """Make the report from the files in `directory`; return it."""
    conditions, rows = read_sections(directory)
    text = render(rows, conditions)
    report.write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    print(write_report(DIRECTORY, REPORT), end="")
