"""The nine steps of the study for choosing keys, each with its result, and the stress test by numbers behind them.

Source: the study *How to get most out of Windows Azure Tables* (2010). Its stress test fails if one partition gets more
than its target; then the next property is added to the PartitionKey, and at last a bucket.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lazulite.advise.candidate import Candidate
from lazulite.advise.candidates import bucketed, completed, form_for, forms, importance, potential, with_copies
from lazulite.advise.layout import Form, Layout, Part, Parts, described, spelled
from lazulite.advise.workload import UNFIT, Operator, Query, Workload
from lazulite.partitions.targets import Targets

_STRENGTH = {Operator.EQUAL: 0, Operator.PREFIX: 1, Operator.RANGE: 2, Operator.OTHER: 3}


class Step(NamedTuple):
    """One step."""

    number: int
    """1 to 9."""
    title: str
    result: str
    """A sentence or two."""


class Procedure(NamedTuple):
    """The steps, and the keys that they lead to."""

    steps: Sequence[Step]
    stress: Sequence[str]
    """What the stress test by numbers says, a sentence for each try."""
    candidate: Candidate


def dominant(workload: Workload) -> Query | None:
    """Return the most important query; None without queries."""
    return max(workload.queries, key=lambda each: each.weight, default=None)


def nine_steps(workload: Workload, targets: Targets) -> Procedure:
    """Go through the steps, and test the result by the numbers of the workload."""
    query = dominant(workload)
    ordered = _ordered(workload, query)
    partition, rest = ordered[:1], ordered[1:]
    if not _is_known(partition, query):
        partition, rest = (), ordered  # No query knows one value of it, so it only orders.
    tried, stress = _stressed(workload, targets, partition, rest)
    steps = [*_first_steps(workload, query, ordered), *_last_steps(workload, ordered, partition, rest)]
    return Procedure(steps, stress, tried)


def _is_known(parts: Parts, query: Query | None) -> bool:
    return bool(parts) and query is not None and parts[0].name in query.equal


def _ordered(workload: Workload, query: Query | None) -> Parts:
    """Return the initial keys, the most important one first."""
    if query is None:
        return ()
    usable = {name: place for place, name in enumerate(potential(workload))}
    weights = importance(workload)
    named = [each for each in query.conditions if each.name in usable]
    named.sort(key=lambda each: (_STRENGTH[each.operator], -weights[each.name], usable[each.name]))
    names = [each.name for each in named]
    if query.order and query.order not in names:
        equal = sum(each.operator is Operator.EQUAL for each in named)
        names.insert(equal, query.order)
    return tuple(Part(_form(workload, query, name), name) for name in names)


def _form(workload: Workload, query: Query, name: str) -> Form:
    if name == query.order:
        return form_for(workload, query)
    return forms(workload, name)[0]


def _first_steps(workload: Workload, query: Query | None, ordered: Parts) -> Iterator[Step]:
    weights = importance(workload)
    total = sum(each.weight for each in workload.queries) or 1
    shares = ", ".join(f"{name} ({share(weight / total)})" for name, weight in weights.items())
    yield Step(
        1,
        "Find the properties that filters often use",
        f"{shares}. The share is that of queries with the property; a query that users wait for counts ten times."
        if shares
        else "No query has a filter or an order.",
    )
    unfit = [name for name in weights if workload.about(name).type in UNFIT]
    left_out = f" Not {', '.join(unfit)}: a value of that type has no useful order as text." if unfit else ""
    yield Step(2, "Pick potential keys from them", f"{_listed(potential(workload))}.{left_out}")
    if query is None:
        yield Step(3, "Find the dominant query", "There is none.")
    else:
        waits = ", and users wait for it" if query.critical else ""
        yield Step(3, "Find the dominant query", f"'{query.name}': {rate(query.rate)}{waits}.")
    names = sorted(each.name for each in ordered)
    yield Step(4, "Take the properties of its filter", f"{_listed(names)}.")
    yield Step(
        5,
        "Order them by importance in that query",
        f"{_listed([str(each) for each in ordered])}. One known value comes before a prefix, and that before a range.",
    )


def _last_steps(workload: Workload, ordered: Parts, partition: Parts, rest: Parts) -> Iterator[Step]:
    names = {each.name for each in ordered}
    row = completed(workload, partition, rest)
    added = [str(each) for each in row if each not in rest]
    if workload.is_unique(names):
        yield Step(6, "Do they identify an entity?", "Yes: no two entities have the same values.")
    else:
        yield Step(6, "Do they identify an entity?", f"No, so the RowKey gets what does: {_listed(added)}.")
    count = len(ordered)
    unused = f"Does not apply, as there {'is one key' if count == 1 else f'are {count} keys'}."
    yield Step(7, "If there is one key, it is the PartitionKey", f"{spelled(partition)}." if count == 1 else unused)
    two = f"PartitionKey {spelled(partition)}, RowKey {spelled(row)}."
    yield Step(8, "Two keys are the PartitionKey and the RowKey", two if count == 2 else unused)
    yield Step(
        9,
        "Make two groups of more keys, the key that is always known first",
        f"PartitionKey {spelled(partition)}, RowKey {spelled(row)}." if count > 2 or not count else unused,
    )


def _stressed(workload: Workload, targets: Targets, partition: Parts, rest: Parts) -> tuple[Candidate, list[str]]:
    """Return the coarsest keys that keep the target, and what was tried."""
    said: list[str] = []
    while True:
        layout = Layout(partition, completed(workload, partition, rest))
        found = with_copies(Candidate(workload, layout, targets, "nine steps"))
        said.append(f"{described(layout, workload.kinds)}: {_load(found)}")
        if "scale" not in found.broken:
            return found, said
        if found.appended is None and rest and _helps(workload, partition, rest[0]):
            partition, rest = (*partition, rest[0]), rest[1:]
            said.append(f"Too much, so {spelled(partition[-1:])} is added to the PartitionKey.")
            continue
        spread = next(bucketed(found), None)
        if spread is None:
            return found, said
        spread = Candidate(workload, spread.layout, targets, "nine steps")
        said.append(f"Too much, so a bucket is added: {described(spread.layout, workload.kinds)}: {_load(spread)}")
        return spread, said


def _helps(workload: Workload, partition: Parts, part: Part) -> bool:
    """Return whether a further property divides the busiest partition, and is not the time of its rows."""
    before = workload.spread(each.name for each in partition)
    after = workload.spread([*(each.name for each in partition), part.name])
    return not workload.about(part.name).rises and after.busiest < before.busiest


def _load(found: Candidate) -> str:
    target = found.targets.partition.target
    text = (
        f"the busiest partition gets {number(found.load)} entities/s, {share(found.load / target)} of the {target:,.0f}"
    )
    if found.appended is not None:
        text += f"; {number(found.end_load)} entities/s are written to one end of the keys"
    return f"{text}."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def rate(per_second: float) -> str:
    """Return a rate as people read it: in the largest unit of time with a number of 1 or more."""
    for unit, seconds in (("second", 1), ("minute", 60), ("hour", 3600)):
        if per_second * seconds >= 1:
            return f"{number(per_second * seconds)} per {unit}"
    return f"{number(per_second * 86400)} per day"


def share(value: float) -> str:
    """Return a share as people read it."""
    return f"{value:.0%}" if value >= 0.01 or not value else "less than 1%"


def counted(value: float, noun: str) -> str:
    """Return a number of things, whose noun has a regular plural."""
    text = number(value)
    return f"{text} {noun}{'' if text == '1' else 's'}"


def number(value: float) -> str:
    """Return a number with about two significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    if 0 < value < 0.01:
        return "less than 0.01"
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
