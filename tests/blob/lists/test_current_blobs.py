"""The markup of current blobs from their stored form is that of the writer of any blob."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.blob.lists import current_blobs
from lazulite.blob.lists.blob_list_xml import BlobPage, RowWriter
from lazulite.blob.lists.current_blobs import CurrentBlobs
from lazulite.blob.lists.named import listed_blob
from lazulite.blob.model.blob import NO_HEADERS, Blob, BlobType, ContentHeaders, Copy, Rehydration
from lazulite.blob.model.lease import INFINITE, Lease

NOW = 133 * 10**15
SHAPES = (current_blobs._NAME, current_blobs._MD5, str(current_blobs._SAMPLE.length), current_blobs._SAMPLE.etag)
TEXTS = st.sampled_from(["", "text/plain", 'a"b', "<é&>", "\\", "a\x01", "\U00010000", *SHAPES]) | st.text(max_size=9)
TIMES = st.sampled_from([0, NOW, NOW + 1, 10**17, 2 * 10**17, 10**19])
PAIRS = st.lists(st.tuples(st.sampled_from(["k", "1x", "of"]), TEXTS), max_size=2).map(tuple)


def blob_of(**fields: Any) -> Blob:
    """Return a blob. Of the class itself, other fields would be drawn by their types: times before year 1."""
    return Blob(**fields)


USUAL = st.builds(
    blob_of,
    type=st.sampled_from(BlobType),
    modified=TIMES,
    created=TIMES,
    length=st.sampled_from([0, 1, 1024, 123_456_789_123, 10**15]),
    headers=st.just(NO_HEADERS) | st.builds(ContentHeaders, *[TEXTS] * 6),
    metadata=st.just(()) | PAIRS,
    inline=st.binary(max_size=9),
    content=st.none() | st.integers(0, 9),
    list=st.integers(0, 9),
    blocks=st.integers(0, 9),
    version=st.integers(0, 9),
)
OTHERS = st.sampled_from(
    [
        *[{}] * 9,
        {"tags": (("t", "v"),)},
        {"lease": Lease(UUID(int=1), INFINITE, None)},
        {"sealed": True, "sequence": 7},
        {"tier": "Cool", "tier_changed": NOW},
        {"tier": "Archive", "archive": Rehydration("Hot", "High", NOW + 10**9)},
        {"copy": Copy("i", "http://h/a&b", "success", "1/1", NOW)},
        {"deleted": NOW, "expires": NOW + 1},
    ]
)
NAMES = st.sampled_from(["a", "b/c", "a", "b/c", current_blobs._NAME, "&", "\x01", "é"])
BLOBS = st.tuples(NAMES, st.builds(lambda blob, others: blob._replace(**others), USUAL, OTHERS))


def stored(blob: Blob) -> bytes:
    return blob.to_bytes().partition(b"\n")[0]


class Pair:
    """The two writers of a page."""

    def __init__(self, version: str, *, with_metadata: bool) -> None:
        self.calls = 0
        self._with_metadata = with_metadata
        self._rows = RowWriter(BlobPage(base="http://h/acc/", container="c", sent=[], version=version))
        self.fast = CurrentBlobs(self.write, with_metadata=with_metadata)

    def write(self, name: str, blob: Blob) -> str:
        self.calls += 1
        if blob.deleted:
            return ""
        row = listed_blob(name, blob, NOW, is_base=True, with_copy=True)
        row.metadata = blob.metadata if self._with_metadata else ()
        return self._rows.row(row)

    def both(self, blobs: Sequence[tuple[str, Blob]]) -> tuple[list[str], list[str]]:
        fast = self.fast.write([name for name, _ in blobs], [stored(blob) for _, blob in blobs])
        return fast, [self.write(name, blob) for name, blob in blobs]


@settings(max_examples=300)
@given(st.lists(BLOBS, max_size=3), st.sampled_from(["2017-07-29", "2019-02-02", "2026-10-06"]), st.booleans())
def test_markup_of_any_blobs(blobs: list[tuple[str, Blob]], version: str, with_metadata: bool) -> None:
    pair = Pair(version, with_metadata=with_metadata)
    for some in (blobs, blobs[::-1]):
        fast, slow = pair.both(some)
        assert fast == slow


@pytest.mark.parametrize("text", ["&", "<", ">", "\\", '"', "\r", "\x01", "é", "\uffff", *SHAPES])
def test_texts_that_need_an_escape_or_are_those_of_a_shape(text: str) -> None:
    plain = Blob(type=BlobType.BLOCK, modified=NOW, created=NOW, headers=ContentHeaders("text/plain", md5="bQ=="))
    odd = [
        (text, plain),
        ("a", plain._replace(headers=ContentHeaders("text/plain", md5=text))),
        ("a", plain._replace(headers=ContentHeaders(text, md5="bQ=="))),
        ("a", plain._replace(headers=ContentHeaders("", disposition=text))),
        ("a", plain._replace(metadata=(("k", text),))),
    ]
    for named in odd:
        for some in ([named], [("a", plain), named], [named, ("a", plain)]):
            fast, slow = Pair("2021-12-02", with_metadata=True).both(some)
            assert fast == slow


def test_few_blobs_of_a_page_are_written_by_the_writer_of_any_blob() -> None:
    pair = Pair("2021-12-02", with_metadata=True)
    blob = Blob(type=BlobType.BLOCK, modified=NOW, created=NOW, headers=ContentHeaders("text/plain", md5="bQ=="))
    blobs = [(f"{at}", blob._replace(modified=NOW + at, length=at + 1, metadata=(("k", "v"),))) for at in range(500)]
    pair.fast.write([name for name, _ in blobs], [stored(blob) for _, blob in blobs])
    assert pair.calls == 1
