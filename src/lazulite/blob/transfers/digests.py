"""Digests of content on its way, MD5 and CRC-64: what a client sent, and what a response has.

Invariant: a response to a write has the digests that were computed, and a digest that was sent is computed.
"""

import hashlib
from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping
from typing import NamedTuple

from lazulite.blob.transfers.crc64 import SegmentedCrc64, crc64, read_crc64, write_crc64
from lazulite.blob.versions import BOTH_DIGESTS_SINCE, CRC64_SINCE
from lazulite.protocol.body import Window, pieces
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.header_errors import invalid_header
from lazulite.protocol.steps import Steps

MD5_HEADER, CRC64_HEADER = "Content-MD5", "x-ms-content-crc64"
OWN_HEADERS = MD5_HEADER, CRC64_HEADER
SOURCE_HEADERS = "x-ms-source-content-md5", "x-ms-source-content-crc64"
"""Of the source of a copy."""
_MD5_BYTES = 16


class SentDigests(NamedTuple):
    """The digests that a client sent."""

    md5: bytes | None = None
    crc64: int | None = None


def read_sent_digests(headers: Mapping[str, str], version: str, names: tuple[str, str] = OWN_HEADERS) -> SentDigests:
    """Return the digests of a request.

    Args:
        headers: of the request, by their names in lower case.
        version: of the request.
        names: of the headers: `SOURCE_HEADERS` for the source of a copy.

    Raises:
        ServiceError: `BothCrc64AndMd5HeaderPresent`, `InvalidMd5`, `InvalidHeaderValue`.
    """
    md5_name, crc64_name = names
    md5 = headers.get(md5_name.lower())
    crc = headers.get(crc64_name) if version >= CRC64_SINCE else None
    if md5 is not None and crc is not None:
        raise ServiceError("BothCrc64AndMd5HeaderPresent")
    try:
        return SentDigests(None if md5 is None else _read_md5(md5), None if crc is None else read_crc64(crc))
    except ValueError:
        if md5 is not None:
            raise ServiceError("InvalidMd5") from None
        raise invalid_header(crc64_name, crc or "") from None


def _read_md5(text: str) -> bytes:
    try:
        digest = a2b_base64(text, strict_mode=True)
    except Base64Error as error:
        raise ValueError("not base64") from error
    if len(digest) != _MD5_BYTES:
        raise ValueError("not 16 bytes")
    return digest


class Digests:
    """The digests of content that comes in chunks.

    Args:
        sent: by the client; they are computed in any case.
        md5: whether to compute the MD5.
        crc64: whether to compute the CRC-64.

    Attributes:
        length: the bytes so far.
    """

    def __init__(self, sent: SentDigests = SentDigests(), *, md5: bool = False, crc64: bool = False) -> None:  # noqa: B008
        self._sent = sent
        self._md5 = hashlib.md5(usedforsecurity=False) if md5 or sent.md5 is not None else None
        self._crc64 = 0 if crc64 or sent.crc64 is not None else None
        self._of_reader: SegmentedCrc64 | None = None
        self.length = 0

    def take_crc64(self, of_reader: SegmentedCrc64) -> None:
        """Take the CRC-64 of the reader of a structured body, which computes it in any case, before the first byte."""
        self._of_reader = of_reader

    def update(self, chunk: Window) -> None:
        """Take in the next bytes."""
        self.length += len(chunk)
        if self._md5 is not None:
            self._md5.update(chunk)
        if self._crc64 is not None and self._of_reader is None:
            self._crc64 = crc64(chunk, self._crc64)

    @property
    def md5(self) -> bytes | None:
        """The MD5 so far; None: it is not computed."""
        return None if self._md5 is None else self._md5.digest()

    @property
    def crc64(self) -> int | None:
        """The CRC-64 so far; None: it is not computed."""
        return self._crc64 if self._crc64 is None or self._of_reader is None else self._of_reader.whole

    def check(self) -> None:
        """Reject content that is not what the client sent.

        Raises:
            ServiceError: `Md5Mismatch`, `Crc64Mismatch`.
        """
        sent, md5, crc = self._sent, self.md5, self.crc64
        if sent.md5 is not None and md5 is not None and sent.md5 != md5:
            details = [("UserSpecifiedMd5", _base64(sent.md5)), ("ServerCalculatedMd5", _base64(md5))]
            raise ServiceError("Md5Mismatch", details=details)
        if sent.crc64 is not None and crc is not None and sent.crc64 != crc:
            raise crc64_mismatch(sent.crc64, crc)

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of a response, one for each digest that was computed."""
        md5, crc = self.md5, self.crc64
        found = [] if md5 is None else [(MD5_HEADER, _base64(md5))]
        return found if crc is None else [*found, (CRC64_HEADER, write_crc64(crc))]


def take_in(digests: Digests, content: bytes) -> Steps[None]:
    """Compute the digests of content in steps, and check them. Raises as `Digests.check`."""
    for piece in pieces(content):
        digests.update(piece)
        yield
    digests.check()


def crc64_mismatch(sent: int, computed: int) -> ServiceError:
    """Return the rejection of content with another CRC-64 than the client sent."""
    details = [("UserSpecifiedCrc", write_crc64(sent)), ("ServerCalculatedCrc", write_crc64(computed))]
    return ServiceError("Crc64Mismatch", details=details)


def digests_of_write(sent: SentDigests, version: str, *, both: bool) -> Digests:
    """Return the digests that the response to a write has.

    Args:
        sent: by the client.
        version: of the request.
        both: whether the operation returns both in all versions that have both, as Put Blob does.
    """
    if version < CRC64_SINCE:
        return Digests(sent, md5=True)
    if both or version >= BOTH_DIGESTS_SINCE:
        return Digests(sent, md5=True, crc64=True)
    return Digests(sent, crc64=sent.md5 is None)


def _base64(digest: bytes) -> str:
    return b64encode(digest).decode("ascii")
