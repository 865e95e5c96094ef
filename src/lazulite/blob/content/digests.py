"""Checksums of content, MD5 and CRC-64: what each operation does with those of its request. Source: reference §36.5.

`RULES` is the table of the operations; they read their rows, and the documentation and the tests have the same ones.

Invariant: a checksum that is compared is computed from the bytes that are stored.
"""

import hashlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from lazulite.blob.content.crc64 import SegmentedCrc64, crc64, crc64_to_bytes
from lazulite.blob.versions import BOTH_DIGESTS_SINCE, COMPUTED_MD5_SINCE, CRC64_SINCE
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.message import Window, pieces
from lazulite.protocol.steps import Steps


class Algorithm(NamedTuple):
    """A kind of checksum."""

    header: str
    """The header of responses."""
    size: int
    """In bytes."""
    since: str
    """The first version that has it."""
    mismatch: str
    """The code for content with another checksum than the client sent."""
    details: tuple[str, str]
    """The elements of that rejection: the checksum that was sent, and the computed one."""


MD5 = Algorithm("Content-MD5", 16, "", "Md5Mismatch", ("UserSpecifiedMd5", "ServerCalculatedMd5"))
CRC64 = Algorithm("x-ms-content-crc64", 8, CRC64_SINCE, "Crc64Mismatch", ("UserSpecifiedCrc", "ServerCalculatedCrc"))
Algorithms = tuple[Algorithm, ...]


class ChecksumHeader(NamedTuple):
    """A request header that has a checksum of the content."""

    name: str
    """In lower case."""
    algorithm: Algorithm
    is_shown: bool = True
    """Whether the rejection of other content has both checksums (§44)."""


CONTENT_MD5 = ChecksumHeader("content-md5", MD5)
CONTENT_CRC64 = ChecksumHeader("x-ms-content-crc64", CRC64)
BLOB_MD5 = ChecksumHeader("x-ms-blob-content-md5", MD5)
SOURCE_MD5 = ChecksumHeader("x-ms-source-content-md5", MD5, is_shown=False)
SOURCE_CRC64 = ChecksumHeader("x-ms-source-content-crc64", CRC64, is_shown=False)
HEADERS = (CONTENT_MD5, CONTENT_CRC64, BLOB_MD5, SOURCE_MD5, SOURCE_CRC64)
"""All of them."""
_OWN, _SOURCE = (CONTENT_MD5, CONTENT_CRC64), (SOURCE_MD5, SOURCE_CRC64)
"""The checksums of the content, and of the content at the URL of a source. A request has one header of each pair."""

RANGE_HEADERS = {"x-ms-range-get-content-md5": MD5, "x-ms-range-get-content-crc64": CRC64}
"""The headers by which Get Blob is asked for the checksum of a range."""


class Stored(Enum):
    """The MD5 that a blob has after an operation."""

    NOTHING = "–"
    """The operation has no blob."""
    KEPT = "unchanged"
    SENT = "sent"
    """`x-ms-blob-content-md5`, which is not compared; without it, none."""
    COPIED = "of the source"
    COMPUTED = "computed"
    """Before `COMPUTED_MD5_SINCE` only if the request had an MD5."""


class Answer(NamedTuple):
    """The checksums of a response from a version on."""

    since: str
    with_md5: Algorithms
    """If one that the request sent is an MD5."""
    without: Algorithms
    """If none is."""


_NONE = (Answer("", (), ()),)
_BOTH = Answer(BOTH_DIGESTS_SINCE, (MD5, CRC64), (MD5, CRC64))
_OF_PUT_BLOB = (
    Answer(CRC64_SINCE, (MD5, CRC64), (MD5, CRC64)),
    Answer(COMPUTED_MD5_SINCE, (MD5,), (MD5,)),
    Answer("", (MD5,), ()),
)
_AS_SENT = (_BOTH, Answer(CRC64_SINCE, (MD5,), (CRC64,)), Answer("", (MD5,), (MD5,)))
_ONE = (_BOTH, Answer(CRC64_SINCE, (CRC64,), (CRC64,)), Answer("", (MD5,), (MD5,)))


