"""The raw data: a file of JSON lines a section, its conditions first, then a row a run. The report is made of these."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

CLOSED, FIXED = "closed", "fixed"


@dataclass(frozen=True)
class Row:
    """One run of one workload against one subject."""

    section: str
    workload: str
    subject: str
    variant: str = ""  # the value of a growth curve's variable
    connections: int = 1  # requests under way at most
    mode: str = CLOSED
    asked_rate: float | None = None  # requests a second, at a fixed rate
    entities: int = 0  # in the table before the run
    round: int = 0  # subjects take turns in rounds
    units: int = 1  # entities that one response stands for, or 1
    requests: int = 1  # this and the next are of a `Measurement`
    errors: int = 0
    seconds: float = 0.0
    received_bytes: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    p999_ms: float = 0.0
    max_ms: float = 0.0
    server_cpu_s: float | None = None
    client_cpu_s: float | None = None
    store_cpu_s: float | None = None  # of the store behind the server: the database, or the primary of workers
    rss_mb: float | None = None  # resident memory of the server after the run
    peak_mb: float | None = None  # the most since the server's start
    grown_mb: float | None = None  # the peak of resident memory during the run, less what was resident before it
    disk_mb: float | None = None

    @property
    def rate(self) -> float | None:
        """Units a second."""
        return self.requests * self.units / self.seconds if self.seconds else None

    def each_us(self, part: str) -> float | None:
        """Return microseconds of processor for one request, of `server`, `store` or `client`."""
        seconds = self._cpu_s(part)
        return None if seconds is None else seconds / self.requests * 1e6

    def per_core(self, part: str) -> float | None:
        """Return units for a processor second of a part: the rate of a core that does nothing else."""
        seconds = self._cpu_s(part)
        return self.requests * self.units / seconds if seconds else None

    def busy(self, *parts: str) -> float | None:
        """Return the number of processors that these parts kept busy together, if the last one did."""
        found = [self._cpu_s(part) for part in parts]
        return None if found[-1] is None or not self.seconds else sum(each or 0 for each in found) / self.seconds

    @property
    def per_server_core(self) -> float | None:
        """Units for a processor second of the server."""
        return self.per_core("server")

    @property
    def per_store_core(self) -> float | None:
        """The same of the store."""
        return self.per_core("store")

    @property
    def entity_bytes(self) -> float | None:
        """Bytes on the disk for an entity."""
        return self.disk_mb * 1e6 / self.entities if self.disk_mb is not None else None

    def _cpu_s(self, part: str) -> float | None:
        seconds: float | None = getattr(self, f"{part}_cpu_s")
        return seconds


def write_section(path: Path, conditions: Iterable[str], rows: Iterable[Row]) -> None:
    """Write a section's conditions and rows, without fields that have their default."""
    defaults = asdict(Row("", "", ""))
    found = [{name: _short(value) for name, value in asdict(row).items() if value != defaults[name]} for row in rows]
    lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in (list(conditions), *found)]
    path.write_text("".join(lines), encoding="utf-8")


def _short(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def read_sections(directory: Path) -> tuple[list[str], list[Row]]:
    """Return the conditions of all sections, each once, and their rows."""
    conditions: dict[str, None] = {}
    rows = []
    for path in sorted(directory.glob("*.jsonl")):
        first, *others = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        conditions |= dict.fromkeys(first)
        rows += [Row(**each) for each in others]
    return list(conditions), rows
