"""What is asked of Lazulite, as a table: each row names what was measured, and the bound.

A value is None where it was not measured. Ratios are taken within each round, and the median of the rounds counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from benchmarks.catalogue import MANY_PARTITIONS
from benchmarks.rows import CLOSED, FIXED, Row
from benchmarks.sections.big import BIG, SMALL
from benchmarks.sections.postgres import CONNECTIONS, FEWER_CONNECTIONS
from benchmarks.sections.table import SYNC
from benchmarks.subjects import AZURITE, BARE, DISK, FLOOR, HELD, LAZULITE, PGBENCH, TWO, TWO_HELD

Value: TypeAlias = Callable[["Results"], float | None]


class Results:
    """The rows of all sections, and how to find some of them."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def find(self, section: str, workload: str, subject: str = LAZULITE, /, **also: str | int) -> list[Row]:
        """Return the rows of a workload whose other fields are as given."""
        wanted: dict[str, str | int] = {"section": section, "workload": workload, "subject": subject}
        wanted |= also
        return [row for row in self.rows if all(getattr(row, name) == value for name, value in wanted.items())]


def middle(rows: Sequence[Row], of: Callable[[Row], float | None]) -> float | None:
    """Return the median of what the rows say."""
    values = [value for value in map(of, rows) if value is not None]
    return median(values) if values else None


def worst(rows: Sequence[Row]) -> float | None:
    """Return the latest answer of all, in milliseconds."""
    return max((row.max_ms for row in rows), default=None)


def ratio(ours: Sequence[Row], theirs: Sequence[Row], of: Callable[[Row], float]) -> float | None:
    """Return the median over the rounds of one's value as a multiple of the other's."""
    by_round = {row.round: of(row) for row in theirs}
    return middle(ours, lambda row: of(row) / by_round[row.round] if by_round.get(row.round) else None)


def rate_of(workload: str, of: str = LAZULITE) -> Value:
    """Return a subject's units a second."""
    return lambda results: middle(results.find("table", workload, of), lambda row: row.rate)


def p99_of(workload: str, of: str = LAZULITE) -> Value:
    """Return a subject's p99."""
    return lambda results: middle(results.find("table", workload, of), lambda row: row.p99_ms)


def times(subject: str, workload: str, of: str = LAZULITE, *, connections: int | None = None) -> Value:
    """Return one subject's rate as a multiple of another's, on so many connections if they are told."""
    also = {} if connections is None else {"connections": connections}

    def value(results: Results) -> float | None:
        rows, theirs = (results.find("table", workload, each, **also) for each in (of, subject))
        return ratio(rows, theirs, lambda row: row.rate)

    return value


def single_insert(of: str = LAZULITE) -> Value:
    """Return the latency of one insert, as a multiple of one sync and one round trip to the floor."""

    def value(results: Results) -> float | None:
        rows = [results.find("table", "durable insert", subject, connections=1) for subject in (of, FLOOR)]
        one, floor = (middle(each, lambda row: row.p50_ms) for each in rows)
        sync = middle(results.find("table", SYNC, DISK), lambda row: row.p50_ms)
        return None if one is None or floor is None or sync is None else one / (sync + floor)

    return value


def slower(workload: str, section: str = "big", **also: int) -> Value:
    """Return how many times slower an operation is on the big table than on the small one."""

    def value(results: Results) -> float | None:
        small, big = (results.find(section, workload, variant=size, **also) for size in (SMALL, BIG))
        return ratio(small, big, lambda row: row.rate)

    return value


def on_database(workload: str) -> Value:
    """Return Lazulite's units a second on the larger database."""
    return lambda results: middle(results.find("postgres", workload, variant=BIG), lambda row: row.rate)


def of_pgbench(workload: str, connections: int, subject: str = LAZULITE) -> Value:
    """Return Lazulite's rate on the larger database as a share of pgbench's."""

    def value(results: Results) -> float | None:
        ours = results.find("postgres", workload, subject, variant=BIG, connections=connections)
        return ratio(ours, results.find("postgres", workload, PGBENCH, variant=BIG), lambda row: row.rate)

    return value


