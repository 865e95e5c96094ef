"""Workloads that were observed: of a recording of a server, or of lines of `$logs`, with a sample of the table's rows.

Lines of logs have no numbers of rows, so these are then estimated. Their literals stay in this process.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from lazulite.advise.candidates import importance
from lazulite.advise.sample import TableSample
from lazulite.advise.workload import Condition, Operator, Property, Query, Spread, Workload, Write
from lazulite.analytics.log_reader import LogLine
from lazulite.table.query.filter import FilterSyntaxError, parse
from lazulite.table.query.shape import POINT_CONDITIONS, shape_of
from lazulite.traffic.meter import Resource
from lazulite.traffic.recording import Conditions, Count, Recording, TableRecord

_KEYS: Final = ("PartitionKey", "RowKey")
QUERIES_MAX: Final = 32
"""The shapes of queries that count, the most frequent ones."""
_PEAK_MIN: Final = 30
"""The requests below which a peak is chance, and the mean is taken."""
_PAGE_MAX: Final = 1_000
"""The rows of a page, at most."""
_FILLED: Final = 0.9
"""The share of `$top` that is returned if it is a limit."""
_SHARE: Final = 0.95
_WRITTEN_MIN: Final = 100
_POOL_MAX: Final = 6
"""The properties whose combinations are measured."""
_BATCH: Final = "EntityGroupTransaction"
_WRITES: Final = frozenset(
    {"InsertEntity", "UpdateEntity", "MergeEntity", "InsertOrReplaceEntity", "InsertOrMergeEntity", "DeleteEntity"}
)
_CONTINUED: Final = ("nextpartitionkey", "nextrowkey")


class LogRecorder:
    """Makes a recording of lines of logs, in the order of their times.

    Args:
        recording: takes the requests.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._batch = ""
        """The id of the request whose lines are coming."""
        self._rows: list[str] = []
        self._written: tuple[Resource, str, float] | None = None
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.unreadable = 0
        """The queries whose URLs have no filter of the grammar."""

    @property
    def seconds(self) -> float:
        """The time from the first line to the last one; at least a second."""
        if self.first is None or self.last is None:
            return 1.0
        return max((self.last - self.first).total_seconds(), 1.0)

    def add(self, line: LogLine) -> None:
        """Note one line of the Table service; others, and requests that failed, are left out."""
        if line.service != "table" or line.is_failed:
            return
        self.first = line.start if self.first is None else min(self.first, line.start)
        self.last = line.start if self.last is None else max(self.last, line.start)
        if line.operation == _BATCH:
            self.end()
            self._batch = line.request_id
        elif line.operation in _WRITES:
            self._write(line)
        elif line.operation == "QueryEntities":
            self._query(line)
        elif line.operation == "QueryEntity":
            table, partition, _ = _keys_of(line)
            values = (("PartitionKey", partition),)
            self._recording.note_query(table, POINT_CONDITIONS, values, line.start.timestamp())

    def end(self) -> None:
        """Note the batch whose lines have come."""
        if self._written is not None:
            table, partition, now = self._written
            self._recording.note_write(table, partition, self._rows, now)
        self._batch, self._rows, self._written = "", [], None

    def _write(self, line: LogLine) -> None:
        table, partition, row = _keys_of(line)
        if line.request_id != self._batch or not line.number:
            self.end()
            self._recording.note_write(table, partition, (row,), line.start.timestamp())
            return
        self._rows.append(row)
        self._written = (table, partition, line.start.timestamp())

    def _query(self, line: LogLine) -> None:
        table, _, _ = _keys_of(line)
        try:
            given = {name.lower(): values[0] for name, values in parse_qs(urlsplit(line.url).query).items()}
            text = given.get("$filter", "")
            shape = shape_of(parse(text) if text.strip() else None)
        except (FilterSyntaxError, ValueError):
            self.unreadable += 1
            return
        top = given.get("$top", "")
        self._recording.note_query(
            table,
            shape.conditions,
            shape.values,
            line.start.timestamp(),
            top=int(top) if top.isascii() and top.isdigit() and len(top) < 6 else 0,
            is_first=not any(name in given for name in _CONTINUED),
        )


def _keys_of(line: LogLine) -> tuple[Resource, str, str]:
    """Return the table of a line and the keys of its entity; "" for what it does not name."""
    parts = [unquote(each) for each in line.object_key.split("/")[1:]] + [""] * 4
    account, table, partition, row = parts[:4]
    return Resource(account, "table", table.partition("(")[0].lower()), partition, row


