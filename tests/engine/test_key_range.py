import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.contract import Key, KeyRange
from lazulite.engine.ordinal import ordinal
from lazulite.table.operations.entity_read import clip

texts = st.sampled_from(["", "a", "a\0", "b", "\uffff", "\U0001f600"])
keys = st.tuples(texts, texts)
ranges = st.builds(KeyRange, keys, st.one_of(st.none(), keys))


def _holds(bounds: KeyRange, key: Key) -> bool:
    def order(each: Key) -> tuple[bytes, bytes]:
        return ordinal(each[0]), ordinal(each[1])

    return order(bounds.lower) <= order(key) and (bounds.upper is None or order(key) < order(bounds.upper))


@given(st.lists(ranges, max_size=3), ranges, keys)
def test_clipping_is_intersection(some: list[KeyRange], within: KeyRange, key: Key) -> None:
    clipped = clip(some, within)
    assert any(_holds(each, key) for each in clipped) == (
        _holds(within, key) and any(_holds(each, key) for each in some)
    )


@pytest.mark.parametrize("upper", [None, ("a", "")])
def test_an_empty_range_is_dropped(upper: Key | None) -> None:
    assert clip([KeyRange(("b", ""), upper)], KeyRange(("a", ""), ("a", "b"))) == ()
