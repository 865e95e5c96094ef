"""What a query of entities cost, as the standard field `Server-Timing` of its response tells it.

The field of one page: `query;desc="row range";dur=0.412, scanned;desc="3", returned;desc="3"`, and behind it, where
indexes led to the rows, `index;desc="by-color", entries;desc="3"`.
"""

import re
from typing import NamedTuple

FIELD = "Server-Timing"

_METRIC = re.compile(r'\s*([a-z]+);desc="([^"]*)"(?:;dur=([0-9.]+))?\s*(?:,|$)')

_ADVICE = {
    "partition scan": "Compare RowKey, too: then only a range of the partition is read.",
    "partition range": "Ask for one PartitionKey: then only that partition is read.",
    "table scan": "Compare PartitionKey with eq: then only that partition is read.",
}
"""Class of a query that reads more than it needs -> what would make it read less."""


class QueryCost(NamedTuple):
    """The cost of one page."""

    query_class: str
    """`point`, `row range`, `partition scan`, `partition range` or `table scan`."""
    scanned: int
    """Rows read."""
    returned: int
    """Entities in the page."""
    ms: float
    """How long the read took."""
    indexes: tuple[str, ...] = ()
    """The names of the indexes that led to the rows."""
    entries: int = 0
    """Entries of these indexes that were read."""

    @classmethod
    def of(cls, field: str) -> "QueryCost | None":
        """Return what a `Server-Timing` tells; None if it tells of no query."""
        metrics = {name: (text, duration) for name, text, duration in _METRIC.findall(field)}
        try:
            name, duration = metrics["query"]
            scanned, returned = int(metrics["scanned"][0]), int(metrics["returned"][0])
            indexes = metrics.get("index", ("", ""))[0]
            entries = int(metrics.get("entries", ("0", ""))[0])
            return cls(name, scanned, returned, float(duration), tuple(filter(None, indexes.split("+"))), entries)
        except (KeyError, ValueError):
            return None

    @property
    def field(self) -> str:
        """The value of the `Server-Timing`."""
        text = (
            f'query;desc="{self.query_class}";dur={self.ms:.3f}, '
            f'scanned;desc="{self.scanned}", returned;desc="{self.returned}"'
        )
        return f'{text}, index;desc="{"+".join(self.indexes)}", entries;desc="{self.entries}"' if self.indexes else text

    @property
    def line(self) -> str:
        """It as a line for people."""
        rows = "row" if self.scanned == 1 else "rows"
        index = f"index {' and '.join(self.indexes)}" if self.indexes else "no index"
        counts = f"{self.scanned:,} {rows} read · {self.returned:,} returned"
        return f"{self.query_class} · {counts} · {self.ms:,.1f} ms · {index}"

    @property
    def advice(self) -> str:
        """A sentence that says what would make it a smaller read; "" if an index or its class makes it small."""
        return "" if self.indexes else _ADVICE.get(self.query_class, "")
