"""Page blobs, beside a plain model: each page has a text and the epoch of its write, or nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.byte_range import PAGE_BYTES
from lazulite.blob.model.page_ranges import PageRange, append_ranges, changed_ranges, written_ranges
from lazulite.blob.model.pages import (
    SEGMENT_BYTES,
    ClearedRange,
    Extent,
    Segment,
    as_of,
    changed_rows,
    history_row,
    read_segment,
    segment_row,
    segments_of,
)

PAGES = 12
"""Of the model, half of them at the end of the first segment."""
FIRST = SEGMENT_BYTES - PAGES // 2 * PAGE_BYTES
STOP = FIRST + PAGES * PAGE_BYTES
LIST = 7

State = dict[int, tuple[bytes, int]]
"""By the number of a page: its bytes and the epoch of its write."""
RANGES = st.tuples(st.integers(0, PAGES - 1), st.integers(1, PAGES)).map(lambda pair: (pair[0], min(sum(pair), PAGES)))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["inline", "content", "clear"]), RANGES),
        st.just(("snapshot", (0, 0))),
        st.just(("move", (0, 1))),
        st.just(("move", (PAGES - 1, PAGES))),
    ),
    max_size=14,
)


class Blob:
    """The rows and contents of a page blob, and the model."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.contents: dict[int, bytes] = {}
        self.model: State = {}
        self.cleared: dict[int, int] = {}
        """By the number of a page without bytes: the epoch in which it was cleared."""
        self.snapshots: list[tuple[State, dict[int, int]]] = []
        self._token = 0

    @property
    def epoch(self) -> int:
        return len(self.snapshots)

    def change(self, kind: str, first: int, last: int) -> None:
        if kind == "snapshot":
            self.snapshots.append((dict(self.model), dict(self.cleared)))
            return
        for base, start, stop in segments_of(FIRST + first * PAGE_BYTES, FIRST + last * PAGE_BYTES):
            value = self.rows.get(segment_row(LIST, base))
            before = read_segment(value)
            after = self._changed(kind, before, base, start, stop)
            for row, changed in changed_rows(LIST, base, value, after).items():
                if changed is None:
                    self.rows.pop(row, None)
                else:
                    self.rows[row] = changed
            for content in before.released(after):
                del self.contents[content]

    def _changed(self, kind: str, segment: Segment, base: int, start: int, stop: int) -> Segment:
        if kind == "move":
            return segment.moved(self._content(segment.inline)) if segment.inline else segment
        pages = range((base + start - FIRST) // PAGE_BYTES, (base + stop - FIRST) // PAGE_BYTES)
        texts = [self._text() for _ in pages]
        for page, text in zip(pages, texts, strict=True):
            if kind == "clear":
                if self.model.pop(page, None) is not None:
                    self.cleared[page] = self.epoch
            else:
                self.model[page] = (text, self.epoch)
                self.cleared.pop(page, None)
        if kind == "clear":
            return segment.clear(start, stop, self.epoch)
        if kind == "inline":
            return segment.write_inline(start, b"".join(texts), self.epoch)
        return segment.write(start, stop, self.epoch, self._content(b"some" + b"".join(texts)), 4)

    def _text(self) -> bytes:
        self._token += 1
        return self._token.to_bytes(4, "big") * (PAGE_BYTES // 4)

    def _content(self, content: bytes) -> int:
        self._token += 1
        self.contents[self._token] = content
        return self._token

    def segment(self, base: int, epoch: int) -> Segment:
        row = segment_row(LIST, base)
        history = [
            (int(key.rpartition("/")[2], 16), read_segment(value))
            for key, value in sorted(self.rows.items())
            if key.startswith(f"{row}/")
        ]
        return as_of(epoch, read_segment(self.rows.get(row)), history)

    def read(self, epoch: int) -> bytes:
        return b"".join(self._pieces(epoch))

    def _pieces(self, epoch: int) -> Iterator[bytes]:
        for base, start, stop in segments_of(FIRST, STOP):
            for piece in self.segment(base, epoch).pieces(start, stop):
                if piece.content is not None:
                    yield self.contents[piece.content][piece.at : piece.at + piece.length]
                else:
                    yield bytes(piece.length) if piece.inline is None else piece.inline


def joined(parts: Iterable[tuple[int, Iterable[PageRange]]]) -> Iterator[PageRange]:
    """Yield the ranges of a blob, given the offset and the ranges of each segment."""
    found: list[PageRange] = []
    for base, ranges in parts:
        append_ranges(found, base, ranges)
    yield from found


def ranges_of(pages: dict[int, bool]) -> list[PageRange]:
    """Return the joined ranges of pages; true for a cleared one."""
    found: list[PageRange] = []
    for page, is_cleared in sorted(pages.items()):
        start, stop = FIRST + page * PAGE_BYTES, FIRST + (page + 1) * PAGE_BYTES
        if found and found[-1].stop == start and found[-1].is_cleared == is_cleared:
            start = found.pop().start
        found.append(PageRange(start, stop, is_cleared))
    return found


@given(CHANGES)
def test_pages_and_snapshots_are_those_of_the_model(changes: list[tuple[str, tuple[int, int]]]) -> None:
    blob = Blob()
    for kind, (first, last) in changes:
        blob.change(kind, first, last)
    states = [*blob.snapshots, (blob.model, blob.cleared)]
    parts = list(segments_of(FIRST, STOP))
    for epoch, (state, cleared) in enumerate(states):
        assert blob.read(epoch) == b"".join(state.get(page, (bytes(PAGE_BYTES), 0))[0] for page in range(PAGES))
        written = joined((base, written_ranges(blob.segment(base, epoch), *part)) for base, *part in parts)
        assert list(written) == ranges_of(dict.fromkeys(state, False))
        for past in range(epoch):
            found = joined(
                (base, changed_ranges(blob.segment(base, past), blob.segment(base, epoch), past, *part))
                for base, *part in parts
            )
            changed = {page: False for page, (_, written_in) in state.items() if written_in > past}
            assert list(found) == ranges_of(changed | {page: True for page in cleared if cleared[page] > past})


@given(CHANGES)
def test_contents_are_released_when_no_row_refers_to_them(changes: list[tuple[str, tuple[int, int]]]) -> None:
    blob = Blob()
    for kind, (first, last) in changes:
        blob.change(kind, first, last)
    used = {content for value in blob.rows.values() for content in read_segment(value).contents()}
    assert used <= blob.contents.keys()
    if not blob.snapshots:
        assert used == blob.contents.keys()


@given(CHANGES)
def test_a_segment_survives_its_row(changes: list[tuple[str, tuple[int, int]]]) -> None:
    blob = Blob()
    for kind, (first, last) in changes:
        blob.change(kind, first, last)
    for value in blob.rows.values():
        segment = read_segment(value)
        assert segment.to_bytes() == value
        stops = [0, *(each.stop for each in segment.extents)]
        assert all(
            before <= each.start < each.stop <= SEGMENT_BYTES
            for before, each in zip(stops, segment.extents, strict=False)
        )
        assert len(segment.inline) == sum(each.stop - each.start for each in segment.extents if each.content is None)
        ranges = sorted(
            [*((each.start, each.stop) for each in segment.extents), *(each[:2] for each in segment.cleared)]
        )
        assert all(one[1] <= other[0] for one, other in pairwise(ranges))
        assert all(each.epoch for each in segment.cleared)


@given(CHANGES)
def test_a_row_without_its_cleared_ranges_has_the_same_pages(changes: list[tuple[str, tuple[int, int]]]) -> None:
    """Rows of earlier releases lack them. A diff then has those pages as cleared that the snapshot had."""
    blob = Blob()
    for kind, (first, last) in changes:
        blob.change(kind, first, last)
        blob.rows = {
            row: replace(segment, cleared=()).to_bytes()
            for row, value in blob.rows.items()
            if (segment := read_segment(value)).extents
        }
    states = [*blob.snapshots, (blob.model, blob.cleared)]
    parts = list(segments_of(FIRST, STOP))
    for past, (older, _) in enumerate(states):
        found = joined(
            (base, changed_ranges(blob.segment(base, past), blob.segment(base, blob.epoch), past, *part))
            for base, *part in parts
        )
        changed = {page: False for page, (_, written_in) in blob.model.items() if written_in > past}
        assert list(found) == ranges_of(changed | dict.fromkeys(older.keys() - blob.model.keys(), True))


@given(st.binary())
def test_any_row_is_a_segment_or_rejected(value: bytes) -> None:
    try:
        read_segment(value)
    except ValueError:
        return


def test_writes_that_continue_each_other_are_one_extent() -> None:
    segment = (
        Segment().write_inline(0, bytes(512), 1).write_inline(512, bytes(512), 1).write_inline(1024, bytes(512), 2)
    )
    assert segment.extents == (Extent(0, 1024, 1, None, 0), Extent(1024, 1536, 2, None, 1024))
    assert Segment().write(0, 512, 0, 5).write(512, 1024, 0, 5, 512).extents == (Extent(0, 1024, 0, 5, 0),)
    assert len(Segment().write(0, 512, 0, 5).write(512, 1024, 0, 6).extents) == 2


def test_a_range_is_divided_at_segments() -> None:
    assert list(segments_of(FIRST, STOP)) == [
        (0, FIRST, SEGMENT_BYTES),
        (SEGMENT_BYTES, 0, STOP - SEGMENT_BYTES),
    ]
    assert list(segments_of(5, 5)) == []
    tib = 2**40
    assert list(segments_of(8 * tib - 512, 8 * tib)) == [(8 * tib - SEGMENT_BYTES, SEGMENT_BYTES - 512, SEGMENT_BYTES)]


def test_rows_of_history_follow_their_segment() -> None:
    rows = [segment_row(7, 0), history_row(7, 0, 0), history_row(7, 0, 17), segment_row(7, SEGMENT_BYTES)]
    assert rows == sorted(rows)


def test_a_malformed_row_is_rejected() -> None:
    value = Segment().write(0, 512, 0, 5).to_bytes()
    for wrong in (b"", b"\2" + value[1:], value[:-1]):
        with pytest.raises(ValueError, match="not a segment"):
            read_segment(wrong)


def test_the_bytes_of_rows_stay() -> None:
    """The first is a row as all releases write it, the second one with cleared ranges behind its bytes."""
    first = bytes.fromhex("01 03000000 01000000 00020000 00040000 02000000 0000000000000000 00000000") + b"x" * 512
    segment = Segment(3, (Extent(512, 1024, 2, None, 0),), b"x" * 512)
    assert (read_segment(first), segment.to_bytes()) == (segment, first)
    second = first + bytes.fromhex("00040000 00060000 03000000")
    cleared = replace(segment, cleared=(ClearedRange(1024, 1536, 3),))
    assert (read_segment(second), cleared.to_bytes()) == (cleared, second)
    for value in (first[:-1], second[:-1], second + b"x"):
        with pytest.raises(ValueError, match="not a segment"):
            read_segment(value)
