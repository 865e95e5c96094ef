import asyncio

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.records.row_cache import RowCache, TimeToLive


def _filled() -> RowCache[str, int]:
    cache: RowCache[str, int] = RowCache(entries_max=3)
    cache.fill("a", 1, cache.before_read())
    return cache


def test_a_change_evicts_its_row() -> None:
    cache = _filled()
    with cache.changing("a"):
        assert cache.get("a") == 1
    assert cache.get("a") is None


def test_a_read_from_before_a_change_is_not_cached() -> None:
    cache = _filled()
    before = cache.before_read()
    with cache.changing("b"):
        pass
    cache.fill("b", 2, before)
    assert cache.get("b") is None
    cache.fill("b", 2, cache.before_read())
    assert cache.get("b") == 2


@pytest.mark.parametrize("failure", [OSError(), asyncio.CancelledError()])
def test_an_unknown_outcome_is_read_through_until_a_change_succeeds(failure: BaseException) -> None:
    cache = _filled()
    with pytest.raises(type(failure)), cache.changing("a"):
        raise failure
    cache.fill("a", 1, cache.before_read())
    assert cache.get("a") is None
    with cache.changing("a"):
        pass
    cache.fill("a", 1, cache.before_read())
    assert cache.get("a") == 1


def test_a_rejection_is_a_known_outcome() -> None:
    cache = _filled()
    with pytest.raises(ServiceError), cache.changing("a"):
        raise ServiceError("ResourceNotFound")
    cache.fill("a", 1, cache.before_read())
    assert cache.get("a") == 1


def test_it_is_bounded_in_rows_and_in_doubts() -> None:
    cache = _filled()
    for number in range(10):
        cache.fill(str(number), number, cache.before_read())
    assert sum(cache.get(str(number)) is not None for number in range(10)) <= 3
    for number in range(3):
        with pytest.raises(OSError, match="x"), cache.changing(str(number)):
            raise OSError("x")
    cache.fill("z", 1, cache.before_read())
    assert cache.get("z") is None


def test_invalidated_row_is_not_cached_until_the_invalidation_ends() -> None:
    cache = _filled()
    before = cache.before_read()
    cache.begin_invalidation("a")
    assert cache.get("a") is None
    for moment in (before, cache.before_read()):
        cache.fill("a", 1, moment)
        assert cache.get("a") is None
    during = cache.before_read()
    cache.end_invalidation("a")
    cache.fill("a", 1, during)
    assert cache.get("a") is None, "read before the change was over"
    cache.fill("a", 2, cache.before_read())
    assert cache.get("a") == 2


def test_a_lifetime_counts_from_before_the_read() -> None:
    now_s = [5.0]
    cache: RowCache[str, int] = RowCache(ttl=TimeToLive(1.0, lambda: now_s[0]))
    before = cache.before_read()
    now_s[0] += 0.5  # So long the read took.
    cache.fill("a", 1, before)
    now_s[0] += 0.4
    assert cache.get("a") == 1
    now_s[0] += 0.2
    assert cache.get("a") is None
    cache.fill("a", 2, cache.before_read())
    assert cache.get("a") == 2


def test_with_a_lifetime_doubt_ends_with_it() -> None:
    now_s = [5.0]
    cache: RowCache[str, int] = RowCache(ttl=TimeToLive(1.0, lambda: now_s[0]))
    cache.fill("a", 1, cache.before_read())
    with pytest.raises(OSError, match="x"), cache.changing("a"):
        raise OSError("x")
    assert cache.get("a") is None
    cache.fill("a", 1, cache.before_read())
    assert cache.get("a") == 1
    now_s[0] += 1.0
    assert cache.get("a") is None
