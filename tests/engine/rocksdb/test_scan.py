"""A cursor against a dictionary: whatever the ranges, the undurable keys, the sizes and the limits."""

from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocksdict import Rdict

from lazulite.engine.contract import LISTED, Key
from lazulite.engine.key_encoding import decode_key, encode_key
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.rocksdb.rollback_journal import Batch
from lazulite.engine.rocksdb.scan import Cursor, sorted_rows

_ROWS = [f"{number:02}" for number in range(48)]
_SIZES = [0, 1, 40, 20_000]
names = st.sampled_from(_ROWS)
contents = st.lists(st.sampled_from([None, *_SIZES]), min_size=len(_ROWS), max_size=len(_ROWS)).map(
    lambda sizes: {row: size for row, size in zip(_ROWS, sizes, strict=True) if size is not None}
)
undurable = st.dictionaries(names, st.none() | st.sampled_from(_SIZES), max_size=20)
edges = st.lists(st.integers(0, 50), min_size=2, max_size=6, unique=True).map(sorted) | st.just([0, 50])


@pytest.fixture(name="database", scope="module")
def _database() -> Iterator[Rdict]:
    home = DataDirectory(None, RocksSettings())
    database = home.open()
    yield database
    home.close(database)


def _row(size: int, durable: bool) -> bytes:
    return (b"d" if durable else b"s") + bytes(size)


def _ranges(edges: Sequence[int], space: int) -> list[tuple[bytes, bytes]]:
    bounds = [encode_key(space, "p", f"{edge:02}") for edge in edges]
    return list(zip(bounds[::2], bounds[1::2], strict=False))


@settings(deadline=None)
@given(
    contents,
    undurable,
    edges,
    st.none() | st.integers(0, 40),
    st.tuples(st.sampled_from([1, 7, 256]), st.integers(1, 60_000)),
    st.booleans(),
    st.sampled_from([1, LISTED | 1]),
)
def test_a_cursor_reads_what_is_durable_and_no_more(
    database: Rdict,
    stored: dict[str, int],
    replaced: dict[str, int | None],
    edges: list[int],
    limit: int | None,
    slices: tuple[int, int],
    keys_only: bool,
    space: int,
) -> None:
    now: dict[bytes, bytes | None] = {
        encode_key(space, "p", row): _row(size, durable=False) for row, size in stored.items()
    }
    database.write(Batch((), dropped=[space]).encoded())
    database.write(Batch(list(now.items())).encoded())
    ranges = _ranges(edges, space)
    replacing = {
        key: None if size is None else _row(size, durable=True)
        for key, size in ((encode_key(space, "p", row), size) for row, size in replaced.items())
        if any(start <= key < end for start, end in ranges)
    }
    now |= replacing
    inside = [(key, now[key]) for key in sorted(now) for start, end in ranges if start <= key < end]
    expected = [(decode_key(key), value) for key, value in inside if value is not None][:limit]

    rows, size = slices
    settings = RocksSettings(slice_rows_max=rows, slice_keys_max=rows, slice_bytes_max=size)
    cursor = Cursor(database, ranges, sorted_rows(replacing), limit, settings, keys_only=keys_only)
    ticks = count()
    found: list[tuple[Key, bytes]] = []
    while not cursor.done:
        part = cursor.next_slice(lambda: next(ticks) / 1e4)
        found += [(part.key(index), value) for index, value in enumerate(part.values)]
    cursor.close()
    assert [key for key, _ in found] == [key for key, _ in expected]
    assert keys_only or found == expected
