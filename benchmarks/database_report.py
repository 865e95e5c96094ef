"""What the report says of the service on a database: who took how much of the processors, and what is full first."""

from collections.abc import Callable, Iterable, Sequence

from benchmarks.markdown import spell, table
from benchmarks.rows import Row
from benchmarks.sections.postgres import LOAD, SIZE
from benchmarks.subjects import HELD, LAZULITE, PGBENCH, TWO, TWO_HELD
from benchmarks.targets import middle, ratio

SECTION = "postgres"

_RUN_HEAD = (
    *("workload", "entities", "subject", "connections", "per second", "p50 ms", "p99 ms", "p99.9 ms", "worst ms"),
    *("service, µs of CPU", "database, µs", "client, µs", "CPUs busy", "of pgbench", "of one process"),
)
_CORE_HEAD = (
    *("workload", "a core of the service", "a core of the database", "the same by pgbench"),
    "cores of the service that fill one of the database",
)
_ONE = {TWO: LAZULITE, TWO_HELD: HELD}
"""What two processes are compared with."""
_LATENCIES: tuple[Callable[[Row], float | None], ...] = (
    lambda row: row.p50_ms,
    lambda row: row.p99_ms,
    lambda row: row.p999_ms,
)


def runs(rows: Sequence[Row]) -> list[str]:
    """Return a table of what was measured, and one of what a core gives."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if row.requests and row.workload != LOAD:
            groups.setdefault((row.workload, row.entities), []).append(row)
    cells = [cell for group in groups.values() for cell in _group_cells(group)]
    cores = [_core_cells(group) for group in groups.values()]
    if not cells:
        return []
    return [
        *table(_RUN_HEAD, cells),
        "What one core gives, full of nothing else, by the processor time of one process above: units a second.",
        *table(_CORE_HEAD, cores),
    ]


def _group_cells(group: Sequence[Row]) -> Iterable[list[str]]:
    by_subject: dict[tuple[str, int], list[Row]] = {}
    for row in group:
        by_subject.setdefault((row.subject, row.connections), []).append(row)
    against = [row for row in group if row.subject == PGBENCH]
    for number, ((subject, connections), rows) in enumerate(by_subject.items()):
        one = by_subject.get((_ONE[subject], connections), []) if subject in _ONE else []
        yield [
            group[0].workload if number == 0 else "",
            f"{group[0].entities:,}",
            subject,
            str(connections),
            spell(middle(rows, lambda row: row.rate), ",.0f"),
            *(spell(middle(rows, of), ".2f") for of in _LATENCIES),
            spell(max(row.max_ms for row in rows), ".2f"),
            *(spell(middle(rows, of), ",.0f") for of in (_service_us, _database_us, _client_us)),
            spell(middle(rows, _busy), ".2f"),
            spell(ratio(rows, against, _rate) if subject != PGBENCH else None, ".0%"),
            spell(ratio(rows, one, _rate), ".2f"),
        ]


def _core_cells(group: Sequence[Row]) -> list[str]:
    rows = [row for row in group if row.subject == LAZULITE]
    rows = [row for row in rows if row.connections == max(row.connections for row in rows)]
    units = rows[0].units
    service, database = (middle(rows, of) for of in (_service_us, _database_us))
    theirs = middle([row for row in group if row.subject == PGBENCH], _database_us)
    return [
        f"{group[0].workload}, {group[0].entities:,} entities",
        *(spell(units * 1e6 / each if each else None, ",.0f") for each in (service, database, theirs)),
        spell(service / database if service and database else None, ".1f"),
    ]


def notes(rows: Sequence[Row]) -> list[str]:
    """Say what the tables take on the disk."""
    found = []
    for entities in sorted({row.entities for row in rows if (row.section, row.workload) == (SECTION, SIZE)}):
        here = [row for row in rows if (row.section, row.workload, row.entities) == (SECTION, SIZE, entities)]
        sizes = [f"{row.variant} {row.disk_mb * 1e6 / entities:,.1f}" for row in here if row.disk_mb is not None]
        total_mb = sum(row.disk_mb or 0.0 for row in here)
        found.append(f"on PostgreSQL {entities:,} entities take {total_mb:,.0f} MB; bytes of each: {', '.join(sizes)}")
    for row in rows:
        if (row.section, row.workload) == (SECTION, LOAD):
            found.append(f"{row.entities:,} entities were loaded into PostgreSQL by SQL in {row.seconds:,.0f} s")
    return found


def _rate(row: Row) -> float:
    return row.rate


def _service_us(row: Row) -> float | None:
    return None if row.subject == PGBENCH else _us(row, row.server_cpu_s)


def _database_us(row: Row) -> float | None:
    return _us(row, row.database_cpu_s)


def _client_us(row: Row) -> float | None:
    return _us(row, row.client_cpu_s)


def _us(row: Row, seconds: float | None) -> float | None:
    return None if seconds is None else seconds / row.requests * 1e6


def _busy(row: Row) -> float | None:
    """Return how many processors all of them kept busy."""
    service = 0.0 if row.subject == PGBENCH else row.server_cpu_s
    if service is None or row.database_cpu_s is None or row.client_cpu_s is None:
        return None
    return (service + row.database_cpu_s + row.client_cpu_s) / row.seconds
