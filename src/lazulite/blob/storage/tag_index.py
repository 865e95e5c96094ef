"""The index of tags: which blobs of a container have a tag with some value.

The partition of a tag is U+0000 and its name, in the space of the container: it is dropped with the container, and no
blob has such a name. Its rows are the values with the names of blobs.

Invariants: a row stands in the index before a blob has its tag, and while a past version of it may have the tag. It may
stand there for nothing, so what is found is compared with the blob. A row tells when it was written. A commit that
gives a blob its tag rejects a row that is older than `ROW_SECONDS`, and only rows that are much older are removed. So
no row is removed that a commit relies on.
"""

from collections.abc import Mapping

from lazulite.blob.storage.readers import Partition
from lazulite.engine.commit import compare_and_swap, put_rows
from lazulite.engine.contract import Engine, Key
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError

ROW_SECONDS = 600
"""How long a commit may rely on a row that was written for it."""
FIRST_NAME = "\x01"
"""No name of a blob sorts before it, and each partition of the index does."""
_KEPT_TICKS = 6 * ROW_SECONDS * TICKS_PER_SECOND
_TAG = "t"
_BYTES = 8


def tag_partition(tag: str) -> str:
    """Return the partition of a tag."""
    return f"\0{tag}"


def tag_row(value: str, name: str = "") -> str:
    """Return the row of a value and the name of a blob; no name sorts before ""."""
    return f"{_TAG}{value}\0{name}"


def after_value(value: str) -> str:
    """Return what sorts behind all rows of a value, and before those of greater ones."""
    return f"{_TAG}{value}\x01"


def read_tag_row(row: str) -> tuple[str, str]:
    """Return the value and the name of a row."""
    value, _, name = row[1:].partition("\0")
    return value, name


class IndexedTags:
    """Tags that a blob is to get, and the time when their rows were written.

    Args:
        tags: by their names.
        written: in ticks.
    """

    def __init__(self, tags: Mapping[str, str], written: int) -> None:
        self.tags = tuple(tags.items())
        self._written = written

    def check(self, now: int) -> None:
        """Reject a commit that comes too late. Raises `ServerBusy`."""
        if self.tags and now - self._written > ROW_SECONDS * TICKS_PER_SECOND:
            raise ServiceError("ServerBusy")


NOT_INDEXED = IndexedTags({}, 0)
"""The index entries of a blob without tags."""


async def index_tags(engine: Engine, partition: Partition, tags: Mapping[str, str], now: int) -> IndexedTags:
    """Write the rows of tags that a blob is to get.

    Raises:
        EngineError: a row may be missing.
    """
    space, name = partition
    value = now.to_bytes(_BYTES, "big")
    for tag, text in tags.items():
        await engine.commit(space, tag_partition(tag), put_rows({tag_row(text, name): value}))
    return IndexedTags(tags, now)


def is_old(value: bytes, now: int) -> bool:
    """Tell whether a row with this value is so old that no commit relies on it."""
    return now - int.from_bytes(value, "big") >= _KEPT_TICKS


async def remove_row(engine: Engine, space: int, key: Key, value: bytes) -> None:
    """Remove an old row whose blob was found without the tag, unless it was written again. Raises `EngineError`."""
    partition, row = key
    await engine.commit(space, partition, compare_and_swap({row: value}, {row: None}))


def verify_tag_row(key: Key, value: bytes) -> None:
    """Check a row of the index. Raises `ValueError`."""
    if not key[1].startswith(_TAG) or "\0" not in key[1] or len(value) != _BYTES:
        raise ValueError("no row of the index of tags")
