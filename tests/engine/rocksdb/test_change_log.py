"""The change log: a reader gets the records as they were appended, or is lost."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.rocksdb.change_log import ChangeLog, ChangeLogReader, ChangeRecord, LostError

keys = st.binary(min_size=1, max_size=8)
groups = st.dictionaries(keys, st.none() | st.binary(max_size=40), max_size=4)
RING_BYTES = 1024


class Ends:
    """Both ends of a log. `inside` is called between the two steps of an append."""

    def __init__(self, ring_bytes: int = RING_BYTES) -> None:
        self.inside: Callable[[], object] = list
        self.log = ChangeLog(ring_bytes, self._inside)
        self.log.append(0, 0, {})
        self.reader = ChangeLogReader(self.log.descriptor)
        self.reader.begin()

    def _inside(self) -> None:
        self.inside()

    def read(self) -> list[ChangeRecord]:
        return list(self.reader.read())


@pytest.fixture(name="ends")
def _ends() -> Iterator[Ends]:
    ends = Ends()
    yield ends
    ends.log.close()


@given(st.lists(st.tuples(groups, st.lists(st.integers(0, 9), max_size=2), st.booleans()), max_size=60))
def test_a_reader_gets_every_record_in_order_or_is_lost(
    appended: list[tuple[dict[bytes, bytes], list[int], bool]],
) -> None:
    ends = Ends()
    unread: list[tuple[int, dict[bytes, bytes], tuple[int, ...]]] = []
    unread_bytes = 0
    for number, (changes, dropped, reads) in enumerate(appended, 1):
        before = ends.log._end
        ends.log.append(number, number // 2, changes, dropped)
        unread_bytes += ends.log._end - before
        unread.append((number, changes, tuple(dropped)))
        if reads:
            assert ends.reader.is_behind
            try:
                found = [(each.number, each.changes, each.dropped) for each in ends.read()]
            except LostError:
                assert unread_bytes > RING_BYTES
                assert ends.reader.begin().number == number
            else:
                assert found == unread
            assert not ends.reader.is_behind
            unread, unread_bytes = [], 0
    ends.log.close()


def test_a_group_shows_as_a_whole_when_its_word_is_written(ends: Ends) -> None:
    seen: list[list[ChangeRecord]] = []
    ends.inside = lambda: seen.append(ends.read())
    ends.log.append(1, 0, {b"a": b"1", b"b": None})
    assert seen == [[]]
    assert [each.changes for each in ends.read()] == [{b"a": b"1", b"b": None}]


def test_a_record_with_any_byte_wrong_is_never_read(ends: Ends) -> None:
    start = ends.log._end
    ends.log.append(1, 0, {b"key": b"value" * 9}, [5])
    for at in range(start, ends.log._end):
        ends.log._ring[at % RING_BYTES] ^= 1
        ends.reader._next = start
        with pytest.raises(LostError):
            ends.read()
        ends.log._ring[at % RING_BYTES] ^= 1
    ends.reader._next = start
    assert len(ends.read()) == 1


def test_unknown_changes_and_those_too_large_for_the_ring_are_none(ends: Ends) -> None:
    ends.log.append(1, 0, None)
    ends.log.append(2, 0, {b"k": bytes(RING_BYTES)})
    ends.log.note_flushed(2)
    assert [each[:3] for each in ends.read()] == [(1, 0, None), (2, 0, None), (2, 2, {})]
