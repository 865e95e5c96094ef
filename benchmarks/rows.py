"""The raw data: one CSV a section, one row a run. Report and plots are made from these files alone."""

import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

CLOSED, FIXED = "closed", "fixed"
CONDITIONS = "conditions.csv"

_TEXTS = {"section", "workload", "subject", "variant", "mode"}
_COUNTS = {"connections", "entities", "round", "requests", "errors", "units"}


@dataclass(frozen=True)
class Row:
    """One run of one workload against one subject.

    Attributes:
        section: what it was measured in.
        workload: its name.
        subject: who answered.
        variant: what a growth curve varies, here.
        connections: how many requests were under way at most.
        mode: closed loop or fixed rate.
        asked_rate: requests a second, at a fixed rate.
        entities: how many were in the table before.
        round: subjects take turns in rounds.
        requests: answered.
        errors: those with a wrong status.
        units: what one answer stands for: entities, or 1.
        seconds: how long the run took.
        p50_ms: latency that half of the answers kept.
        p99_ms: that 99 % kept.
        p999_ms: that 99.9 % kept.
        max_ms: the worst.
        server_cpu_s: processor time of the server.
        database_cpu_s: of all processes of the database behind it, or that was asked itself.
        client_cpu_s: of the load generator.
        rss_mb: resident memory of the server after the run.
        peak_mb: the most that it was since the server's start.
        disk_mb: what something takes on the disk.
    """

    section: str
    workload: str
    subject: str
    variant: str = ""
    connections: int = 1
    mode: str = CLOSED
    asked_rate: float | None = None
    entities: int = 0
    round: int = 0
    requests: int = 1
    errors: int = 0
    units: int = 1
    seconds: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    p999_ms: float = 0.0
    max_ms: float = 0.0
    server_cpu_s: float | None = None
    client_cpu_s: float | None = None
    rss_mb: float | None = None
    peak_mb: float | None = None
    database_cpu_s: float | None = None
    disk_mb: float | None = None

    @property
    def rate(self) -> float:
        """Units a second."""
        return 0.0 if not self.seconds else self.requests * self.units / self.seconds

    @property
    def cpu_per_thousand(self) -> float | None:
        """Processor seconds of the server for 1,000 requests."""
        return None if self.server_cpu_s is None else self.server_cpu_s / self.requests * 1000


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a section's rows, replacing what was there."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _spell(value) for name, value in asdict(row).items()})


def read_rows(directory: Path) -> list[Row]:
    """Return the rows of all sections."""
    paths = [path for path in sorted(directory.glob("*.csv")) if path.name != CONDITIONS]
    return [row for path in paths for row in _read_file(path)]


def write_conditions(directory: Path, section: str, conditions: Iterable[str]) -> None:
    """Note what a section was measured under; those of the other sections stay."""
    kept = [(name, text) for name, text in read_conditions(directory) if name != section]
    with (directory / CONDITIONS).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([*kept, *((section, text) for text in conditions)])


def read_conditions(directory: Path) -> list[tuple[str, str]]:
    """Return pairs of a section and something that it was measured under."""
    path = directory / CONDITIONS
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [(name, text) for name, text in csv.reader(file)]


def _read_file(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**{name: _value(name, text) for name, text in cells.items()}) for cells in csv.DictReader(file)]


def _value(name: str, text: str) -> Any:
    if name in _TEXTS:
        return text
    if name in _COUNTS:
        return int(text)
    return float(text) if text else None


def _spell(value: str | float | None) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
