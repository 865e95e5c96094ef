"""The spaces of the engine that belong to the services themselves, as rows of a registry, and numbers for new spaces.

A registry covers every service: `lazulite check`, copies and workers ask it, and know no service.

Invariants: a number never changes, as it is on disk. Spaces from `FIRST_FREE_SPACE` on hold the rows of tables (or
queues, or containers); each is named by a row of a *catalog*, and is given out once, ever. Numbers are reserved durably
in blocks; the rest of a block is skipped, not reused, when a process ends.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.engine.commit import Decision, change_row
from lazulite.engine.content.contract import ContentId
from lazulite.engine.contract import LISTED, Engine, Key

COUNTERS = 1
"""Partition `spaces`, row `next`: the first number that no block holds, 8 bytes big endian."""
SERVICE_PROPERTIES = 2
"""Partition = account, row = service name (`table`): JSON of its service properties."""
TABLES = 3
"""Partition = account; see table/catalog.py."""
ACCOUNTS = 4
"""Partition and row `accounts`: the accounts of a database, see auth/accounts/engine_store.py. Those of a location are
in a file."""
COPIES = 5
"""Partition and row `copy`: how far a copy to this store has come; see migration/journal.py."""
QUEUES = 6
"""Partition = account; see queue/catalog.py."""
EXPIRATIONS = 7
"""See queue/model/expirations.py."""
PROCESSES = 8
"""See queue/processes.py."""
DELEGATIONS = 9
"""Partition = account; the secrets of user delegation keys, and the users that have such keys; see
auth/delegation/store.py."""
CONTAINERS = 10
"""Partition = account; see blob/storage/catalog.py."""
UNTIDY_CONTAINERS = 11
"""The containers that may have garbage; see blob/storage/garbage.py."""
UPLOADS = 12
"""When to look for uploads that were given up; see blob/storage/uploads.py."""
PARTITION_MAPS = 13
"""Partition = account; the ranges of its tables, see partitions/stored_maps.py."""
PARTITION_ROUNDS = 14
"""What processes tell each other for a round of the balancer; see partitions/rounds.py."""
ACCOUNT_QUOTAS = 15
"""Partition = account; what it may still do in this second, see partitions/ledger.py."""
METRIC_COUNTS = 16
"""Partition = account; what processes have counted for metrics, see analytics/interval_counts.py."""
INDEX_BUILDS = 17
"""Partition = account; how far indexes are built, see table/indexes/build_notes.py."""

FIRST_FREE_SPACE = 1024

BLOCK = 128
_KEY: Key = ("spaces", "next")
_BYTES = 8


class ReportNouns(NamedTuple):
    """The words for the spaces of a service and their rows, in reports."""

    space: str
    """`table`"""
    spaces: str
    """`tables`"""
    rows: str
    """`entities`"""


@dataclass(frozen=True, slots=True)
class CatalogFormat:
    """The format of a space whose rows name other spaces, and of the rows in those.

    Beside them it has the markers of dropped spaces (`catalog.DroppedSpaces`), whose format all catalogs share.
    """

    nouns: ReportNouns
    read: Callable[[str, bytes], tuple[int, str]]
    """Returns the number of a space and its name, given a row of the catalog and its value. Raises what reading
    malformed bytes raises."""
    verify: Callable[[Key, bytes, int], None]
    """Takes a row of such a space, its value and the greatest timestamp of the store. Raises `ValueError`, or what
    reading malformed bytes raises."""
    timestamp: Callable[[bytes], int] = lambda _: 0
    """Returns the timestamp of a value of such a space, 0 if none has one; raises `AssertionError` if it lacks it."""
    counted: Callable[[Key], bool] = lambda _: True
    """Tells whether a row is one of `nouns.rows`, and not an index of them."""
    unreachable: Callable[[str, Key], str] = lambda _, __: ""
    """Returns the name of a resource that no request can address, given the space's name and a row; "" if there is
    none. Such a row is not damage. The rows of one name are adjacent."""
    indexes: Callable[[bytes], Sequence["IndexFormat"]] = lambda _: ()
    """Returns the indexes that a resource has in spaces of their own, given the value of its row."""
    contents: Callable[[int, Key, bytes], Mapping[ContentId, int | None]] | None = None
    """Returns the contents to which a row refers, with their lengths (None: the row does not tell), given the number of
    such a space, the row and its value. The row's partition owns them. Raises what `verify` raises. None if no row
    refers to any, so that no row need be read for them."""


class IndexFormat(NamedTuple):
    """An index of the rows of a space, in a space of its own."""

    space: int
    name: str
    verify: Callable[[Key, bytes], None]
    """Takes an entry and its value; raises `ValueError`."""
    entry: Callable[[Key, bytes], Key | None]
    """Returns the entry of a row; None if it has none."""
    is_whole: bool
    """Whether it has the entry of each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """One space."""

    number: int
    owner: str
    """The service that owns it; "" if all services share it."""
    title: str
    """Its name in messages."""
    watched: bool = False
    """Whether processes cache its rows, so that each change is announced to them."""
    copied: bool = False
    """Whether a copy of the store has it."""
    in_checksum: bool = False
    """Whether the checksum of the store covers its rows."""
    verify: Callable[[Key, bytes], None] | None = None
    """Takes a row and its value; raises `ValueError`, or what reading malformed bytes raises. None for a catalog."""
    catalog: CatalogFormat | None = None
    unfinished_state: str = ""
    """The message for a store that has a row in this space, such as an unfinished copy. The other rows of that store
    are not verified."""


