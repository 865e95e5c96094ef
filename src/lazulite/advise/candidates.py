"""The choices of keys for a workload, ranked: those of the nine steps, today's, and all small ones.

Sources: the study *How to get most out of Windows Azure Tables* (2010), and the table design guide.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

from lazulite.advise.candidate import Candidate
from lazulite.advise.layout import ID_PART, KIND_PART, Form, Layout, Part, Parts
from lazulite.advise.workload import REVERSIBLE, UNFIT, Operator, Query, Workload
from lazulite.partitions.targets import Targets
from lazulite.traffic.rekeying import buckets_for

POOL_MAX: Final = 5
"""The properties that are tried in keys."""
PARTITION_MAX: Final = 3
ROW_MAX: Final = 3
COPIES_MAX: Final = 2
"""The further RowKeys of an entity."""
_BUCKETS_MIN: Final = 2
_BUCKETS_MAX: Final = 1_000


def importance(workload: Workload) -> dict[str, float]:
    """Return each property in a filter or an order with the weight of the queries that have it, the greatest first."""
    weights: dict[str, float] = {}
    for query in workload.queries:
        for name in {each.name: None for each in query.conditions} | ({query.order: None} if query.order else {}):
            weights[name] = weights.get(name, 0.0) + query.weight
    return dict(sorted(weights.items(), key=lambda item: -item[1]))


def potential(workload: Workload) -> list[str]:
    """Return the properties that can be keys, the most important first."""
    helped = {
        each.name for query in workload.queries for each in query.conditions if each.operator is not Operator.OTHER
    }
    helped |= {query.order for query in workload.queries if query.order}
    return [name for name in importance(workload) if name in helped and workload.about(name).type not in UNFIT]


def forms(workload: Workload, name: str) -> tuple[Form, ...]:
    """Return in which forms a property may stand in a key: reversed, if a query wants its greatest values first.

    A text cannot be counted down.
    """
    if workload.about(name).type not in REVERSIBLE:
        return (Form.PLAIN,)
    wanted = {query.descending for query in workload.queries if query.order == name}
    return tuple(Form.REVERSED if descending else Form.PLAIN for descending in sorted(wanted)) or (Form.PLAIN,)


def form_for(workload: Workload, query: Query) -> Form:
    """Return the form in which the order of a query stands in a key."""
    return Form.REVERSED if query.descending and workload.about(query.order).type in REVERSIBLE else Form.PLAIN


def completed(workload: Workload, partition: Parts, row: Parts) -> Parts:
    """Return a RowKey that tells entities apart: with what is missing of a unique set, or a new id."""
    if workload.kinds:
        row = (KIND_PART, *row)
        own = {name for names in workload.kinds.values() for name in names}
        used = {each.name for each in (*partition, *row)}
        return (*row, *(Part(Form.PLAIN, name) for name in sorted(own - used)))
    used = {each.name for each in (*partition, *row) if each.is_value}
    if workload.is_unique(used):
        return row
    missing = [[name for name in each if name not in used] for each in workload.unique]
    best = min(missing, key=len, default=None)
    if best is None or len(best) > ROW_MAX:
        return (*row, ID_PART)
    return (*row, *(Part(Form.PLAIN, name) for name in best))


def layouts(workload: Workload) -> Iterator[Layout]:
    """Yield all small choices of keys."""
    names = potential(workload)[:POOL_MAX]
    parts = [Part(form, name) for name in names for form in forms(workload, name)]
    seen: set[Layout] = set()
    for partition in _orders(parts, PARTITION_MAX):
        used = {each.name for each in partition}
        for row in _orders([each for each in parts if each.name not in used], ROW_MAX):
            found = Layout(partition, completed(workload, partition, row))
            if found not in seen:
                seen.add(found)
                yield found


def _orders(parts: Sequence[Part], most: int) -> Iterator[Parts]:
    for count in range(min(len(parts), most) + 1):
        for found in permutations(parts, count):
            if len({each.name for each in found}) == count:
                yield found


def ranked(workload: Workload, targets: Targets, own: Sequence[Candidate] = ()) -> list[Candidate]:
    """Return the candidates for a workload, the best first.

    Args:
        workload: what the table is used for.
        targets: of the service.
        own: further candidates, such as that of the nine steps; one of them stands for an equal one.
    """
    found = {each.layout: each for each in own}
    for layout in layouts(workload):
        plain = Candidate(workload, layout, targets)
        for candidate in (plain, with_copies(plain)):
            found.setdefault(candidate.layout, candidate)
            for spread in bucketed(candidate):
                found.setdefault(spread.layout, spread)
    return sorted(found.values(), key=lambda each: each.rank)


def bucketed(candidate: Candidate) -> Iterator[Candidate]:
    """Yield the candidates with buckets, last and first, if the keys alone are too busy. The count is by the peak."""
    if candidate.of_target <= 1:
        return
    load = max(candidate.load, candidate.end_load)
    count = min(buckets_for(load, candidate.targets.partition.target, _BUCKETS_MIN), _BUCKETS_MAX)
    by = _known_in_points(candidate)
    for first in (False, True):
        if not first and (candidate.appended or not candidate.layout.partition):
            continue  # A bucket behind a key that rises changes nothing.
        yield replace(candidate, layout=candidate.layout.with_bucket(count, first=first, by=by), origin="")


def _known_in_points(candidate: Candidate) -> str:
    """Return a property that settles the bucket: one that a query of one entity knows; "" if there is none."""
    for query, each in zip(candidate.workload.queries, candidate.accesses, strict=True):
        if each.kind == "point":
            for part in candidate.layout.row:
                if part.is_value and part.name in query.equal:
                    return part.name
    return ""


def with_copies(candidate: Candidate) -> Candidate:
    """Return a candidate whose entities have further RowKeys in their partition, for queries more frequent than writes.

    A copy is in the same transaction as its entity, so it costs an entity more for each write.
    """
    workload, layout = candidate.workload, candidate.layout
    if workload.kinds or not layout.partition_properties:
        return candidate
    copies: list[Parts] = []
    for query in sorted(workload.queries, key=lambda each: -each.weight):
        parts = _row_for(candidate, query)
        if parts is None or parts in copies or len(copies) == COPIES_MAX:
            continue
        trial = replace(candidate, layout=replace(layout, copies=(*copies, parts)))
        place = workload.queries.index(query)
        before, after = candidate.accesses[place], trial.accesses[place]
        if query.rate >= workload.written and after.cost * 2 <= before.cost:
            copies.append(parts)
    return replace(candidate, layout=replace(layout, copies=tuple(copies))) if copies else candidate


def _row_for(candidate: Candidate, query: Query) -> Parts | None:
    """Return the RowKey that would serve a query of one partition best; None if it is of several."""
    workload, layout = candidate.workload, candidate.layout
    inside = layout.partition_properties
    if not inside <= query.equal:
        return None
    usable = [each for each in query.conditions if each.name not in inside and each.operator is not Operator.OTHER]
    equal = [each.name for each in usable if each.operator is Operator.EQUAL]
    rest = [each.name for each in usable if each.operator is not Operator.EQUAL and each.name != query.order]
    named = [*(Part(Form.PLAIN, name) for name in equal)]
    if query.order and query.order not in query.equal:
        named.append(Part(form_for(workload, query), query.order))
    named += [Part(Form.PLAIN, name) for name in rest]
    return completed(workload, layout.partition, tuple(named)) if named else None
