"""The contents to which a row of a blob's partition refers."""

from collections.abc import Mapping

from lazulite.blob.model.blob import read_blob
from lazulite.blob.model.block import read_blocks
from lazulite.blob.model.pages import is_segment, read_segment
from lazulite.blob.model.rows import CURRENT, LIST, SNAPSHOT, UPLOAD, VERSION
from lazulite.engine.content.contract import ContentId


def contents_of_row(space: int, row: str, value: bytes) -> Mapping[ContentId, int | None]:
    """Return the contents to which a row refers, with their lengths; None: the row does not tell.

    Args:
        space: of the container.
        row: the row.
        value: its value.

    Raises:
        ValueError, TypeError, KeyError: it is malformed.
    """
    kind = row[:1]
    if kind in (CURRENT, SNAPSHOT, VERSION):
        blob = read_blob(value)
        return {} if blob.content is None else {ContentId(space, blob.content): blob.length}
    if kind == LIST and is_segment(value):
        return dict.fromkeys(ContentId(space, number) for number in read_segment(value).contents())
    if kind in (UPLOAD, LIST):
        blocks = read_blocks(value).blocks
        return {ContentId(space, block.content): block.length for block in blocks if block.content is not None}
    return {}
