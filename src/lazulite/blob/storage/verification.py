"""The space of the containers in the registry: how `lazulite check` and copies read it and the spaces of containers."""

from collections.abc import Mapping

from lazulite.blob.model.blob import read_blob
from lazulite.blob.model.block import read_blocks
from lazulite.blob.model.ledger import read_ledger
from lazulite.blob.model.pages import is_segment, read_segment
from lazulite.blob.model.references import contents_of_row
from lazulite.blob.model.rows import CURRENT, LEDGER, LIST, SNAPSHOT, UPLOAD, VERSION
from lazulite.blob.resource import is_addressable
from lazulite.blob.storage.catalog import Container
from lazulite.blob.storage.tag_index import verify_tag_row
from lazulite.engine.content.contract import ContentId
from lazulite.engine.contract import Key
from lazulite.records.spaces import CONTAINERS, CatalogFormat, ReportNouns, Space

_READERS = {
    LEDGER: read_ledger,
    CURRENT: read_blob,
    SNAPSHOT: read_blob,
    VERSION: read_blob,
    UPLOAD: read_blocks,
    LIST: read_blocks,
}


def _read_container(row: str, value: bytes) -> tuple[int, str]:
    container = Container.from_bytes(value)
    if container.row != row:
        raise ValueError(f"container {row} is called {container.name}")
    return container.space, row


def _verify_row(key: Key, value: bytes, _: int) -> None:
    kind = key[1][:1]
    if key[0].startswith("\0"):
        verify_tag_row(key, value)
        return
    if kind not in _READERS:
        raise ValueError("there are no such rows")
    if kind == LIST and is_segment(value):
        read_segment(value)
    else:
        _READERS[kind](value)


def _is_blob(key: Key) -> bool:
    return key[1] == CURRENT and not key[0].startswith("\0")


def _unreachable(container: str, key: Key) -> str:
    """Return the name of a blob that no path names. A deleted container has its version behind its name."""
    name = container.removeprefix("~").partition("/")[0]
    return "" if key[0].startswith("\0") or is_addressable(name, key[0]) else key[0]


def _contents(space: int, key: Key, value: bytes) -> Mapping[ContentId, int | None]:
    return contents_of_row(space, key[1], value)


CONTAINERS_SPACE = Space(
    number=CONTAINERS,
    owner="blob",
    title="the list of containers",
    watched=True,
    copied=True,
    in_checksum=True,
    catalog=CatalogFormat(
        ReportNouns("container", "containers", "blobs"),
        _read_container,
        _verify_row,
        counted=_is_blob,
        unreachable=_unreachable,
        contents=_contents,
    ),
)
