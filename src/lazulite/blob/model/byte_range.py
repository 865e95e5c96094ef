"""Ranges of bytes that requests name. Source: REST reference, Specifying the range header for Blob service operations.

`bytes=a-b` and `bytes=a-` are ranges. A read ignores any other text, a write rejects it.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from lazulite.blob.versions import OPEN_RANGE_SINCE
from lazulite.protocol.errors import ServiceError, invalid_header, missing_header

PAGE_BYTES = 512
_RANGE = re.compile(r"bytes=([0-9]{1,19})-([0-9]{0,19})", re.ASCII)


class ByteRange(NamedTuple):
    """A range as a request names it."""

    start: int
    stop: int | None = None
    """The offset behind the last byte; None: the range ends where the blob does."""

    def within(self, length: int) -> tuple[int, int]:
        """Return the first offset, and the one behind the last, in a blob of that length.

        Raises:
            ServiceError: `InvalidRange`, with the length in its header `Content-Range`; no byte is in the range.
        """
        if self.start >= length:
            error = ServiceError("InvalidRange")
            error.headers = [("Content-Range", f"bytes */{length}")]
            raise error
        return self.start, length if self.stop is None else min(self.stop, length)


def read_range(headers: Mapping[str, str], version: str) -> ByteRange | None:
    """Return the range of a read; None for the whole blob. `x-ms-range` counts before `Range`."""
    found = _parse(headers.get("x-ms-range") or headers.get("range") or "")
    return None if found is not None and found.stop is None and version < OPEN_RANGE_SINCE else found


def require_page_range(headers: Mapping[str, str]) -> tuple[int, int]:
    """Return the first offset of a range of whole pages, and the one behind its last byte.

    Raises:
        ServiceError: `MissingRequiredHeader`, `InvalidHeaderValue`.
    """
    name = "x-ms-range" if headers.get("x-ms-range") else "range"
    text = headers.get(name)
    if not text:
        raise missing_header("x-ms-range")
    found = _parse(text)
    if found is None or found.stop is None or found.start % PAGE_BYTES or found.stop % PAGE_BYTES:
        raise invalid_header(name, text)
    return found.start, found.stop


def read_source_range(headers: Mapping[str, str]) -> ByteRange | None:
    """Return the range of a copy's source; None for the whole source.

    Raises:
        ServiceError: `InvalidHeaderValue`.
    """
    name = "x-ms-source-range"
    text = headers.get(name)
    if not text:
        return None
    found = _parse(text)
    if found is None:
        raise invalid_header(name, text)
    return found


def _parse(text: str) -> ByteRange | None:
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    start, stop = int(match[1]), int(match[2]) + 1 if match[2] else None
    return None if stop is not None and stop <= start else ByteRange(start, stop)
