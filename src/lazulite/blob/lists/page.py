"""A list that is asked for, and its page."""

from collections.abc import Callable
from dataclasses import dataclass, field

from lazulite.blob.requests.call import Call
from lazulite.blob.requests.paging import Marker, echoed
from lazulite.blob.versions import EMPTY_PREFIX_SINCE

_ECHOED = (("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults"), ("Delimiter", "delimiter"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What a list is to show."""

    space: int
    version: str
    most: int
    """The most entries of the page."""
    prefix: str = ""
    delimiter: str = ""
    include: frozenset[str] = frozenset()
    shows_tags: bool = True
    """Whether the request may read tags; else it does not see their number either."""
    start: str = ""
    """The first name."""
    end: str | None = None
    """The first name that is not shown; None: there is none."""
    marker: Marker | None = None
    deadline: float
    """On the monotonic clock."""


@dataclass(slots=True)
class Page:
    """Entries in their order."""

    most: int
    """As many entries have room."""
    rows: list[bytes] = field(default_factory=list)
    """Their markup, of some together."""
    entries: int = 0
    next: Marker | None = None
    scanned: int = 0
    """The rows that were read."""

    @property
    def room(self) -> int:
        """The entries for which there is room."""
        return self.most - self.entries

    def fit(self, entries: int, marker: Callable[[int], Marker]) -> int:
        """Return how many of some entries have room. If it is not all of them, the next page begins with the others.

        Args:
            entries: their number.
            marker: returns the marker of one by its index.
        """
        room = self.room
        if entries <= room:
            return entries
        self.next = marker(room)
        return room

    def add(self, markup: str, entries: int) -> None:
        """Add entries that have room."""
        self.rows.append(markup.encode())
        self.entries += entries


def echoed_elements(call: Call, most: int) -> list[tuple[str, str]]:
    """Return elements for the parameters of a request, given how many entries a page has."""
    sent = echoed(call.parameters, _ECHOED, most)
    return sent if call.version >= EMPTY_PREFIX_SINCE else [pair for pair in sent if pair != ("Prefix", "")]
