"""Advice as an object of JSON, which the text and the page show. All sentences are made here."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lazulite.advise.advice import Advice, IndexAdvice, avoided, compared, consequences
from lazulite.advise.candidate import Candidate
from lazulite.advise.layout import row_lines, spelled
from lazulite.advise.steps import counted, number, rate, share
from lazulite.advise.workload import Query, Workload
from lazulite.control.command import Json

TERMS: Final[Mapping[str, str]] = {
    "partition": "all entities with one PartitionKey. One server has it, and a transaction is within one.",
    "point": "a query of one entity, by both keys",
    "row range": "one partition, and RowKeys from one to another",
    "partition scan": "all rows of one partition",
    "partition range": "all rows of neighbouring partitions, maybe of several servers",
    "table scan": "all rows of the table",
    "rows": "what a query reads. The service counts what it reads, not what it returns.",
    "target": "the entities per second that one partition is good for; a batch and a scan count all their entities",
}
"""The words of the advice, for people that have not read about partitions."""


def report(advice: Advice) -> dict[str, Json]:
    """Return advice as a JSON object."""
    workload = advice.workload
    best = advice.best
    return {
        "table": workload.name,
        "rows": workload.rows,
        "targets": {"name": advice.targets.name, "partition": advice.targets.partition.target},
        "notes": list(workload.notes),
        "terms": dict(TERMS),
        "has_answer": advice.verdict.has_answer,
        "verdict": list(advice.verdict.sentences),
        "queries": [_query(each) for each in workload.queries],
        "writes": [_write(workload, place) for place in range(len(workload.writes))],
        "properties": list(_properties(workload)),
        "steps": [{"step": each.number, "title": each.title, "result": each.result} for each in advice.procedure.steps],
        "stress": list(advice.procedure.stress),
        "candidates": [_candidate(each, best, place) for place, each in enumerate(advice.candidates, 1)],
        "today": None if advice.today is None else _candidate(advice.today, best, 0),
        "avoid": [{"keys": each.keys, "reasons": list(each.reasons)} for each in avoided(advice)],
        "indexes": [_index(workload, each) for each in advice.indexes],
    }


def _query(query: Query) -> Json:
    conditions = " and ".join(f"{each.name} {each.operator.value}" for each in query.conditions)
    order = f"by {query.order}{', greatest first' if query.descending else ''}" if query.order else ""
    return {
        "name": query.name,
        "kind": query.kind,
        "conditions": conditions or "none",
        "order": order,
        "top": query.top,
        "rate": rate(query.rate),
        "per_second": query.rate,
        "critical": query.critical,
    }


def _write(workload: Workload, place: int) -> Json:
    write = workload.writes[place]
    same = f"with the same {', '.join(write.same)}" if write.same else "with nothing in common"
    together = f"{number(write.entities)} {same}{', atomic' if write.atomic else ''}" if write.entities > 1 else "1"
    return {"name": write.name, "rate": rate(write.rate), "per_second": write.rate, "entities": together}


def _properties(workload: Workload) -> Iterator[Json]:
    names = dict.fromkeys([each.name for query in workload.queries for each in query.conditions])
    names |= dict.fromkeys(query.order for query in workload.queries if query.order)
    for name in [*names, *(each for each in workload.properties if each not in names)]:
        known, spread = workload.about(name), workload.spread((name,))
        is_known = known.distinct is not None or frozenset((name,)) in workload.measured or known.rises
        yield {
            "name": name,
            "distinct": f"{number(spread.distinct)}{'' if is_known or workload.is_unique((name,)) else ' (assumed)'}",
            "busiest": share(spread.busiest),
            "rises": known.rises,
            "within": known.within,
        }


def _candidate(candidate: Candidate, best: Candidate, place: int) -> dict[str, Json]:
    layout, kinds = candidate.layout, candidate.workload.kinds
    return {
        "place": place,
        "nine_steps": candidate.origin == "nine steps",
        "partition_key": spelled(layout.partition),
        "row_keys": list(row_lines(layout, kinds)),
        "broken": sorted(candidate.broken),
        "of_target": candidate.of_target,
        "load": share(candidate.of_target),
        "partitions": number(candidate.partitions),
        "rows_per_partition": number(candidate.rows_per_partition),
        "queries": [
            {
                "name": query.name,
                "class": each.kind,
                "rows": counted(each.scanned, "row"),
                "scanned": each.scanned,
                "requests": each.requests,
                "each": each.each if each.requests > 1 else each.kind,
                "ordered": each.is_ordered,
                "row_key": each.row,
            }
            for query, each in zip(candidate.workload.queries, candidate.accesses, strict=True)
        ],
        "consequences": list(consequences(candidate)),
        "compared": [] if candidate is best else list(compared(best, candidate)),
    }


def _index(workload: Workload, found: IndexAdvice) -> Json:
    on = " ".join(f"--on {name}" for name in found.properties)
    name = f"by_{'_'.join(found.properties).lower()}"
    place = "index(within_partition=True)" if found.scope == "partition" else "index()"
    azure = "in the same partition and transaction" if found.scope == "partition" else "in other partitions"
    return {
        "query": found.query,
        "command": f"lazulite index create {workload.name} {name} {on} --scope {found.scope}",
        "scanned": counted(found.scanned, "row"),
        "read": counted(found.read, "row"),
        "saved": number(found.saved),
        "azure": f"Azure has no indexes. There, keep index entities {azure}: {place} of lazulite-patterns.",
    }


def text_lines(found: Mapping[str, Json]) -> Iterator[str]:
    """Yield the lines of a report for a terminal."""
    target = _mapping(found["targets"])
    yield f"Keys for {found['table']}, {number(_float(found['rows']))} rows, targets {target['name']}"
    yield ""
    yield from (str(each) for each in _list(found["verdict"]))
    yield ""
    yield "THE NINE STEPS"
    for each in map(_mapping, _list(found["steps"])):
        title = str(each["title"])
        yield f"{each['step']}. {title}{'' if title.endswith('?') else ':'} {each['result']}"
    yield from (f"Stress test by numbers: {each}" for each in _list(found["stress"]))
    for candidate in map(_mapping, _list(found["candidates"])):
        yield ""
        by_steps = ", by the nine steps" if candidate["nine_steps"] else ""
        yield f"CANDIDATE {candidate['place']}{by_steps}"
        yield from _candidate_lines(candidate)
    if found["today"] is not None:
        yield ""
        yield "TODAY'S KEYS"
        yield from _candidate_lines(_mapping(found["today"]))
    if found["avoid"]:
        yield ""
        yield "AVOID"
        for each in map(_mapping, _list(found["avoid"])):
            yield str(each["keys"])
            yield from (f"  {reason}" for reason in _list(each["reasons"]))
    if found["indexes"]:
        yield ""
        yield f"INDEXES, WITH {'TODAY' if found['today'] is not None else 'CANDIDATE 1'}'S KEYS"
        for each in map(_mapping, _list(found["indexes"])):
            yield f"'{each['query']}' reads {each['read']} instead of {each['scanned']}: {each['command']}"
            yield f"  {each['azure']}"
    yield ""
    yield "WORDS"
    yield from (f"{name}: {meaning}" for name, meaning in _mapping(found["terms"]).items())
    yield from (f"Note: {each}" for each in _list(found["notes"]))


def _candidate_lines(candidate: Mapping[str, Json]) -> Iterator[str]:
    yield f"PartitionKey = {candidate['partition_key']}"
    yield from (f"RowKey       = {each}" for each in _list(candidate["row_keys"]))
    if candidate["broken"]:
        yield f"Not kept: {', '.join(map(str, _list(candidate['broken'])))}"
    for each in map(_mapping, _list(candidate["queries"])):
        buckets = f" in {each['requests']} buckets" if each["requests"] != 1 else ""
        yield f"  {each['class']}, {each['rows']}{buckets}: {each['name']}"
    yield from (f"  {each}" for each in _list(candidate["consequences"]))
    yield from (f"  Against candidate 1: {each}" for each in _list(candidate["compared"]))


def _mapping(value: Json) -> Mapping[str, Json]:
    assert isinstance(value, Mapping), "the report has an object here"
    return value


def _list(value: Json) -> Sequence[Json]:
    assert isinstance(value, Sequence), "the report has a list here"
    return value


def _float(value: Json) -> float:
    assert isinstance(value, (int, float)), "the report has a number here"
    return value


def page(found: Mapping[str, Json]) -> str:
    """Return a report as one page of HTML, which loads nothing and has no script."""
    # Only a page needs the templates, whose import takes a while.
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    loader = PackageLoader("lazulite.advise", package_path="")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return environment.get_template("advice.html").render(found=found)
