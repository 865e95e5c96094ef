from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.lru_cache import LruCache


@given(st.lists(st.integers(0, 20)), st.integers(1, 10))
def test_it_is_bounded_and_right(keys: list[int], entries_max: int) -> None:
    recent: LruCache[int, str] = LruCache(entries_max)
    for key in keys:
        assert recent.get(key) in (None, str(key))
        recent.put(key, str(key))
        assert recent.get(key) == str(key)
        assert len(recent) <= max(2, entries_max)


def test_what_is_used_stays() -> None:
    recent: LruCache[int, int] = LruCache(4)
    recent.put(0, 0)
    for _, key in pairwise(range(50)):
        recent.put(key, key)
        assert recent.get(0) == 0
    assert recent.get(1) is None
