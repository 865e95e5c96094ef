"""The headers that describe a blob: a usual blob has the lines of any blob."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.blob import Blob, BlobType, ContentHeaders, Copy
from lazulite.blob.requests.headers import describe, tier_of, usual_lines
from lazulite.blob.versions import QUOTED_ETAG, head_lines
from tests.blob.model.test_lease import LEASED

TEXTS = st.sampled_from(["", "", "text/plain", "<0>", "%s", "a\r\nb: c", "\0", "é", "a\nb", "5%"])
TICKS = st.integers(0, 3 * 10**18)
OPERATIONS = st.sampled_from(["GetBlob", "GetBlobProperties"])
VERSIONS = st.sampled_from(["2026-10-06", "2021-12-02", "2017-07-29", "2012-02-12", QUOTED_ETAG, "2009-09-19"])
TYPES = st.sampled_from([*[BlobType.BLOCK] * 6, *BlobType])
HEADERS = st.builds(ContentHeaders, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
BLOBS = st.tuples(TYPES, TICKS, TICKS, HEADERS).map(
    lambda drawn: Blob(drawn[0], modified=drawn[1], created=drawn[2], headers=drawn[3])
)
OTHERS: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    [
        *[{}] * 8,
        *({"lease": LEASED}, {"tags": (("t", "1"),)}, {"metadata": (("a", "b"),)}, {"version": 5}, {"tier": "Cool"}),
        {"copy": Copy("id", "http://h/", "success", "1/1", 7)},
        {"length": 5, "sequence": 3, "content": 2, "tier_changed": 9, "blocks": 4},
    ]
)
UNUSUAL = ("tags", "metadata", "version", "tier", "copy", "lease")


@given(BLOBS, OTHERS, OPERATIONS, VERSIONS, st.booleans(), st.booleans())
def test_the_lines_of_usual_blobs_are_those_of_any(
    blob: Blob, others: dict[str, object], operation: str, version: str, is_range: bool, with_lease: bool
) -> None:
    blob = blob._replace(**others)  # type: ignore[arg-type]  # Fields of a blob.
    pairs = describe(blob, 0 if with_lease else None, is_current=True, is_range=is_range) + tier_of(blob)
    lines = usual_lines(blob, operation, version, is_range=is_range, with_lease=with_lease)
    if lines is not None:
        assert lines == head_lines(pairs, operation, version)
    elif blob.type is BlobType.BLOCK and not any(name in others for name in UNUSUAL):
        assert head_lines(pairs, operation, version) is None


def test_a_text_of_several_lines_makes_none() -> None:
    for text in ("a\r\nb: c", "a\nb", "a\rb", "\0", "é"):
        assert head_lines([("Content-Type", text)], "GetBlob", "2021-12-02") is None
    assert head_lines([("ETag", '"1"'), ("a", "b")], "GetBlob", "2021-12-02") == 'ETag: "1"\r\na: b\r\n'
    assert head_lines([], "GetBlob", "2021-12-02") == ""
    assert head_lines([("ETag", '"1"')], "GetBlob", "2009-09-19") is None, "its ETag has no quotes"
