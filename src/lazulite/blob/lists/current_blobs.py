"""The markup of current blobs, from their stored form.

Most blobs of a page differ in few values, and nothing in them needs an escape. For each shape, the markup of one such
blob is made once, by the writer of any blob, and taken apart at these values. All other blobs are left to that writer.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lazulite.blob.lists.blob_list_xml import is_plain, metadata_element
from lazulite.blob.model.blob import Blob, BlobType, ContentHeaders, etag_of, read_blob
from lazulite.protocol.clock import TICKS_PER_SECOND, format_http_date

Write = Callable[[str, Blob], str]
"""Returns the markup of any current blob by its name; "" if it is not shown."""

_USUAL = frozenset(
    ("type", "modified", "created", "length", "headers", "metadata", "content", "list", "blocks", "version")
)
"""The stored fields of a blob whose markup has a shape; no others change what is shown."""
_NO_HEADERS = [""] * len(ContentHeaders._fields)
_SPECIAL = (b"\\", b"&", b"<", b">")
"""Is in the stored form of each text that needs an escape: in JSON, or in the markup."""
_read_list = json.JSONDecoder().decode

_NAME = "name-of-the-shape"
_SAMPLE = Blob(type=BlobType.BLOCK, created=10**17, modified=2 * 10**17, length=123_456_789_123)
"""Gives a shape its values; each of them is found in the markup once, or there is no shape."""
_MD5, _METADATA = "md5-of-the-shape", (("of", "the-shape"),)


class _Shape(NamedTuple):
    """The markup before and between the values of a blob, and behind them; the parts that it lacks are empty."""

    name: str
    created: str
    modified: str
    etag: str
    length: str
    md5: str
    metadata: str
    end: str


_NEW = _Shape(*[""] * len(_Shape._fields))
"""Stands for a shape that was not made yet."""


class CurrentBlobs:
    """Writes the current blobs of one page.

    Args:
        write: writes any blob.
        with_metadata: whether metadata are shown.
    """

    def __init__(self, write: Write, *, with_metadata: bool) -> None:
        self._write = write
        self._with_metadata = with_metadata
        self._shapes: dict[tuple[object, ...], _Shape | None] = {}
        self._dates: dict[int, str] = {}

    def write(self, names: Sequence[str], lines: Sequence[bytes]) -> list[str]:
        """Return the markup of some blobs, given the lines of their stored form; "" for each one that is not shown."""
        stored = b",".join(lines)
        if not is_plain(names) or any(special in stored for special in _SPECIAL):
            return [self._write_one(name, line) for name, line in zip(names, lines, strict=True)]
        found = _read_list(f"[{stored.decode()}]")
        return [
            self._write_found(name, fields) or self._write(name, read_blob(line))
            for name, fields, line in zip(names, found, lines, strict=True)
        ]

    def _write_one(self, name: str, line: bytes) -> str:
        """Return the markup of one blob among some of which one has no shape."""
        is_simple = is_plain([name]) and not any(special in line for special in _SPECIAL)
        text = self._write_found(name, _read_list(line.decode())) if is_simple else ""
        return text or self._write(name, read_blob(line))

    def _write_found(self, name: str, fields: Mapping[str, Any]) -> str:
        """Return the markup of a blob that has a shape; "" for another one."""
        kind, encoding, language, md5, cache, disposition = fields.get("headers", _NO_HEADERS)
        key = (*fields, fields["type"], kind, encoding, language, md5 == "", cache, disposition)
        shape = self._shapes.get(key, _NEW)
        if shape is _NEW:
            shape = self._shapes[key] = self._shape_of(fields)
        if shape is None:
            return ""
        name_at, created_at, modified_at, etag_at, length_at, md5_at, metadata_at, end = shape
        modified, created = fields["modified"], fields["created"]
        changed = self._date(modified)
        made = changed if created == modified else self._date(created)
        return (
            f"{name_at}{name}{created_at}{made}{modified_at}{changed}{etag_at}{etag_of(modified)}"
            f"{length_at}{fields.get('length', 0)}{md5_at}{md5}"
            f"{metadata_at}{metadata_element(fields['metadata']) if metadata_at else ''}{end}"
        )

    def _date(self, ticks: int) -> str:
        """Return a date of headers; a page has many of the same second."""
        second = ticks // TICKS_PER_SECOND
        text = self._dates.get(second)
        if text is None:
            text = self._dates[second] = format_http_date(ticks)
        return text

    def _shape_of(self, fields: Mapping[str, Any]) -> _Shape | None:
        """Return the shape of a blob; None if it has none."""
        type_, headers = BlobType(fields["type"]), ContentHeaders(*fields.get("headers", _NO_HEADERS))
        if type_ is BlobType.PAGE or not fields.keys() <= _USUAL:
            return None
        metadata = _METADATA if self._with_metadata and "metadata" in fields else ()
        headers = headers._replace(md5=_MD5 if headers.md5 else "")
        rest = self._write(_NAME, _SAMPLE._replace(type=type_, headers=headers, metadata=metadata))
        parts = []
        for text in (
            _NAME,
            format_http_date(_SAMPLE.created),
            format_http_date(_SAMPLE.modified),
            _SAMPLE.etag,
            str(_SAMPLE.length),
            headers.md5,
            metadata_element(metadata),
        ):
            if text and rest.count(text) != 1:
                return None
            part, _, rest = rest.partition(text) if text else ("", "", rest)
            parts.append(part)
        return _Shape._make([*parts, rest])
