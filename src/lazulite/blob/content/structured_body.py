"""Structured bodies: content in segments, each with its CRC-64. Source: the format `XSM/1.0` of Azure's SDKs.

All numbers are little endian. The head is the format (1 byte), the length of the whole body (8), flags (2) and the
number of segments (2). Each segment has its number from 1 (2), its length (8), its bytes and, with the flag, their
CRC-64 (8). With the flag the body ends with the CRC-64 of all content (8).

The decoder holds a few bytes of a frame at most. What it yields is to be discarded if it rejects the rest.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from struct import Struct

from lazulite.blob.content.crc64 import SegmentedCrc64
from lazulite.blob.content.digests import crc64_mismatch
from lazulite.protocol.errors import SHOWN_CHARACTERS_MAX, ServiceError, invalid_header, missing_header
from lazulite.protocol.message import ResponseContent, Window

BODY_HEADER = "x-ms-structured-body"
LENGTH_HEADER = "x-ms-structured-content-length"
FORMAT = "XSM/1.0; properties=crc64"
"""The only value of the header; a response has it as the request had it."""
SEGMENT_BYTES = 4 * 1024 * 1024
"""The length of a segment that we write, unless there would be too many."""

_VERSION = 1
_WITH_CRC64 = 1
_SEGMENTS_MAX = 2**16 - 1
_HEAD = Struct("<BQHH")
_SEGMENT = Struct("<HQ")
_CRC64 = Struct("<Q")
_DIGITS_MAX = 19


def read_structured_length(headers: Mapping[str, str]) -> int | None:
    """Return the bytes of the content of a structured body; None: the body is not structured.

    Raises:
        ServiceError: `UnsupportedHeader`, the format is another; `MissingRequiredHeader`, `InvalidHeaderValue`, there
            is no length.
    """
    if not asks_for_structure(headers):
        return None
    text = headers.get(LENGTH_HEADER, "")
    if not text:
        raise missing_header(LENGTH_HEADER)
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise invalid_header(LENGTH_HEADER, text)
    return int(text)


def framing_bytes(headers: Mapping[str, str]) -> int:
    """Return the most bytes that the frame of a request's body may have."""
    return encoded_bytes(0, _SEGMENTS_MAX) if BODY_HEADER in headers else 0


def asks_for_structure(headers: Mapping[str, str]) -> bool:
    """Tell whether a request has a structured body, or a read asks for one.

    Raises:
        ServiceError: `UnsupportedHeader`, the format is another.
    """
    text = headers.get(BODY_HEADER)
    if text is None:
        return False
    if "".join(text.lower().split()) != FORMAT.lower().replace(" ", ""):
        raise unsupported_structure(headers)
    return True


def unsupported_structure(headers: Mapping[str, str]) -> ServiceError:
    """Return the rejection of a structured body in an unknown format, or where there can be none."""
    shown = headers[BODY_HEADER][:SHOWN_CHARACTERS_MAX]
    return ServiceError("UnsupportedHeader", details=[("HeaderName", BODY_HEADER), ("HeaderValue", shown)])