def of_pgbench_by_cpu(workload: str) -> Value:
    """Return how much more the larger database serves of Lazulite than of pgbench with the same processor time."""

    def value(results: Results) -> float | None:
        ours = results.find("postgres", workload, variant=BIG, connections=CONNECTIONS)
        theirs = results.find("postgres", workload, PGBENCH, variant=BIG)
        return ratio(ours, theirs, lambda row: row.requests / row.database_cpu_s if row.database_cpu_s else 0.0)

    return value


def of_one(workload: str) -> Value:
    """Return the rate of two held processes on the larger database as a multiple of one's."""

    def value(results: Results) -> float | None:
        two, one = (results.find("postgres", workload, subject, variant=BIG) for subject in (TWO_HELD, HELD))
        return ratio(two, one, lambda row: row.rate)

    return value


def worst_beside(kind: str, mode: str) -> Value:
    """Return the latest answer to point reads beside other load."""
    return lambda results: worst(results.find("big", f"point GET beside {kind}", mode=mode))


def beside_alone(kind: str, mode: str) -> Value:
    """Return their p99 as a multiple of that alone."""

    def value(results: Results) -> float | None:
        there, alone = (results.find("big", f"point GET {name}", mode=mode) for name in (f"beside {kind}", "alone"))
        return ratio(there, alone, lambda row: row.p99_ms)

    return value


def _idle(results: Results) -> float | None:
    return middle(results.find("big", "idle"), lambda row: row.rss_mb)


def _peak(results: Results) -> float | None:
    peaks = [row.peak_mb for row in results.rows if row.section == "big" and row.peak_mb is not None]
    return max(peaks, default=None)


def median_ms(section: str, workload: str) -> Value:
    """Return the median of some attempts, in milliseconds."""
    return lambda results: middle(results.find(section, workload), lambda row: row.p50_ms)


def worst_ms(section: str, workload: str) -> Value:
    """Return the worst of some attempts, in milliseconds."""
    return lambda results: worst(results.find(section, workload))


@dataclass(frozen=True)
class Target:
    """A bound: what it is of, what was measured, how both are spelled, and what was measured of the bare path."""

    of: str
    measured: Value
    bound: float
    form: str
    at_least: bool = True
    bare: Value | None = None

    def met(self, value: float) -> bool:
        """Tell whether a value keeps the bound."""
        return value >= self.bound if self.at_least else value <= self.bound

    def spell(self, value: float) -> str:
        """Return a value with its unit."""
        return self.form.format(value)

    @property
    def text(self) -> str:
        """The bound in words."""
        return f"{'at least' if self.at_least else 'at most'} {self.spell(self.bound)}"


FLOOR_SHARE, PGBENCH_SHARE, AZURITE_TIMES, TIMES, MS, MB, PER_SECOND = (
    *("{:.0%} of the floor", "{:.0%} of pgbench", "{:.1f} × Azurite"),
    *("{:.2f} ×", "{:.1f} ms", "{:.0f} MB", "{:,.0f} entities/s"),
)  # fmt: skip
GETS = ("point GET, SAS", "point GET, Shared Key")
EGT = "entity group transaction"
PAGE = "full-page query"
SINGLE = ("point GET, SAS", "durable insert")
MERGE = "durable merge"
ANYWHERE = f"durable insert into {MANY_PARTITIONS:,} partitions"
KINDS = {"scan": "four scans of the whole table", "ingest": "ingest at full speed"}
ON_DATABASE = {name: {"connections": CONNECTIONS} for name in SINGLE} | {EGT: {}, PAGE: {}}
MODES = {CLOSED: "", FIXED: ", fixed rate"}

_PAIRS = ((FLOOR, FLOOR_SHARE), (AZURITE, AZURITE_TIMES))


def _against(name: str, workload: str, bounds: Sequence[float], connections: int | None = None) -> list[Target]:
    """Return what is asked of a rate as multiples of the floor's and of Azurite's."""
    return [
        Target(
            *(name, times(other, workload, connections=connections), bound, form),
            bare=times(other, workload, BARE, connections=connections),
        )
        for (other, form), bound in zip(_PAIRS, bounds, strict=True)
    ]