def workload_observed(
    table: Resource, record: TableRecord, seconds: float, source: str, sample: TableSample | None, rows: float = 0
) -> Workload:
    """Return the workload of a table.

    Args:
        table: which one it is.
        record: its requests.
        seconds: how long they took.
        source: where they come from, for people: `a recording of 10 minutes`.
        sample: of its rows; None: nothing is known about them.
        rows: how many it has; 0: as many as the sample.
    """
    frequent = sorted(record.queries.items(), key=lambda item: -item[1].requests)
    found = Workload(
        name=table.name,
        rows=max(rows, sample.rows if sample else 0, record.written.distinct, 1),
        queries=tuple(_query(*shape, count, seconds) for shape, count in frequent[:QUERIES_MAX]),
        writes=tuple(_writes(record, seconds)),
        unique=(_KEYS,),
        today=((_KEYS[0],), (_KEYS[1],)),
        properties=_properties(record),
        notes=(f"The queries, writes and rates are those of {source}.", *_left_out(record, len(frequent))),
    )
    return with_sample(found, sample) if sample is not None else _without_sample(found)


def _query(conditions: Conditions, top: int, count: Count, seconds: float) -> Query:
    parts = tuple(Condition(name, Operator(operator)) for name, operator in conditions)
    wanted = top if _limits(count, top) else 0
    query = Query(
        name=" and ".join(f"{name} {operator}" for name, operator in conditions) or "everything",
        conditions=parts,
        rate=_rate(count, seconds),
        top=wanted,
        returned=count.returned / count.requests if count.scanned and count.requests else None,
    )
    # A query for the first rows of a partition relies on their order.
    is_first_rows = wanted and query.equal == {_KEYS[0]} and query.restricts(_KEYS[1]) is None
    return replace(query, order=_KEYS[1], name=f"first {wanted} of {query.name}") if is_first_rows else query


def _limits(count: Count, top: int) -> bool:
    """Return whether `$top` is what a client wants, and not the size of its pages."""
    fills = not count.scanned or count.returned >= _FILLED * top * count.requests
    return not count.continued and top < _PAGE_MAX and fills


def _writes(record: TableRecord, seconds: float) -> Iterable[Write]:
    if record.single.requests:
        yield Write(name="single writes", rate=_rate(record.single, seconds))
    batches = record.batches
    if batches.requests:
        mean = batches.entities / batches.requests
        yield Write(name="batches", rate=_rate(batches, seconds), entities=mean, same=_KEYS[:1], atomic=True)


def _rate(count: Count, seconds: float) -> float:
    mean = count.requests / seconds
    return max(count.peak, mean) if count.requests >= _PEAK_MIN else mean


def _properties(record: TableRecord) -> dict[str, Property]:
    found = {name: Property(name=name, distinct=max(each.distinct, 1)) for name, each in record.values.items()}
    orders = ((_KEYS[0], record.rises, record.falls), (_KEYS[1], record.row_rises, record.row_falls))
    for name, rises, falls in orders:
        is_rising = rises + falls >= _WRITTEN_MIN and rises / (rises + falls) >= _SHARE
        found[name] = replace(found.get(name, Property(name=name)), rises=is_rising)
    if record.written.distinct:
        known = max(record.written.distinct, found[_KEYS[0]].distinct or 1)
        found[_KEYS[0]] = replace(found[_KEYS[0]], distinct=known, busiest=record.written.busiest)
    return found


def _left_out(record: TableRecord, shapes: int) -> Iterable[str]:
    if shapes > QUERIES_MAX:
        yield f"Of {shapes} shapes of queries, the {QUERIES_MAX} most frequent ones count."
    if record.left_out:
        yield f"{record.left_out:,.0f} queries of further shapes were left out."


def _without_sample(workload: Workload) -> Workload:
    note = (
        "No rows were sampled, so the numbers of values are those that queries asked for, and the rows those written."
    )
    return replace(workload, notes=(*workload.notes, note))


def with_sample(workload: Workload, sample: TableSample) -> Workload:
    """Return a workload with what a sample says about properties for which nothing was declared."""
    seen = sample.properties()
    declared = {name for name, each in workload.properties.items() if each.distinct is not None}
    pool = [name for name in dict.fromkeys((*importance(workload), *_KEYS)) if name in seen][:_POOL_MAX]
    within = sample.dependent(pool)
    properties = dict(workload.properties)
    for name, each in seen.items():
        known = workload.properties.get(name)
        is_rising = each.rises or (known is not None and known.rises)
        busiest = known.busiest if known is not None and known.busiest else each.busiest
        if known is None or known.distinct is None or workload.today is not None:
            properties[name] = replace(each, rises=is_rising, busiest=busiest, within=within.get(name, ""))
    measured = {
        names: spread
        for names, spread in sample.measured(pool).items()
        if workload.today is not None or not names & declared
    }
    for name, each in workload.properties.items():
        if frozenset((name,)) in measured and each.busiest:  # Of writes, which may be less even than the rows.
            measured[frozenset((name,))] = Spread(measured[frozenset((name,))].distinct, each.busiest)
    unique = dict.fromkeys((*workload.unique, *((name,) for name in sample.unique())))
    more = "" if sample.is_whole else "; the table has more, so numbers of values are at least these"
    return replace(
        workload,
        properties=properties,
        measured=measured,
        unique=tuple(unique),
        notes=(*workload.notes, f"Values are those of {sample.rows:,} sampled rows{more}."),
    )
