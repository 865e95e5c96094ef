"""Lines of `$logs` blobs, read by their grammar: versions 1.0 and 2.0, of this server or of Azure.

Invariants: reading a line takes time linear in its length. A line that is not of the grammar is a `ValueError`, never
another exception, and never a line with shifted fields. Fields that a later version may append are kept as one text.

Source: Storage Analytics Log Format; fields 1 to 30 and 31 to 38 of version 2.0. The last-modified time is the one
field with dates that has no quotes.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from html.entities import name2codepoint
from typing import NamedTuple

LINE_BYTES_MAX = 1 << 20
"""More than any line has: a URL, keys and fields of a request within the bounds of its head."""

_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,7})?Z)"
_MODIFIED = r"((?:[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT)?)"
_PLAIN = r'([^;"\n]*+)'
_QUOTED = r'((?:"[^"\n]*+")?)'
_INTEGER = r"(\d{1,19})"
_SIZE = r"(\d{0,19})"
"""Empty, if the request failed before anything was counted."""
_HTTP_STATUS = r"(\d{3}|Unknown|)"

_COMMON = (
    *(_TIME, _PLAIN, _PLAIN, _HTTP_STATUS, _INTEGER, _INTEGER),
    *(_PLAIN, _PLAIN, _PLAIN, _PLAIN, _QUOTED, _QUOTED),
    *(_PLAIN, _INTEGER, _PLAIN, _PLAIN),
    *(_SIZE, _SIZE, _SIZE, _SIZE, _SIZE),
    *(_QUOTED, _QUOTED, _QUOTED, _MODIFIED, _QUOTED, _QUOTED, _QUOTED, _QUOTED),
)
"""The fields 2 to 30, which both versions have."""
_IDENTITY = (_QUOTED,) * 8
"""The fields 31 to 38."""
_LATER = r"((?:;[^\n]*)?)"

_FORMS = {
    "1.0": re.compile(";".join(("1\\.0", *_COMMON)) + _LATER, re.ASCII),
    "2.0": re.compile(";".join(("2\\.0", *_COMMON, *_IDENTITY)) + _LATER, re.ASCII),
}
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6})|([A-Za-z]{2,8}));", re.ASCII)


class LogLine(NamedTuple):
    """One line: an operation of a request. Texts are decoded; an empty field is "", and None for a number."""

    version: str
    """`1.0` or `2.0`."""
    start: datetime
    """When the request came, in UTC, to the microsecond."""
    operation: str
    status: str
    http_status: int | None
    """None: the request was interrupted."""
    end_to_end_ms: int
    server_ms: int
    authentication: str
    requester: str
    account: str
    service: str
    """`blob`, `table` or `queue`."""
    url: str
    object_key: str
    """What the request was about: `/account/container/blob`, `/account/table/PartitionKey/RowKey`."""
    request_id: str
    number: int
    """The lines of one request count from 0."""
    client: str
    """The address, usually with its port."""
    request_version: str
    request_header_bytes: int | None
    request_bytes: int | None
    response_header_bytes: int | None
    response_bytes: int | None
    content_length: int | None
    request_md5: str
    server_md5: str
    etag: str
    last_modified: str
    """As written, such as `Tuesday, 25-Jun-19 14:56:54 GMT`."""
    conditions: str
    user_agent: str
    referrer: str
    client_request_id: str
    identity: tuple[str, ...] = ()
    """The fields 31 to 38 of version 2.0: of the user, its token and its authorization."""
    later: str = ""
    """What follows the last known field, with its semicolon."""

    @property
    def is_failed(self) -> bool:
        """Whether the request did not succeed."""
        return not self.status.endswith("Success")


_READERS: dict[str, Callable[[str], object]] = {
    _TIME: datetime.fromisoformat,
    _INTEGER: int,
    _SIZE: lambda text: int(text) if text else None,
    _HTTP_STATUS: lambda text: int(text) if text.isdigit() else None,
    _QUOTED: lambda text: decode(text[1:-1]),
    _PLAIN: str,
    _MODIFIED: str,
}


def read_line(text: str) -> LogLine:
    """Return a line, given without its line feed.

    Raises:
        ValueError: it has no known version, or breaks its grammar.
    """
    form = _FORMS.get(text[:3])
    if form is None:
        raise ValueError("no line of a known version")
    match = form.fullmatch(text)
    if match is None:
        raise ValueError("a line that is not of the grammar")
    *fields, later = match.groups()
    values = [_READERS[kind](field) for kind, field in zip(_COMMON, fields, strict=False)]
    identity = tuple(decode(field[1:-1]) for field in fields[len(_COMMON) :])
    return LogLine(text[:3], *values, identity, later)  # type: ignore[arg-type,call-arg]  # a reader for each


def decode(text: str) -> str:
    """Return a text with its HTML character references decoded, once. A reference to no character stays as it is."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    if name is not None:
        number = name2codepoint.get(name, 39 if name == "apos" else 0)
    else:
        number = int(decimal) if decimal else int(hexadecimal, 16)
    is_character = 0 < number < 0x110000 and not 0xD800 <= number < 0xE000
    return chr(number) if is_character else reference[0]


def split_lines(pieces: Iterable[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of a blob without their line feeds, in memory for one line and one piece.

    Args:
        pieces: of the blob, in order.

    Yields:
        A line; None in place of one that is longer than `LINE_BYTES_MAX`.
    """
    rest, is_long = b"", False
    for piece in pieces:
        *whole, last = piece.split(b"\n")
        for line in whole:
            yield None if is_long or len(rest) + len(line) > LINE_BYTES_MAX else rest + line
            rest, is_long = b"", False
        rest += last
        if len(rest) > LINE_BYTES_MAX:
            rest, is_long = b"", True
    if rest or is_long:
        yield None if is_long else rest


def prefixes(since: datetime, until: datetime) -> Iterator[str]:
    """Yield what the names of the blobs of a time begin with, behind the service: the first day's hours, then days.

    A blob's hour is the one in which its requests completed; so none that began since then is in an earlier hour.

    Args:
        since: the first instant, in UTC.
        until: the last one.
    """
    hour, day = since.replace(minute=0, second=0, microsecond=0), since.date()
    while hour <= until and hour.date() == day:
        yield hour.strftime("%Y/%m/%d/%H")
        hour += timedelta(hours=1)
    while (day := day + timedelta(days=1)) <= until.date():
        yield day.strftime("%Y/%m/%d/")
