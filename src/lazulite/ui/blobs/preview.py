"""What a page shows of a content: text, JSON, CSV, an image, the head of a Parquet file.

Invariants: the kind follows from the content, and the stated type and the name decide among texts alone. An image is
one of four formats that no browser runs anything of. Each preview is bounded, and says when it is cut.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import RecordBatch

TEXT_BYTES = 256 * 1024
"""The beginning of a content that a preview is made of."""
IMAGE_BYTES_MAX = 16 * 1024 * 1024
PARQUET_BYTES_MAX = 16 * 1024 * 1024
ROWS_MAX = 100
COLUMNS_MAX = 100
CELL_CHARACTERS = 300
_GROUP_BYTES_MAX = 64 * 1024 * 1024
_INDENTED_CHARACTERS_MAX = 1024 * 1024
_HEX_BYTES = 256
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_COLON = ":"
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class PreviewKind(StrEnum):
    """What a preview shows."""

    NONE = "none"
    """There is no content."""
    TEXT = "text"
    TABLE = "table"
    IMAGE = "image"
    BINARY = "binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What is shown of a content."""

    kind: PreviewKind
    note: str = ""
    """What it is, and what it leaves out."""
    text: str = ""
    """The text, or the first bytes of a binary in hexadecimal digits."""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def image_type(data: bytes) -> str:
    """Return the type of an image by its first bytes; "" if it is not one that is shown."""
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return name
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def is_parquet(data: bytes) -> bool:
    """Tell whether a content begins as a Parquet file does."""
    return data.startswith(b"PAR1")


def preview(data: bytes, length: int, name: str, media_type: str) -> Preview:
    """Return what is shown of a content.

    Args:
        data: its first `TEXT_BYTES`.
        length: of the whole content.
        name: of the blob, whose end tells the format.
        media_type: that its owner states.
    """
    if not length:
        return Preview(kind=PreviewKind.NONE, note="The blob is empty: it has 0 bytes.")
    image = image_type(data)
    if image:
        is_small = length <= IMAGE_BYTES_MAX
        note = image if is_small else f"{image}, too large to be shown"
        return Preview(kind=PreviewKind.IMAGE if is_small else PreviewKind.BINARY, note=note)
    text = _text(data, is_cut=len(data) < length)
    if text is None:
        note = f"No text: the first {min(_HEX_BYTES, len(data))} bytes in hexadecimal digits."
        return Preview(kind=PreviewKind.BINARY, note=note, text=_hexadecimal(data[:_HEX_BYTES]))
    cut = f"The first {len(data):,} of {length:,} bytes. " if len(data) < length else ""
    if media_type.partition(";")[0] == "text/csv" or name.lower().endswith(".csv"):
        table = _csv(text, cut)
        if table is not None:
            return table
    indented = None if cut else _indented(text)
    if indented is not None:
        return Preview(kind=PreviewKind.TEXT, note="JSON, indented; numbers as they are stored.", text=indented)
    return Preview(kind=PreviewKind.TEXT, note=cut or "The whole text.", text=text)


def parquet_preview(data: bytes) -> Preview | None:
    """Return the first rows of a whole Parquet file; None without the library for it.

    It blocks, so it runs in a thread.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - of an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        return None
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        columns = file.schema_arrow.names[:COLUMNS_MAX]
        if file.num_row_groups and file.metadata.row_group(0).total_byte_size > _GROUP_BYTES_MAX:
            return Preview(kind=PreviewKind.BINARY, note="Parquet, whose first row group is too large to be shown.")
        rows = _rows(file.iter_batches(batch_size=1, row_groups=[0], columns=columns)) if columns else []
    except (pa.ArrowException, OSError, IndexError):
        return Preview(kind=PreviewKind.BINARY, note="It begins like a Parquet file, and is none that can be read.")
    note = f"Parquet: the first {len(rows):,} of {file.metadata.num_rows:,} rows."
    return Preview(kind=PreviewKind.TABLE, note=note, columns=columns, rows=rows)


def _rows(batches: "Iterable[RecordBatch]") -> Sequence[Sequence[str]]:
    """Return the first rows, which come one by one: a long value that is stored once may be in each of them."""
    rows: list[Sequence[str]] = []
    size = 0
    for batch in islice(batches, ROWS_MAX):
        size += batch.nbytes
        if size > _GROUP_BYTES_MAX:
            break
        rows += [[_cell(each) for each in row.values()] for row in batch.to_pylist()]
    return rows


def _text(data: bytes, *, is_cut: bool) -> str | None:
    """Return a text in UTF-8; None for another content."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if is_cut and len(data) - error.start < 4:  # The cut is inside of a character.
            return data[: error.start].decode("utf-8-sig")
        return None


def _hexadecimal(data: bytes) -> str:
    return "\n".join(f"{at:04x}  {data[at : at + 16].hex(' ')}" for at in range(0, len(data), 16))


def _csv(text: str, cut: str) -> Preview | None:
    """Return the first rows of a CSV; None if it is not one."""
    try:
        rows = [
            [_cell(cell) for cell in row[:COLUMNS_MAX]]
            for row in islice(csv.reader(io.StringIO(text, newline="")), ROWS_MAX + 1)
        ]
    except csv.Error:
        return None
    if not rows:
        return None
    note = f"CSV: the first {len(rows) - 1} rows. {cut}".strip()
    return Preview(kind=PreviewKind.TABLE, note=note, columns=rows[0], rows=rows[1:])


def _cell(value: object) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= CELL_CHARACTERS else f"{text[:CELL_CHARACTERS]}…"


def _indented(text: str) -> str | None:
    """Return an indented JSON document, with its tokens as written; None if it is not JSON, or would be too long."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    parts: list[str] = []
    size = depth = 0
    before = ""
    for token in _TOKEN.findall(text):
        depth -= token in ("]", "}")
        breaks = before in ("[", "{", ",") and not (before in ("[", "{") and token in ("]", "}"))
        part = f"\n{'  ' * depth}{token}" if breaks or (token in ("]", "}") and before not in ("[", "{")) else token
        part = f"{part} " if token == _COLON else part
        depth += token in ("[", "{")
        parts.append(part)
        size += len(part)
        if size > _INDENTED_CHARACTERS_MAX:
            return None
        before = token
    return "".join(parts)
