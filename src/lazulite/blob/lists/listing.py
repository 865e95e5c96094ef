"""One page of a list of blobs. Source: reference §35.

Invariants: names are in the order of their partitions. A page costs what it shows, not what there is: rows that it does
not show, and names behind a common prefix, are jumped over (`walk`). A page that its deadline ends has a marker. So has
one behind which there is more to show.
"""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple

from lazulite.blob.call import Context
from lazulite.blob.lists.listed import listed_blob, uncommitted_blob
from lazulite.blob.model.blob import Blob, read_blob
from lazulite.blob.model.ledger import Ledger, read_ledger
from lazulite.blob.model.rows import CURRENT, LEDGER, SNAPSHOT, VERSION, number
from lazulite.blob.payload.listing import ListedBlob, ListedPrefix
from lazulite.blob.payload.marker import LAST_TIME, Marker
from lazulite.blob.storage.tag_index import FIRST_NAME
from lazulite.blob.storage.walk import Walk
from lazulite.blob.times import read_time, write_time
from lazulite.engine.ordinal import after_prefix, ordinal
from lazulite.service.time_slice import TimeSlice

_FIRST_TIME = write_time(0)
_DELETED = b'"deleted":'
"""Is in the stored form of each blob that is deleted but kept."""


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

    entries: list[ListedBlob | ListedPrefix] = field(default_factory=list)
    next: Marker | None = None
    scanned: int = 0
    """The rows that were read."""


class _Entry(NamedTuple):
    """One entry of a name."""

    time: str
    """For the marker."""
    listed: ListedBlob | ListedPrefix


async def read_page(context: Context, request: ListRequest) -> Page:
    """Read a page.

    Raises:
        ServiceError: `InvalidQueryParameterValue`, the marker is malformed.
    """
    marker = request.marker
    starts = [FIRST_NAME, request.prefix, request.start, *([] if marker is None else [marker.name])]
    ends = [end for end in (after_prefix(request.prefix) if request.prefix else None, request.end) if end is not None]
    end = (min(ends, key=ordinal), "") if ends else None
    walk = Walk(context.engine, request.space, end, request.most + 1)
    async with aclosing(walk):
        await walk.begin((max(starts, key=ordinal), ""))
        page = _PageReader(context, request, walk)
        await page.read()
    page.page.scanned = walk.scanned
    return page.page