class Rule(NamedTuple):
    """What an operation does with checksums."""

    operation: str
    compared: tuple[ChecksumHeader, ...]
    """The headers of the request that are compared with the content."""
    stored: Stored
    answers: tuple[Answer, ...]
    """The checksums of its response, newest first."""
    takes_structure: bool = False
    """Whether it takes a structured body."""
    from_url: "Rule | None" = None
    """The rule of its form with the URL of a source, of whose bytes the checksums are; None: it has no such form."""


def _with_url(rule: Rule, name: str, answers: tuple[Answer, ...] | None = None) -> Rule:
    from_url = rule._replace(
        operation=name, compared=(*rule.compared, *_SOURCE), answers=answers or rule.answers, takes_structure=False
    )
    return rule._replace(from_url=from_url)


PUT_BLOB = _with_url(
    Rule("Put Blob", (BLOB_MD5, *_OWN), Stored.COMPUTED, _OF_PUT_BLOB, takes_structure=True), "Put Blob From URL", _ONE
)
PUT_EMPTY_BLOB = Rule("Put Blob of an append or page blob", _OWN, Stored.SENT, _NONE)
PUT_BLOCK = _with_url(Rule("Put Block", _OWN, Stored.NOTHING, _AS_SENT, takes_structure=True), "Put Block From URL")
PUT_BLOCK_LIST = Rule("Put Block List", _OWN, Stored.SENT, _ONE, takes_structure=True)
APPEND_BLOCK = _with_url(
    Rule("Append Block", _OWN, Stored.KEPT, _AS_SENT, takes_structure=True), "Append Block From URL"
)
PUT_PAGE = _with_url(Rule("Put Page", _OWN, Stored.KEPT, _AS_SENT, takes_structure=True), "Put Page From URL")
CLEAR_PAGES = Rule("Put Page that clears", _OWN, Stored.KEPT, _NONE)
COPY_BLOB = Rule("Copy Blob", (), Stored.COPIED, _NONE)
COPY_BLOB_FROM_URL = Rule("Copy Blob From URL", (*_OWN, *_SOURCE), Stored.COPIED, _ONE)
"""Copy Blob with `x-ms-requires-sync: true`."""
SET_BLOB_PROPERTIES = Rule("Set Blob Properties", (CONTENT_MD5,), Stored.SENT, _NONE)
SET_BLOB_TAGS = Rule("Set Blob Tags", _OWN, Stored.KEPT, _NONE)
OTHERS = Rule("any other", (CONTENT_MD5,), Stored.KEPT, _NONE)
"""The rule of all services. The kernel compares the header with the body (`Route.compares_checksums`)."""
_WRITES = (PUT_BLOB, PUT_EMPTY_BLOB, PUT_BLOCK, PUT_BLOCK_LIST, APPEND_BLOCK, PUT_PAGE, CLEAR_PAGES)
_COPIES = (COPY_BLOB, COPY_BLOB_FROM_URL)
RULES = (
    *(each for rule in _WRITES for each in (rule, rule.from_url) if each is not None),
    *(*_COPIES, SET_BLOB_PROPERTIES, SET_BLOB_TAGS, OTHERS),
)
"""The rules of all operations."""


class Sent(NamedTuple):
    """A checksum that a client sent to be compared."""

    header: ChecksumHeader
    value: bytes


def read_sent(rule: Rule, headers: Mapping[str, str], version: str) -> Sequence[Sent]:
    """Return the checksums of a request that are to be compared. `BLOB_MD5` takes the place of `CONTENT_MD5` (§44).

    Args:
        rule: of the operation.
        headers: of the request, by their names in lower case.
        version: of the request.

    Raises:
        ServiceError: `BothCrc64AndMd5HeaderPresent`, `InvalidMd5`, `InvalidHeaderValue`.
    """
    found = [each for each in rule.compared if each.name in headers and version >= each.algorithm.since]
    if not found:
        return ()
    if any(set(pair) <= set(found) for pair in (_OWN, _SOURCE)):
        raise ServiceError("BothCrc64AndMd5HeaderPresent")
    if BLOB_MD5 in found:
        found = [each for each in found if each is not CONTENT_MD5]
    return [Sent(each, _read(each, headers[each.name])) for each in found]