class StructuredDecoder:
    """Takes the content out of one structured body.

    Args:
        length: the announced bytes of the content.
        encoded: the announced bytes of the body; None: the body is chunked.

    Attributes:
        checksum: of the content in the segments that ended.
    """

    def __init__(self, length: int, encoded: int | None) -> None:
        self.checksum = SegmentedCrc64()
        self._content_left = length
        self._encoded = encoded
        self._received = 0
        self._segments = self._number = 0
        self._data_left = 0
        self._frame = bytearray()
        self._next: tuple[Struct, Callable[..., None]] | None = (_HEAD, self._on_head)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the content in the next bytes of the body.

        Raises:
            ServiceError: `InvalidInput`, `Crc64Mismatch`.
        """
        self._received += len(chunk)
        at = 0
        while at < len(chunk):
            if self._data_left:
                piece = chunk[at : at + self._data_left]
                at += len(piece)
                self._take(piece)
                yield piece
            else:
                at = self._fill(chunk, at)

    def finish(self) -> None:
        """Check that the body is whole. Raises `InvalidInput`."""
        if self._next is not None or self._data_left:
            raise _malformed("it ends early")

    def _take(self, piece: bytes) -> None:
        self._data_left -= len(piece)
        self.checksum.update(piece)

    def _fill(self, chunk: bytes, at: int) -> int:
        """Take bytes of the next frame, and read it if it is whole; return the offset behind them."""
        if self._next is None:
            raise _malformed("bytes follow its end")
        struct, read = self._next
        end = at + struct.size - len(self._frame)
        self._frame += chunk[at:end]
        if len(self._frame) == struct.size:
            fields = struct.unpack(self._frame)
            self._frame.clear()
            read(*fields)
        return min(end, len(chunk))

    def _on_head(self, version: int, total: int, flags: int, segments: int) -> None:
        if version != _VERSION or flags != _WITH_CRC64 or not segments:
            raise _malformed("its head is not known")
        if total != encoded_bytes(self._content_left, segments) or self._encoded not in (None, total):
            raise _malformed("its length differs from the announced ones")
        self._segments = segments
        self._next = (_SEGMENT, self._on_segment)

    def _on_segment(self, number: int, length: int) -> None:
        self._number += 1
        if number != self._number or length > self._content_left:
            raise _malformed("a segment is out of place")
        self._content_left -= length
        self._data_left = length
        self.checksum.begin(length)
        self._next = (_CRC64, self._on_segment_end)

    def _on_segment_end(self, sent: int) -> None:
        computed = self.checksum.end()
        if sent != computed:
            raise crc64_mismatch(sent, computed)
        if self._number < self._segments:
            self._next = (_SEGMENT, self._on_segment)
        elif self._content_left:
            raise _malformed("segments are missing")
        else:
            self._next = (_CRC64, self._on_end)

    def _on_end(self, sent: int) -> None:
        if sent != self.checksum.whole:
            raise crc64_mismatch(sent, self.checksum.whole)
        self._next = None


def _malformed(reason: str) -> ServiceError:
    return ServiceError("InvalidInput", details=[("Reason", f"The structured body is malformed: {reason}.")])


async def decoded(chunks: AsyncIterator[bytes], decoder: StructuredDecoder) -> AsyncIterator[bytes]:
    """Yield the content of a structured body that comes in chunks.

    Raises:
        ServiceError: as the decoder, also behind the last piece. What was yielded is to be discarded.
    """
    async for chunk in chunks:
        for piece in decoder.feed(chunk):
            yield piece
    decoder.finish()


def encoded_bytes(length: int, segments: int) -> int:
    """Return the length of a structured body, given that of its content and the number of its segments."""
    return _HEAD.size + segments * (_SEGMENT.size + _CRC64.size) + length + _CRC64.size


class StructuredContent:
    """Content as a structured body; implements `ResponseContent`.

    Args:
        content: closed with this.
    """

    def __init__(self, content: ResponseContent) -> None:
        self._content = content
        self._segment_bytes = max(SEGMENT_BYTES, -(-content.length // _SEGMENTS_MAX))
        self._segments = max(1, -(-content.length // self._segment_bytes))

    @property
    def length(self) -> int:
        """See `ResponseContent`."""
        return encoded_bytes(self._content.length, self._segments)

    @property
    def held_bytes(self) -> int:
        """See `ResponseContent`."""
        return self._content.held_bytes

    async def chunks(self) -> AsyncIterator[Window]:
        """See `ResponseContent`. Raises `ValueError`, the content is longer than it says."""
        # Not yielded by itself: what keeps the content from being read comes to light before the first piece.
        opening = _HEAD.pack(_VERSION, self.length, _WITH_CRC64, self._segments)
        number, checksum = 0, SegmentedCrc64()
        to_come, left = self._content.length, 0
        if not to_come:
            yield opening + _SEGMENT.pack(1, 0) + _CRC64.pack(0)
        async for chunk in self._content.chunks():
            at = 0
            while at < len(chunk):
                if not left:
                    number, left = number + 1, min(self._segment_bytes, to_come)
                    to_come -= left
                    if not left:
                        raise ValueError("the content is longer than it says")
                    checksum.begin(left)
                    yield opening + _SEGMENT.pack(number, left)
                    opening = b""
                piece = chunk[at : at + left]
                at, left = at + len(piece), left - len(piece)
                checksum.update(piece)
                yield piece
                if not left:
                    yield _CRC64.pack(checksum.end())
        yield _CRC64.pack(checksum.whole)

    async def aclose(self) -> None:
        """See `ResponseContent`."""
        await self._content.aclose()