TARGETS = [
    *(target for name in GETS for target in _against(f"{name}, 32 connections", name, (0.6, 15))),
    *_against("durable insert, 64 connections", "durable insert", (0.35, 8), connections=64),
    Target(
        "durable insert, 1 connection, against one sync + one floor round trip",
        *(single_insert(), 1.6, TIMES, False, single_insert(BARE)),
    ),
    Target(f"{EGT} of 100 inserts, 4 connections", rate_of(EGT), 40_000, PER_SECOND, bare=rate_of(EGT, BARE)),
    Target(
        f"{EGT} of 100 inserts, 4 connections", times(AZURITE, EGT), 5, AZURITE_TIMES, bare=times(AZURITE, EGT, BARE)
    ),
    Target(f"{EGT} of 100 inserts, 4 connections, p99", p99_of(EGT), 100, MS, False, p99_of(EGT, BARE)),
    Target(f"{PAGE}, 1,000 entities, minimalmetadata", rate_of(PAGE), 300_000, PER_SECOND),
    Target(f"{PAGE}, $select of two properties", rate_of(f"{PAGE}, $select"), 120_000, PER_SECOND),
    *(
        Target(f"{PAGE}, {way}", rate_of(f"{PAGE}, {way}"), 120_000, PER_SECOND)
        for way in ("nometadata", "fullmetadata")
    ),
    Target(
        "partition scan, filter of two terms, 1 match in 1,000",
        rate_of("partition scan with a filter"),
        250_000,
        "{:,.0f} entities/s scanned",
    ),
    *(
        Target(f"{name}, big table against small", slower(name), 1.3, TIMES + " slower", False)
        for name in ("point GET, SAS", "range of 100", "durable insert", EGT)
    ),
    *(
        target
        for kind, words in KINDS.items()
        for mode, how in MODES.items()
        for target in (
            Target(f"point GET beside {words}{how}, p99", beside_alone(kind, mode), 5, "{:.1f} × alone", False),
            Target(f"point GET beside {words}{how}, worst", worst_beside(kind, mode), 250, MS, False),
        )
    ),
    Target(
        "start on the big table to the first answer, worst", worst_ms("big", "start to first answer"), 1000, MS, False
    ),
    Target("resident memory, idle on the big table", _idle, 120, MB, False),
    Target("resident memory, peak on the big table, load included", _peak, 400, MB, False),
    Target("`import lazulite`, median", median_ms("startup", "import lazulite"), 150, MS, False),
    Target("`lazulite --help`, median", median_ms("startup", "lazulite --help"), 150, MS, False),
    *(
        Target(
            f"PostgreSQL: {name}, {connections} connections", of_pgbench(name, connections), 0.6, "{:.0%} of pgbench"
        )
        for name in SINGLE
        for connections in (CONNECTIONS, FEWER_CONNECTIONS)
    ),
    *(
        Target(
            f"PostgreSQL: {name}, two processes, {CONNECTIONS} connections",
            of_pgbench(name, CONNECTIONS, TWO),
            0.6,
            PGBENCH_SHARE,
        )
        for name in SINGLE
    ),
    Target(f"PostgreSQL: {EGT} of 100 inserts, 4 connections", on_database(EGT), 15_000, PER_SECOND),
    Target(f"PostgreSQL: {PAGE}, 1,000 entities", on_database(PAGE), 100_000, PER_SECOND),
    *(
        Target(
            f"PostgreSQL: {name}, for the same processor time of the database",
            of_pgbench_by_cpu(name),
            0.6,
            PGBENCH_SHARE,
        )
        for name in SINGLE
    ),
    *(
        Target(f"PostgreSQL: {name}, two processes on one database, ¼ CPU each", of_one(name), 1.5, "{:.2f} × one")
        for name in (*ON_DATABASE, ANYWHERE, MERGE)
    ),
    *(
        Target(
            f"PostgreSQL: {name}, large table against small",
            slower(name, "postgres", **also),
            1.3,
            TIMES + " slower",
            False,
        )
        for name, also in ON_DATABASE.items()
    ),
]
