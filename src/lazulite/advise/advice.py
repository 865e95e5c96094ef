"""The advice on a workload: the nine steps, the candidates, a verdict, what they trade, and what indexes would save."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from lazulite.advise.access import Access, access
from lazulite.advise.candidate import Candidate, has_bucket_first
from lazulite.advise.candidates import completed, ranked
from lazulite.advise.layout import Form, Layout, Part, described, spelled
from lazulite.advise.steps import Procedure, counted, nine_steps, number, share
from lazulite.advise.workload import RANGE_SHARE, Operator, Query, Workload
from lazulite.partitions.targets import Targets
from lazulite.table.indexes.definition import PROPERTIES_MAX, Index, Scope, State
from lazulite.table.indexes.planner import Reason, access_by
from lazulite.table.query.filter import And, Comparison, Node

SHOWN: Final = 4
"""The candidates that are shown, each with another PartitionKey."""
_FACTOR: Final = 1.5
"""The factor by which numbers must differ to count as different."""
_BUSY: Final = 0.05
"""The share of a target below which loads count as equal."""


class IndexAdvice(NamedTuple):
    """What a declared index would save."""

    query: str
    properties: tuple[str, ...]
    scope: str
    """`partition` or `table`."""
    scanned: float
    """The rows that the query reads without it."""
    read: float
    """And with it."""
    saved: float
    """The rows per second that are not read."""


class Verdict(NamedTuple):
    """What it comes to."""

    has_answer: bool
    sentences: Sequence[str]


@dataclass(frozen=True)
class Advice:
    """Advice on the keys of a table."""

    workload: Workload
    targets: Targets
    procedure: Procedure
    candidates: Sequence[Candidate]
    """The best first."""
    today: Candidate | None
    """The keys that the table has."""
    verdict: Verdict
    indexes: Sequence[IndexAdvice]

    @property
    def best(self) -> Candidate:
        """The best candidate, which broke the fewest demands if there is no answer."""
        return self.candidates[0]


def advise(workload: Workload, targets: Targets, shown: int = SHOWN) -> Advice:
    """Return advice on a workload.

    Args:
        workload: what the table is used for.
        targets: of the service.
        shown: the most candidates.
    """
    procedure = nine_steps(workload, targets)
    today = _today(workload, targets)
    found = ranked(workload, targets, [procedure.candidate])
    best = _different(found, shown)
    return Advice(workload, targets, procedure, best, today, _verdict(found, today), list(_indexes(today or best[0])))


def _today(workload: Workload, targets: Targets) -> Candidate | None:
    if workload.today is None:
        return None
    partition, row = (tuple(Part(Form.PLAIN, name) for name in names) for names in workload.today)
    return Candidate(workload, Layout(partition, row), targets, "today")


def _different(found: Sequence[Candidate], count: int) -> list[Candidate]:
    """Return the best candidates that differ in their PartitionKey; a bucket before it and behind it differ."""
    kept: dict[tuple[frozenset[str], int], Candidate] = {}
    for each in found:
        place = 0 if each.layout.bucket is None else 2 - has_bucket_first(each.layout)
        kept.setdefault((each.layout.partition_properties, place), each)
    return list(kept.values())[:count]


def _verdict(found: Sequence[Candidate], today: Candidate | None) -> Verdict:
    best = found[0]
    if not best.broken:
        kept = ["The table has these keys: keep them."] if today is not None and today.layout == best.layout else []
        return Verdict(True, [f"{described(best.layout, best.workload.kinds)}.", *kept, next(consequences(best))])
    sets = {each.broken for each in found}
    least = sorted(" and ".join(sorted(each)) for each in sets if not any(other < each for other in sets))
    lines = [
        f"No keys keep all demands: each choice gives up {', or '.join(least)}.",
        *_reasons(best.workload, found, frozenset().union(*(each for each in sets if not any(o < each for o in sets)))),
    ]
    merged = next((each for each in found if each.layout.buckets > 1 and "scale" not in each.broken), None)
    if merged is not None:
        count = merged.layout.buckets
        lines.append(
            f"What comes nearest is buckets and a merge at the reader: {described(merged.layout, best.workload.kinds)}."
        )
        lines.append(
            f"Each of {count} queries, one for each bucket, returns its rows in order. The reader merges them, in "
            "Python by heapq.merge."
        )
        if "atomic" in merged.broken:
            lines.append(
                "Changes that must be made together then need a saga or an outbox, as in the pattern library: they are "
                "made one after the other, and readers may see some of them."
            )
    return Verdict(False, lines)


def _reasons(workload: Workload, found: Sequence[Candidate], broken: frozenset[str]) -> Iterator[str]:
    """Yield why the broken demands exclude each other."""
    target = found[0].targets.partition.target
    if "scale" in broken:
        yield (
            f"Scale: {number(workload.written)} entities/s are written, and one partition is good for {target:,.0f}. "
            "Keys that rise do not help, as one server takes the end of the table."
        )
    for query in found[0].workload.queries:
        if "order" in broken and query.order and not query.equal:
            yield (
                f"Order: '{query.name}' wants rows of the whole table in the order of {query.order}. The service has "
                "that order within one partition, or if the PartitionKey begins with it."
            )
    for write in workload.writes:
        if "atomic" in broken and write.atomic and write.entities > 1:
            common = f"only {', '.join(write.same)}" if write.same else "no property"
            yield (
                f"Atomic: '{write.name}' changes {number(write.entities)} entities together that have {common} in "
                "common. A transaction is within one partition."
            )


def consequences(candidate: Candidate) -> Iterator[str]:
    """Yield what a choice of keys does, in sentences."""
    layout, workload = candidate.layout, candidate.workload
    of_target = share(candidate.load / candidate.targets.partition.target)
    yield (
        f"The busiest partition gets {number(candidate.load)} entities/s: {number(candidate.writes_to_busiest)} "
        f"written, {number(candidate.reads_of_busiest)} read. That is {of_target} of what one partition is good for."
    )
    if candidate.appended is not None:
        yield from _appended(candidate)
    account = candidate.targets.account.target
    if candidate.total > account:
        yield (
            f"Danger: all queries and writes take {number(candidate.total)} entities/s, and an account is good for "
            f"{account:,.0f}. Queries that scan need an index, or keys of their own."
        )
    largest = candidate.rows_of_busiest
    if layout.partition:
        yield (
            f"There are about {counted(candidate.partitions, 'partition')} of "
            f"{counted(candidate.rows_per_partition, 'row')}; "
            f"the largest has {counted(largest, 'row')}, {size(largest * workload.entity_bytes)}."
        )
    else:
        yield f"Everything is in one partition, {size(largest * workload.entity_bytes)}: one server has all traffic."
    if layout.copies:
        count = len(layout.rows)
        yield (
            f"Each entity has {count} RowKeys in its partition, written in one transaction, so a write costs {count} "
            "rows. A row may also hold only the other RowKey; then a query reads two rows for each entity."
        )
    yield from _batches(candidate)
    yield from _buckets(candidate)
    for query, each in zip(workload.queries, candidate.accesses, strict=True):
        if query.order and not each.is_ordered:
            yield f"'{query.name}' gets its rows in another order, so the client sorts them by {query.order}."


def _appended(candidate: Candidate) -> Iterator[str]:
    assert candidate.appended is not None, "a part rises"
    before = candidate.before_appended
    where = f"the keys with the same {spelled(before)}" if before else "the table"
    is_danger = candidate.end_load > candidate.targets.partition.target
    verb = "Danger: append-only" if is_danger else "Append-only"
    direction = "beginning" if candidate.appended.form is Form.REVERSED else "end"
    yield (
        f"{verb}: {candidate.appended.name} rises, so {number(candidate.end_load)} entities/s go to the {direction} of "
        f"{where}, which one server has, however many partitions there are."
    )


def _batches(candidate: Candidate) -> Iterator[str]:
    for write in candidate.workload.writes:
        if write.entities <= 1:
            continue
        if candidate.keeps_together(write):
            yield f"'{write.name}' is one transaction of {number(write.entities)} entities."
        elif write.atomic:
            yield f"'{write.name}' cannot be atomic: its entities are in several partitions."
        else:
            yield f"'{write.name}' is no batch: its entities are in several partitions, each written by itself."


def _buckets(candidate: Candidate) -> Iterator[str]:
    layout, bucket = candidate.layout, candidate.layout.bucket
    if bucket is None:
        return
    how = f"by a hash of {bucket.name}" if bucket.name else "at random for each entity or batch"
    yield (f"The bucket, {how}, spreads the peak: each of the {bucket.count} gets at most half of the target.")
    names = [
        f"'{query.name}'"
        for query, each in zip(candidate.workload.queries, candidate.accesses, strict=True)
        if each.requests > 1
    ]
    if names and has_bucket_first(layout):
        yield f"As it comes first, {_joined(names)} must ask {bucket.count} buckets; one request would scan the table."
    elif names:
        yield f"As it comes last, {_joined(names)} read the buckets as one range of partitions, or in parallel."


class Avoided(NamedTuple):
    """Keys that look simple, and what speaks against them."""

    keys: str
    reasons: Sequence[str]


def avoided(advice: Advice) -> Iterator[Avoided]:
    """Yield the two extremes, and each time as PartitionKey, with what speaks against them."""
    workload, best = advice.workload, advice.best
    values = tuple(each for each in (*best.layout.partition, *best.layout.row) if each.is_value)
    layouts = [Layout((), completed(workload, (), values)), Layout(values, completed(workload, values, ()))]
    for name, known in workload.properties.items():
        if known.rises and workload.written:
            key = (Part(Form.PLAIN, name),)
            layouts.append(Layout(key, completed(workload, key, tuple(each for each in values if each.name != name))))
    for layout in dict.fromkeys(layouts):
        found = Candidate(workload, layout, advice.targets)
        reasons = list(_against(found, best))
        if reasons and all(layout.partition != each.layout.partition for each in advice.candidates):
            yield Avoided(described(layout, workload.kinds), reasons)


def _against(found: Candidate, best: Candidate) -> Iterator[str]:
    if not found.layout.partition:
        yield f"One PartitionKey for all: one server has all traffic, {share(found.of_target)} of the target."
    elif found.rows_per_partition <= 1:
        yield "One PartitionKey for each entity: no two entities are ever in one transaction."
    if found.appended is not None:
        yield from _appended(found)
    yield from (each for each in compared(best, found) if each.startswith("'"))


def _joined(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]


def compared(best: Candidate, other: Candidate) -> Iterator[str]:
    """Yield what another candidate gains and loses against the best one, in sentences."""
    for name, noun in (("scale", "the target of a partition"), ("order", "the order"), ("atomic", "atomic changes")):
        if name in other.broken and name not in best.broken:
            yield f"It does not keep {noun}."
        elif name in best.broken and name not in other.broken:
            yield f"It keeps {noun}."
    is_busy = max(other.of_target, best.of_target) > _BUSY
    if is_busy and not 1 / _FACTOR <= other.of_target / max(best.of_target, 1e-12) <= _FACTOR:
        yield f"Its busiest partition or end takes {share(other.of_target)} of the target, not {share(best.of_target)}."
    for query, here, there in zip(best.workload.queries, best.accesses, other.accesses, strict=True):
        ratio = max(there.scanned, 1) / max(here.scanned, 1)
        if there.kind != here.kind or not 1 / _FACTOR <= ratio <= _FACTOR:
            yield (
                f"'{query.name}' is a {there.kind} of {counted(there.scanned, 'row')}{_asked(there)}, not a "
                f"{here.kind} of {number(here.scanned)}{_asked(here)}."
            )
    lost = {each.name for each in other.lost_batches} - {each.name for each in best.lost_batches}
    if lost:
        yield f"No batch any more: {', '.join(sorted(lost))}."
    if len(other.layout.rows) != len(best.layout.rows):
        yield f"A write costs {counted(len(other.layout.rows), 'row')}, not {len(best.layout.rows)}."


def _asked(found: Access) -> str:
    return f" in {found.requests} buckets" if found.requests > 1 else ""


def _indexes(candidate: Candidate) -> Iterator[IndexAdvice]:
    """Yield the indexes that would save reading rows with these keys, the most first."""
    found = []
    for query in candidate.workload.queries:
        each = _index(candidate, query)
        if each is not None:
            found.append(each)
    yield from sorted(found, key=lambda each: -each.saved)


def _index(candidate: Candidate, query: Query) -> IndexAdvice | None:
    workload, layout = candidate.workload, candidate.layout
    keys = layout.partition_properties
    is_inside = bool(layout.partition) and layout.bucket is None and keys <= query.equal
    order = {Operator.EQUAL: 0, Operator.PREFIX: 1, Operator.RANGE: 1}
    usable = [each for each in query.conditions if each.operator in order and each.name not in _KEYS]
    usable = [each for each in usable if not (is_inside and each.name in keys)]
    usable.sort(key=lambda each: (order[each.operator], -workload.spread((each.name,)).distinct))
    names = tuple(each.name for each in usable[:PROPERTIES_MAX])
    if not names or not _serves(query, names, is_inside):
        return None
    equal = {each.name for each in usable[:PROPERTIES_MAX] if each.operator is Operator.EQUAL}
    read = workload.rows / workload.spread(equal | (keys if is_inside else set())).distinct
    if len(equal) < len(names):
        read *= RANGE_SHARE
    now = access(workload, layout, query)
    read = max(read, now.returned, 1)
    if now.scanned < read * _FACTOR:
        return None
    scope = "partition" if is_inside else "table"
    return IndexAdvice(query.name, names, scope, now.scanned, read, query.rate * (now.scanned - read))


_KEYS: Final = ("PartitionKey", "RowKey")


def _serves(query: Query, names: tuple[str, ...], is_inside: bool) -> bool:
    """Return whether the server would use an index for a query, by its own planner."""
    operators = {Operator.EQUAL: "eq", Operator.PREFIX: "ge", Operator.RANGE: "ge"}
    terms: list[Node] = [
        Comparison(each.name, "eq" if operators[each.operator] == "eq" else "ge", "x")
        for each in query.conditions
        if each.operator in operators and each.name not in _KEYS
    ]
    if is_inside:
        terms.append(Comparison("PartitionKey", "eq", "x"))
    tree = And(tuple(terms)) if len(terms) > 1 else terms[0]
    index = Index("advised", names, Scope.PARTITION if is_inside else Scope.TABLE, 0, State.READY)
    return not isinstance(access_by(tree, index), Reason)


def size(value: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{number(value)} {unit}"
        value /= 1024
    return f"{number(value)} TiB"