class Spaces:
    """A registry.

    Args:
        spaces: every space of every service that a store may hold.

    Raises:
        ValueError: two spaces have one number, or one has the number of a table.
    """

    def __init__(self, *spaces: Space) -> None:
        self._spaces = {space.number: space for space in sorted(spaces, key=lambda space: space.number)}
        if len(self._spaces) < len(spaces):
            raise ValueError("two spaces have one number")
        if any(number >= FIRST_FREE_SPACE for number in self._spaces):
            raise ValueError(f"the numbers from {FIRST_FREE_SPACE} on are given out")

    def __iter__(self) -> Iterator[Space]:
        """Yield the spaces in the order of their numbers."""
        return iter(self._spaces.values())

    def get(self, number: int) -> Space | None:
        """Return the space of a number, or None."""
        return self._spaces.get(number)

    @property
    def watched(self) -> frozenset[int]:
        """The numbers of the spaces whose rows processes cache."""
        return frozenset(space.number for space in self if space.watched)

    @property
    def nouns(self) -> tuple[ReportNouns, ...]:
        """The words for what the services keep."""
        return tuple(space.catalog.nouns for space in self if space.catalog is not None)


def next_free(value: bytes) -> int:
    """Return the first number that no block holds, from the value of the counter's row.

    Raises:
        ValueError: the value is no counter.
    """
    if len(value) != _BYTES:
        raise ValueError(f"the counter of spaces has {len(value)} bytes")
    return int.from_bytes(value, "big")


def _verify(key: Key, value: bytes) -> None:
    if key != _KEY:
        raise ValueError(f"space {COUNTERS} has an unknown row under {key}")
    next_free(value)


COUNTERS_SPACE = Space(number=COUNTERS, owner="", title="the counter of tables", copied=True, verify=_verify)


class SpaceAllocator:
    """Allocate numbers for new spaces.

    Args:
        engine: has the counter.
        listed: whether the spaces are listed ones, see `LISTED`.
    """

    def __init__(self, engine: Engine, *, listed: bool = False) -> None:
        self._engine = engine
        self._mark = LISTED if listed else 0
        self._free = range(0)

    async def allocate(self) -> int:
        """Return a number that was never returned before, by this process or any other."""
        if not self._free:
            reserved = await self._reserve()
            self._free = self._free or reserved
        space, self._free = self._free[0], self._free[1:]
        return space | self._mark

    async def _reserve(self) -> range:
        def move(current: bytes | None) -> Decision[range]:
            start = FIRST_FREE_SPACE if current is None else int.from_bytes(current, "big")
            block = range(start, start + BLOCK)
            return Decision({_KEY[1]: block.stop.to_bytes(_BYTES, "big")}, block)

        return await self._engine.commit(COUNTERS, _KEY[0], change_row(_KEY[1], move))