def _read(header: ChecksumHeader, text: str) -> bytes:
    try:
        value = a2b_base64(text, strict_mode=True)
    except ValueError:
        value = b""
    if len(value) == header.algorithm.size:
        return value
    raise ServiceError("InvalidMd5") if header.algorithm is MD5 else invalid_header(header.name, text)


class Digests:
    """The checksums of content that comes in chunks.

    Args:
        sent: by the client, to be compared.
        answered: those of the response.
        also: those that are computed for another use.

    Attributes:
        length: the bytes so far.
    """

    def __init__(self, sent: Sequence[Sent] = (), answered: Algorithms = (), also: Algorithms = ()) -> None:
        computed = answered + also
        if sent:
            computed += tuple(each.header.algorithm for each in sent)
        self._sent = sent
        self._answered = answered
        self._md5 = hashlib.md5(usedforsecurity=False) if MD5 in computed else None
        self._crc64 = 0 if CRC64 in computed else None
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

    def value(self, algorithm: Algorithm) -> bytes:
        """Return a checksum of the bytes so far; empty if it is not computed."""
        if algorithm is MD5:
            return b"" if self._md5 is None else self._md5.digest()
        if self._crc64 is None:
            return b""
        return crc64_to_bytes(self._crc64 if self._of_reader is None else self._of_reader.whole)

    @property
    def md5(self) -> str:
        """The MD5 so far, in base64; "" if it is not computed."""
        return _base64(self.value(MD5))

    def check(self) -> None:
        """Reject content that is not what the client sent.

        Raises:
            ServiceError: `Md5Mismatch`, `Crc64Mismatch`.
        """
        for header, sent in self._sent:
            computed = self.value(header.algorithm)
            if computed != sent:
                raise _mismatch(header.algorithm, sent, computed, is_shown=header.is_shown)

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of the response."""
        return [(each.header, _base64(self.value(each))) for each in self._answered]


def take_in(digests: Digests, content: bytes) -> Steps[None]:
    """Compute the checksums of content in steps, and compare them. Raises as `Digests.check`."""
    for piece in pieces(content):
        digests.update(piece)
        yield
    digests.check()


def digests_of_request(rule: Rule, headers: Mapping[str, str], version: str) -> Digests:
    """Return the checksums to be computed of the content of a request. Raises as `read_sent`.

    Args:
        rule: of the operation.
        headers: of the request, by their names in lower case.
        version: of the request.
    """
    sent = read_sent(rule, headers, version)
    answer = _answer_of(rule, version)
    has_md5 = bool(sent) and any(each.header.algorithm is MD5 for each in sent)
    stores = rule.stored is Stored.COMPUTED and version >= COMPUTED_MD5_SINCE
    return Digests(sent, answer.with_md5 if has_md5 else answer.without, (MD5,) if stores else ())


def _answer_of(rule: Rule, version: str) -> Answer:
    for answer in rule.answers:
        if version >= answer.since:
            return answer
    raise AssertionError("the last answer is of all versions")


def crc64_mismatch(sent: int, computed: int) -> ServiceError:
    """Return the rejection of content with another CRC-64 than the client sent."""
    return _mismatch(CRC64, crc64_to_bytes(sent), crc64_to_bytes(computed), is_shown=True)


def _mismatch(algorithm: Algorithm, sent: bytes, computed: bytes, *, is_shown: bool) -> ServiceError:
    details: Iterator[tuple[str, str]] = zip(algorithm.details, (_base64(sent), _base64(computed)), strict=True)
    return ServiceError(algorithm.mismatch, details=list(details) if is_shown else [])


def _base64(value: bytes) -> str:
    return b2a_base64(value, newline=False).decode("ascii")
