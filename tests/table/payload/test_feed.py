from hypothesis import given
from hypothesis import strategies as st

from lazulite.table.payload.feed import FeedFrame

texts = st.binary(max_size=4)


@given(texts, texts, texts, st.lists(texts, max_size=5))
def test_the_parts_of_a_document_are_the_whole(
    opening: bytes, between: bytes, closing: bytes, items: list[bytes]
) -> None:
    frame = FeedFrame(opening, between, closing)
    expected = opening + between.join(items) + closing
    assert b"".join(frame.parts(items)) == expected
    assert frame.whole(list(items)) == expected
