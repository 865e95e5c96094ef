"""Structured bodies: written, read in any chunks, and damaged."""

from collections.abc import AsyncIterator, Callable, Iterable
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.content import structured_body
from lazulite.blob.content.crc64 import crc64
from lazulite.blob.content.structured_body import (
    FORMAT,
    StructuredContent,
    StructuredDecoder,
    asks_for_structure,
    decoded,
    encoded_bytes,
    read_structured_length,
)
from lazulite.protocol.errors import ServiceError


def body_of(segments: list[bytes]) -> bytes:
    content = b"".join(segments)
    parts = [pack("<BQHH", 1, encoded_bytes(len(content), len(segments)), 1, len(segments))]
    for number, segment in enumerate(segments, 1):
        parts.append(pack("<HQ", number, len(segment)) + segment + pack("<Q", crc64(segment)))
    return b"".join([*parts, pack("<Q", crc64(content))])


def decode(chunks: Iterable[bytes], length: int, encoded: int | None = None) -> bytes:
    decoder = StructuredDecoder(length, encoded)
    content = b"".join(piece for chunk in chunks for piece in decoder.feed(chunk))
    decoder.finish()
    return content


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


SEGMENTS = st.lists(st.binary(max_size=40), min_size=1, max_size=5)


@given(SEGMENTS, st.integers(1, 60))
def test_a_body_in_any_chunks_is_its_content(segments: list[bytes], size: int) -> None:
    content, body = b"".join(segments), body_of(segments)
    assert decode(cut(body, size), len(content), len(body)) == decode([body], len(content)) == content


@given(SEGMENTS, st.data())
def test_a_damaged_body_is_rejected(segments: list[bytes], data: st.DataObject) -> None:
    body = bytearray(body_of(segments))
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ServiceError) as rejected:
        decode([bytes(body)], sum(map(len, segments)))
    assert rejected.value.code in {"InvalidInput", "Crc64Mismatch"}


@given(SEGMENTS, st.data())
def test_a_shorter_or_longer_body_is_rejected(segments: list[bytes], data: st.DataObject) -> None:
    body = body_of(segments)
    length = sum(map(len, segments))
    for wrong in (body[: data.draw(st.integers(0, len(body) - 1))], body + b"\0"):
        with pytest.raises(ServiceError, match="InvalidInput"):
            decode([wrong], length)
    for announced in ((length + 1, None), (length, len(body) + 1)):
        with pytest.raises(ServiceError, match="InvalidInput"):
            decode([body], *announced)


@given(st.binary(max_size=60), st.integers(0, 100))
def test_any_bytes_are_content_or_rejected(body: bytes, length: int) -> None:
    try:
        assert len(decode([body], length)) == length
    except ServiceError as error:
        assert error.status == 400


@pytest.mark.parametrize(
    "change",
    [
        lambda body: b"\2" + body[1:],
        lambda body: body[:9] + b"\0" + body[10:],
        lambda body: body[:11] + b"\0\0" + body[13:],
        lambda body: body[:13] + b"\2" + body[14:],
    ],
)
def test_a_wrong_frame_is_rejected(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ServiceError, match="InvalidInput"):
        decode([change(body_of([b"abc"]))], 3)


class Content:
    """Content in chunks; counts how often it is closed."""

    def __init__(self, chunks: list[bytes], length: int | None = None) -> None:
        self._chunks = chunks
        self.length = sum(map(len, chunks)) if length is None else length
        self.closed = 0

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk

    @property
    def held_bytes(self) -> int:
        return 0

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("chunks", [[], [b"abc"], [b"abcdefgh"], [b"abcdefghi"], [b"a"] * 17, [b"abcde", b"f" * 11]])
async def test_content_is_written_in_segments(chunks: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured_body, "SEGMENT_BYTES", 4)
    content = Content(chunks)
    written = StructuredContent(content)
    body = b"".join([piece async for piece in written.chunks()])
    whole = b"".join(chunks)
    assert body == body_of(cut(whole, 4) or [b""])
    assert len(body) == written.length
    await written.aclose()
    assert content.closed == 1


async def test_too_much_content_is_a_defect() -> None:
    with pytest.raises(ValueError, match="longer than it says"):
        assert [piece async for piece in StructuredContent(Content([b"abc"], 2)).chunks()]


def test_a_huge_body_has_longer_segments() -> None:
    tib = 2**40
    assert StructuredContent(Content([], 8 * tib)).length < 8 * tib + 65_535 * 18 + 100


async def test_a_body_is_read_while_it_comes() -> None:
    body = body_of([b"abc", b"", b"defg"])

    async def chunks() -> AsyncIterator[bytes]:
        for chunk in cut(body, 5):
            yield chunk

    assert b"".join([piece async for piece in decoded(chunks(), StructuredDecoder(7, len(body)))]) == b"abcdefg"
    with pytest.raises(ServiceError, match="InvalidInput"):
        assert [piece async for piece in decoded(chunks(), StructuredDecoder(6, len(body)))]


def test_headers_are_read() -> None:
    assert read_structured_length({}) is None
    assert not asks_for_structure({})
    for text in (FORMAT, "xsm/1.0;properties=CRC64"):
        headers = {"x-ms-structured-body": text, "x-ms-structured-content-length": "12"}
        assert asks_for_structure(headers)
        assert read_structured_length(headers) == 12


@pytest.mark.parametrize(
    ("format_", "length", "code"),
    [
        ("XSM/2.0; properties=crc64", "1", "UnsupportedHeader"),
        ("XSM/1.0", "1", "UnsupportedHeader"),
        (FORMAT, "", "MissingRequiredHeader"),
        (FORMAT, "-1", "InvalidHeaderValue"),
        (FORMAT, "1" * 20, "InvalidHeaderValue"),
    ],
)
def test_wrong_headers_are_rejected(format_: str, length: str, code: str) -> None:
    with pytest.raises(ServiceError) as rejected:
        read_structured_length({"x-ms-structured-body": format_, "x-ms-structured-content-length": length})
    assert rejected.value.code == code
