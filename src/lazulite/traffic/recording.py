"""A recording: the shapes of the queries and writes of tables over a time, in bounded memory, for advice on keys.

Invariants: a recording has names of properties, and numbers. Of keys and values it has keyed hashes, whose key is new
for each recording and is in no item that leaves the process. Of at most `TABLES_MAX` tables it has at most `SHAPES_MAX`
shapes and `PROPERTIES_MAX` properties each; what exceeds them is counted as `left_out`. So it takes some megabytes.

A query of several pages counts once, with the rows of all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final, TypeAlias

from lazulite.control.command import Json
from lazulite.engine.ordinal import ordinal
from lazulite.traffic.heavy_hitters import HeavyHitters
from lazulite.traffic.meter import Resource

TABLES_MAX: Final = 16
SHAPES_MAX: Final = 64
PROPERTIES_MAX: Final = 16
SKETCH_MAX: Final = 256
"""The hashes of a sketch: up to so many values are counted exactly, and more with an error of about 6 %."""
_HITTERS: Final = 16
WINDOW_SECONDS: Final = 10.0
"""The time over which the peak of a rate is taken."""
_HASHES: Final = 1 << 64
_KEY_CHARACTERS_MAX: Final = 1024

Conditions: TypeAlias = tuple[tuple[str, str], ...]
"""The properties of a filter, each with `eq`, `prefix`, `range` or `other`."""


class Sketch:
    """How many different values there were, and the share of the most frequent one: k minimum hashes."""

    __slots__ = ("_hashes", "_hitters", "_most")

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._most = _HASHES
        """Hashes from here on are not kept."""
        self._hitters = HeavyHitters(_HITTERS)

    def add(self, hashed: int, weight: float = 1.0) -> None:
        """Count a value by its hash."""
        self._hitters.add(f"{hashed:016x}", weight)
        if hashed < self._most:
            self._hashes.add(hashed)
            if len(self._hashes) > 2 * SKETCH_MAX:
                self._purge()

    def _purge(self) -> None:
        kept = sorted(self._hashes)[:SKETCH_MAX]
        self._hashes, self._most = set(kept), kept[-1] + 1

    @property
    def distinct(self) -> float:
        """About how many different values there were."""
        if len(self._hashes) > SKETCH_MAX:
            self._purge()
        if self._most == _HASHES:
            return len(self._hashes)
        return (SKETCH_MAX - 1) * _HASHES / max(self._hashes)

    @property
    def busiest(self) -> float:
        """The share that the most frequent value has at least."""
        return next((count / self._hitters.total for _, count in self._hitters.top(1)), 0.0)

    def join(self, other: "Sketch") -> None:
        """Add the values that another process saw with the same key of hashes."""
        self._most = min(self._most, other._most)
        self._hashes = {each for each in self._hashes | other._hashes if each < self._most}
        if len(self._hashes) > SKETCH_MAX:
            self._purge()
        hitters = other._hitters
        self._hitters.merge(hitters.counts.items(), hitters.total, hitters.error)

    def as_json(self) -> Json:
        """Return it as a JSON object."""
        hitters = self._hitters
        return {
            "hashes": sorted(self._hashes),
            "most": self._most,
            "counts": dict(hitters.counts),
            "total": hitters.total,
            "error": hitters.error,
        }

    @classmethod
    def of(cls, item: Any) -> "Sketch":
        """Return the sketch of a JSON object."""
        found = cls()
        found._hashes, found._most = set(item["hashes"]), item["most"]
        found._hitters.merge(item["counts"].items(), item["total"], item["error"])
        return found


class Count:
    """Requests of one kind."""

    __slots__ = ("_in_window", "_peak", "_window", "continued", "entities", "requests", "returned", "scanned")

    def __init__(self) -> None:
        self.requests = self.scanned = self.returned = self.entities = self._peak = self._in_window = 0.0
        self.continued = 0.0
        """Further pages of queries."""
        self._window = -1

    def add(self, now: float, *, scanned: float = 0, returned: float = 0, entities: float = 0) -> None:
        """Count a request."""
        window = int(now // WINDOW_SECONDS)
        if window != self._window:
            self._window, self._in_window = window, 0.0
        self._in_window += 1
        self._peak = max(self._peak, self._in_window)
        self.requests += 1
        self.scanned += scanned
        self.returned += returned
        self.entities += entities

    @property
    def peak(self) -> float:
        """The requests per second in the busiest window."""
        return self._peak / WINDOW_SECONDS

    def join(self, other: "Count") -> None:
        """Add requests of another process; the peaks are taken to be at the same time."""
        for name in ("requests", "scanned", "returned", "entities", "continued", "_peak"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_json(self) -> Json:
        """Return it as a JSON object."""
        names = ("requests", "scanned", "returned", "entities", "continued")
        return {**{name: getattr(self, name) for name in names}, "peak": self._peak}

    @classmethod
    def of(cls, item: Any) -> "Count":
        """Return the count of a JSON object."""
        found = cls()
        for name, value in item.items():
            setattr(found, "_peak" if name == "peak" else name, float(value))
        return found


class TableRecord:
    """What was recorded of one table."""

    def __init__(self) -> None:
        self.queries: dict[tuple[Conditions, int], Count] = {}
        """By conditions and `$top`."""
        self.values: dict[str, Sketch] = {}
        """Property -> the values that equalities ask for."""
        self.single, self.batches = Count(), Count()
        self.written = Sketch()
        """The PartitionKeys written."""
        self.rises = self.falls = 0.0
        """The counts of neighbours among written PartitionKeys that rise or fall."""
        self.row_rises = self.row_falls = 0.0
        """The same of RowKeys."""
        self.left_out = 0.0
        self._last: tuple[str, str] | None = None

    @property
    def requests(self) -> float:
        """All of them."""
        return sum(each.requests for each in self.queries.values()) + self.single.requests + self.batches.requests

    def query(self, conditions: Conditions, top: int) -> Count | None:
        """Return the count of a shape; None if there are too many."""
        found = self.queries.get((conditions, top))
        if found is None and len(self.queries) < SHAPES_MAX:
            found = self.queries[conditions, top] = Count()
        if found is None:
            self.left_out += 1
        return found

    def note_order(self, partition: str, row: str) -> None:
        """Count whether keys rise or fall."""
        last, self._last = self._last, (partition[:_KEY_CHARACTERS_MAX], row[:_KEY_CHARACTERS_MAX])
        if last is None:
            return
        here, before = ordinal(partition), ordinal(last[0])
        self.rises += here > before
        self.falls += here < before
        here, before = ordinal(row), ordinal(last[1])
        self.row_rises += here > before
        self.row_falls += here < before

    def join(self, other: "TableRecord") -> None:
        """Add what another process recorded."""
        for (conditions, top), count in other.queries.items():
            own = self.query(conditions, top)
            if own is not None:
                own.join(count)
        for name, sketch in other.values.items():
            self.values.setdefault(name, Sketch()).join(sketch)
        self.single.join(other.single)
        self.batches.join(other.batches)
        self.written.join(other.written)
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def as_json(self) -> Json:
        """Return it as a JSON object."""
        queries = [
            {"conditions": [list(each) for each in conditions], "top": top, "count": count.as_json()}
            for (conditions, top), count in self.queries.items()
        ]
        return {
            "queries": queries,
            "values": {name: sketch.as_json() for name, sketch in self.values.items()},
            "single": self.single.as_json(),
            "batches": self.batches.as_json(),
            "written": self.written.as_json(),
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    @classmethod
    def of(cls, item: Any) -> "TableRecord":
        """Return the record of a JSON object."""
        found = cls()
        for each in item["queries"]:
            conditions = tuple((name, operator) for name, operator in each["conditions"])
            found.queries[conditions, each["top"]] = Count.of(each["count"])
        found.values = {name: Sketch.of(sketch) for name, sketch in item["values"].items()}
        found.single, found.batches = Count.of(item["single"]), Count.of(item["batches"])
        found.written = Sketch.of(item["written"])
        for name in _NUMBERS:
            setattr(found, name, float(item[name]))
        return found


_NUMBERS: Final = ("rises", "falls", "row_rises", "row_falls", "left_out")


class Recording:
    """See above. For one thread.

    Args:
        secret: the key of its hashes.
        only: the table that it is about; None: all of them.
    """

    def __init__(self, secret: bytes, only: Resource | None = None) -> None:
        self._secret = secret
        self._only = only
        self.tables: dict[Resource, TableRecord] = {}
        self.left_out = 0.0
        """The requests to tables beyond the bound."""
        self.is_ending = False
        """Whether the client wants what was recorded so far, and no more."""

    def has_secret(self, secret: bytes) -> bool:
        """Return whether this is the key of its hashes."""
        return compare_digest(secret, self._secret)

    @property
    def requests(self) -> float:
        """The requests that were recorded."""
        return sum(each.requests for each in self.tables.values())

    def note_query(
        self,
        table: Resource,
        conditions: Conditions,
        values: Iterable[tuple[str, object]],
        now: float,
        *,
        top: int = 0,
        scanned: float = 0,
        returned: float = 0,
        is_first: bool = True,
    ) -> None:
        """Count a page of a query.

        Args:
            table: that it is of.
            conditions: the shape of its filter.
            values: the properties with one value, and that value.
            now: the time in seconds.
            top: its `$top`; 0 without.
            scanned: the rows read.
            returned: the rows of the page.
            is_first: whether the page is the first one.
        """
        record = self._record(table)
        count = None if record is None else record.query(conditions, top)
        if record is None or count is None:
            return
        if not is_first:
            count.continued += 1
            count.scanned += scanned
            count.returned += returned
            return
        count.add(now, scanned=scanned, returned=returned)
        for name, value in values:
            sketch = record.values.get(name)
            if sketch is None and len(record.values) < PROPERTIES_MAX:
                sketch = record.values[name] = Sketch()
            if sketch is not None:
                sketch.add(self._hash(name, value))

    def note_write(self, table: Resource, partition: str, rows: Sequence[str], now: float) -> None:
        """Count a write of the entities with these RowKeys, of one partition."""
        record = self._record(table)
        if record is None:
            return
        (record.batches if len(rows) > 1 else record.single).add(now, entities=len(rows))
        record.written.add(self._hash("PartitionKey", partition), len(rows))
        if rows:
            record.note_order(partition, rows[-1])

    def _record(self, table: Resource) -> TableRecord | None:
        if self._only is not None and table != self._only:
            return None
        found = self.tables.get(table)
        if found is None and len(self.tables) < TABLES_MAX:
            found = self.tables[table] = TableRecord()
        if found is None:
            self.left_out += 1
        return found

    def _hash(self, name: str, value: object) -> int:
        text = f"{name}\0{str(value)[:_KEY_CHARACTERS_MAX]}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, digest_size=8, key=self._secret).digest(), "big")

    def items(self) -> list[Json]:
        """Return an object of JSON for each table."""
        return [
            {"account": table.account, "table": table.name, **_mapping(record.as_json())}
            for table, record in self.tables.items()
        ]


def _mapping(item: Json) -> Mapping[str, Json]:
    assert isinstance(item, Mapping), "a record is an object"
    return item


def joined(items: Iterable[Any]) -> dict[Resource, TableRecord]:
    """Return the records of tables, those of several processes added."""
    found: dict[Resource, TableRecord] = {}
    for item in items:
        table, record = Resource(item["account"], "table", item["table"]), TableRecord.of(item)
        if table in found:
            found[table].join(record)
        else:
            found[table] = record
    return found
