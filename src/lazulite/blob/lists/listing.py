"""One page of a list of blobs. Source: reference §35.

Invariants: names are in the order of their partitions. A page costs what it shows, not what there is: rows that it does
not show, and names behind a common prefix, are jumped over (`walk`). A page that its deadline ends has a marker. So has
one behind which there is more to show.

Most pages show only current blobs, or common prefixes; several rows of a slice are then taken at a time. Keys
alone show whether a prefix is shown: a partition that begins with the current blob shows it (`model.ledger`).
"""

import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import lru_cache, partial
from itertools import accumulate

from lazulite.blob.lists.blob_list_xml import ListedPrefix, RowWriter
from lazulite.blob.lists.current_blobs import CurrentBlobs
from lazulite.blob.lists.named import NamedBlobs
from lazulite.blob.lists.page import ListRequest, Page
from lazulite.blob.model.blob import Blob
from lazulite.blob.model.rows import CURRENT
from lazulite.blob.requests.call import Context
from lazulite.blob.requests.paging import Marker
from lazulite.blob.storage.tag_index import FIRST_NAME
from lazulite.blob.storage.walk import Walk
from lazulite.blob.times import read_time, write_time
from lazulite.engine.contract import JoinedKeys, Key
from lazulite.engine.key_encoding import decode_text, encode_text
from lazulite.engine.ordinal import after_prefix, ordinal
from lazulite.service.time_slice import TimeSlice

_FIRST_TIME = write_time(0)
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 128, 48 << 10
"""Current blobs that are written without a pause, and the bytes of their stored properties."""
_KEYS_IN_VAIN = 64
"""Reading so many keys of a prefix costs less than beginning a scan behind it."""
_PREFIXES_IN_A_ROW = 4
"""After so many, more are expected: keys are read alone."""
_OF_OTHER_ROWS = frozenset(("snapshots", "versions", "deletedwithversions", "uncommittedblobs"))
"""Includes that show more of a name than its current blob."""
_END, _SEPARATOR = b"\0", b"\xff"
"""Behind each name, and behind each row."""
_MARK = b"\xfe"
"""Stands for a delimiter of several bytes; it is in no text."""


async def read_page(context: Context, request: ListRequest, writer: RowWriter) -> Page:
    """Read a page.

    Raises:
        ServiceError: `InvalidQueryParameterValue`, the marker is malformed.
    """
    marker = request.marker
    if marker is not None:
        read_time("marker", marker.time)
    starts = [FIRST_NAME, request.prefix, request.start, *([] if marker is None else [marker.name])]
    ends = [end for end in (after_prefix(request.prefix) if request.prefix else None, request.end) if end is not None]
    end = (min(ends, key=ordinal), "") if ends else None
    walk = Walk(context.engine, request.space, end, request.most + 1)
    walk.keys_only = bool(request.delimiter)
    async with aclosing(walk):
        await walk.begin((max(starts, key=ordinal), ""))
        reader = _PageReader(context, request, walk, writer)
        await reader.read()
    reader.page.scanned = walk.scanned
    return reader.page