class _PageReader:
    """A page while it is read."""

    def __init__(self, context: Context, request: ListRequest, walk: Walk) -> None:
        self.page = Page()
        self._request = request
        self._include = request.include
        self._walk = walk
        self._now = context.present()
        self._time_slice = TimeSlice(context.limits.slice_seconds, context.monotonic)

    async def read(self) -> None:
        """Read the page."""
        walk = self._walk
        is_first = True
        while walk.key is not None:
            name = walk.key[0]
            if await self._time_slice.checkpoint() > self._request.deadline and not is_first:
                self.page.next = Marker(name, _FIRST_TIME)
                return
            is_first = False
            common = self._common_prefix(name)
            entries = await (self._prefix_entry(name, common) if common else self._entries(name))
            if not self._add(common if common and entries else name, entries):
                return
            if not entries:
                common = ""
            if walk.key is not None and walk.key[0].startswith(common or name):  # It is often behind them.
                await self._leave(common, name)

    async def _leave(self, common: str, name: str) -> None:
        """Go to the next name; behind all names with a common prefix, if there is one."""
        if not common:
            await self._walk.jump((name + "\0", ""))
            return
        following = after_prefix(common)
        if following is None:
            await self._walk.aclose()
        else:
            await self._walk.jump((following, ""))

    async def _prefix_entry(self, name: str, common: str) -> list[_Entry]:
        """Return the entry of a common prefix, if anything of a name with it is shown."""
        walk = self._walk
        # A blob that is not deleted is shown, whatever is included: the rest of its row need not be read.
        is_shown = walk.key == (name, CURRENT) and _DELETED not in walk.value
        return [_Entry(_FIRST_TIME, ListedPrefix(common))] if is_shown or await self._entries(name) else []

    def _common_prefix(self, name: str) -> str:
        """Return a name up to the delimiter; "" if it has none behind the prefix."""
        request = self._request
        at = name.find(request.delimiter, len(request.prefix)) if request.delimiter else -1
        return "" if at < 0 else name[: at + len(request.delimiter)]

    def _add(self, name: str, entries: Sequence[_Entry]) -> bool:
        """Add entries; return whether the page has room for all of them."""
        for time, listed in entries:
            if len(self.page.entries) == self._request.most:
                self.page.next = Marker(name, time)
                return False
            self.page.entries.append(listed)
        return True

    async def _entries(self, name: str) -> list[_Entry]:
        """Return what is shown of a name; no more than one entry beyond the page."""
        marker, include, walk = self._request.marker, self._include, self._walk
        first = read_time("marker", marker.time) if marker is not None and marker.name == name else 0
        ledger = read_ledger(await self._value() if walk.key == (name, LEDGER) else None)
        base = read_blob(await self._value()) if walk.key == (name, CURRENT) else None
        found: list[tuple[int, ListedBlob]] = []
        if "snapshots" in include:
            found = await self._kept(name, SNAPSHOT, first)
        is_gone = base is None or bool(base.deleted)
        if "versions" in include:
            with_only = is_gone and "deletedwithversions" in include
            found += [
                (time, replace(listed, has_versions_only=with_only))
                for time, listed in await self._kept(name, VERSION, first)
            ]
            found.sort(key=itemgetter(0))
        elif is_gone and "deletedwithversions" in include:
            found += [each for each in await self._last_version(name) if each[0] >= first]
        entries = [_Entry(write_time(time), listed) for time, listed in found]
        shown = self._base(name, base, ledger)
        return entries if shown is None else [*entries, _Entry(LAST_TIME, shown)]

    async def _value(self) -> bytes:
        """Return the value of the row at the position, and step over it."""
        value = self._walk.value
        await self._walk.step()
        return value

    async def _kept(self, name: str, kind: str, first: int) -> list[tuple[int, ListedBlob]]:
        """Return the snapshots or versions of a name that are shown, from a time on."""
        walk = self._walk
        found: list[tuple[int, ListedBlob]] = []
        await walk.jump((name, kind + number(first)))
        while (key := walk.key) is not None and key[0] == name and key[1].startswith(kind):
            blob = read_blob(walk.value)
            time = int(key[1][1:], 16)
            if not blob.deleted or "deleted" in self._include:
                listed = self._listed(name, blob)
                if kind == SNAPSHOT:
                    listed.snapshot = write_time(time)
                else:
                    listed.version = write_time(time)
                found.append((time, listed))
                if len(found) > self._request.most:
                    break
            await walk.step()
            await self._time_slice.checkpoint()
        return found

    async def _last_version(self, name: str) -> list[tuple[int, ListedBlob]]:
        """Return the last version of a blob that is deleted; none if it has none."""
        walk = self._walk
        last: tuple[str, bytes] | None = None
        await walk.jump((name, VERSION))
        while (key := walk.key) is not None and key[0] == name and key[1].startswith(VERSION):
            last = key[1], walk.value
            await walk.step()
            await self._time_slice.checkpoint()
        if last is None:
            return []
        listed = self._listed(name, read_blob(last[1]))
        return [(int(last[0][1:], 16), replace(listed, has_versions_only=True))]

    def _base(self, name: str, blob: Blob | None, ledger: Ledger) -> ListedBlob | None:
        """Return the blob itself, if it is shown."""
        include = self._include
        if blob is not None and (not blob.deleted or "deleted" in include):
            listed = self._listed(name, blob, is_base=True)
            if "versions" in include and blob.version:
                listed.version, listed.is_current = write_time(blob.version), not blob.deleted
            return listed
        if ledger.upload and "uncommittedblobs" in include:
            return uncommitted_blob(name)
        return None

    def _listed(self, name: str, blob: Blob, *, is_base: bool = False) -> ListedBlob:
        include = self._include
        listed = listed_blob(name, blob, self._request.version, self._now, is_base=is_base, with_copy="copy" in include)
        if "metadata" in include:
            listed.metadata = blob.metadata
        if "tags" in include and blob.tags:
            listed.tags = dict(blob.tags)
        return listed