class _PageReader:
    """A page while it is read."""

    def __init__(self, context: Context, request: ListRequest, walk: Walk, writer: RowWriter) -> None:
        self.page = Page(request.most)
        self._request = request
        self._walk = walk
        self._writer = writer
        self._time_slice = TimeSlice(context.limits.slice_seconds, context.monotonic)
        self._named = NamedBlobs(request, walk, self._time_slice, context.present())
        with_metadata = "metadata" in request.include
        self._current = CurrentBlobs(partial(_write_current, self._named, writer), with_metadata=with_metadata)
        self._shows_current_only = not request.include & _OF_OTHER_ROWS

    async def read(self) -> None:
        """Read the page."""
        walk = self._walk
        is_first = True
        while walk.key is not None:
            read = self._reader_of(walk.key)
            if read != self._read_prefixes and not walk.has_value:
                await walk.read_value()
                continue
            if await self._time_slice.checkpoint() > self._request.deadline and not is_first:
                self.page.next = Marker(walk.key[0], _FIRST_TIME)
                return
            is_first = False
            await read()
            if self.page.next is not None:
                return

    def _reader_of(self, key: Key) -> Callable[[], Awaitable[None]]:
        """Return the method that reads on from a row."""
        if self._common_prefix(key[0]):
            return self._read_prefixes if key[1] == CURRENT else self._read_name
        return self._read_current if self._shows_current_only else self._read_name

    def _common_prefix(self, name: str) -> str:
        """Return a name up to the delimiter; "" if it has none behind the prefix."""
        request = self._request
        at = name.find(request.delimiter, len(request.prefix)) if request.delimiter else -1
        return "" if at < 0 else name[: at + len(request.delimiter)]

    async def _read_prefixes(self) -> None:
        """Add common prefixes, as long as partitions begin with their current blobs."""
        walk, request, page = self._walk, self._request, self.page
        keys = walk.joined()
        found = [] if keys is None else common_prefixes(keys, request.prefix, request.delimiter)
        if not found:
            await walk.read_value()
            await self._read_name()
            return
        prefix = request.prefix
        shown = page.fit(len(found), lambda index: Marker(prefix + decode_text(found[index]), _FIRST_TIME))
        page.add(self._writer.prefixes(prefix, found[:shown]), shown)
        if page.next is not None:
            return
        walk.keys_only = walk.keys_only or len(found) >= _PREFIXES_IN_A_ROW
        await self._leave(prefix + decode_text(found[-1]), patience=_KEYS_IN_VAIN, mattered=len(found))

    async def _read_current(self) -> None:
        """Add current blobs of names without the delimiter; pass over other rows."""
        walk, page, delimiter, begin = self._walk, self.page, self._request.delimiter, len(self._request.prefix)
        walk.keys_only = False
        names, rows, values = walk.columns()
        start, end = walk.index, min(walk.index + _ROWS_AT_ONCE, len(names))
        if delimiter:
            end = next((index for index in range(start, end) if names[index].find(delimiter, begin) >= 0), end)
        picked = [index for index in range(start, end) if rows[index] == CURRENT]
        if len(picked) > page.room:
            del picked[page.room + 1 :]
            end = picked[-1] + 1
        lines = [values[index][: values[index].index(b"\n")] for index in picked]
        if sum(map(len, lines)) > _BYTES_AT_ONCE:
            count = max(1, bisect_right(list(accumulate(map(len, lines))), _BYTES_AT_ONCE))
            del picked[count:], lines[count:]
            end = picked[-1] + 1
        texts = self._current.write([names[index] for index in picked], lines)
        if "" in texts:
            picked = [index for index, text in zip(picked, texts, strict=True) if text]
            texts = [text for text in texts if text]
        shown = page.fit(len(picked), lambda index: Marker(names[picked[index]]))
        page.add("".join(texts[:shown]), shown)
        if page.next is not None:
            return
        if rows[end - 1] <= CURRENT:
            await walk.move(end, len(picked))
        else:
            await walk.move(end - 1, len(picked))
            await walk.jump((names[end - 1] + "\0", ""), mattered=0)

    async def _read_name(self) -> None:
        """Add what is shown of one name, or its common prefix if anything is."""
        walk = self._walk
        if walk.key is None:
            return
        walk.keys_only = False  # The scans that begin within the name have to read values, too.
        name = walk.key[0]
        found = await self._named.read(name)
        common = self._common_prefix(name) if found else ""
        if common:
            shown = self.page.fit(1, lambda _: Marker(common, _FIRST_TIME))
            self.page.add(self._writer.row(ListedPrefix(common)) if shown else "", shown)
        else:
            shown = self.page.fit(len(found), lambda index: Marker(name, found[index][0]))
            self.page.add("".join([self._writer.row(listed) for _, listed in found[:shown]]), shown)
        if walk.key is None or self.page.next is not None:
            return
        if common:
            await self._leave(common)
        elif walk.key[0].startswith(name):  # It is often behind them.
            await walk.jump((name + "\0", ""))

    async def _leave(self, common: str, *, patience: int = 0, mattered: int = 1) -> None:
        """Go behind all names with a common prefix."""
        following = after_prefix(common)
        if following is None:
            await self._walk.aclose()
        else:
            await self._walk.jump((following, ""), patience=patience, mattered=mattered)


def _write_current(named: NamedBlobs, writer: RowWriter, name: str, blob: Blob) -> str:
    listed = named.current(name, blob)
    return "" if listed is None else writer.row(listed)


def common_prefixes(keys: JoinedKeys, prefix: str, delimiter: str) -> list[bytes]:
    """Return the common prefixes of names, each once, up to the first name that has none or no current blob.

    A name with U+0000 ends them, too, if its prefix was not found before. All are returned without `prefix`, in CESU-8.

    Args:
        keys: of a container, in their order.
        prefix: the beginning of all names.
        delimiter: where a common prefix ends.
    """
    joined, skipped = keys.keys, keys.head + len(encode_text(prefix))
    mark = encode_text(delimiter)
    if len(mark) > 1:  # Heads may have it by chance, so they are taken away.
        heads = _SEPARATOR + joined[:skipped]
        joined = (_SEPARATOR + joined[:-1]).replace(heads, _SEPARATOR)[1:] + _SEPARATOR
        joined, mark, skipped = joined.replace(mark, _MARK), _MARK, 0
    found: list[bytes] = _pattern(mark, skipped).findall(joined)
    if not found[-1]:
        del found[-1]
    if _END in b"".join(found):
        del found[next(index for index, each in enumerate(found) if _END in each) :]
    return [each.replace(_MARK, encode_text(delimiter)) for each in found] if mark == _MARK else found


@lru_cache(maxsize=256)
def _pattern(mark: bytes, skipped: int) -> re.Pattern[bytes]:
    """Return a pattern of the keys with one common prefix, the group, if a current blob is first; else of all the rest.

    No repetition gives back what it took, so that the time is linear. A group with 00 is of a name that has no mark,
    or U+0000 before it: a class of two characters would exclude it, and takes longer. Rows are not empty, so an
    escaped 00 does not look like the end of a name.

    Args:
        mark: a byte.
        skipped: the length of what each key begins with.
    """
    skip, mark = b".{%d}" % skipped, re.escape(mark)
    first = b"%b([^%b]*+%b)[^\0]*+\0%b\xff" % (skip, mark, mark, re.escape(CURRENT.encode()))
    return re.compile(b"(?s:%b(?>(?:%b\\1[^\0]*+\0[^\xff]++\xff)*)|.+)" % (first, skip))
