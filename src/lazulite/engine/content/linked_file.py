"""A copy of a content: a second name of its file, and beside it the owner of the copy. Every call here may block.

    {name}         the file, whose footer names the owner of the first content
    {name}.owner   the owner of this one: UTF-8, then CRC-32 of that (4 bytes, big endian)

Invariant: the owner is durable before the name is made. So a name without an owner beside it is no acknowledged copy.
"""

import contextlib
import errno
import os
import zlib
from collections.abc import Callable, Iterable
from io import FileIO
from pathlib import Path

from lazulite.engine.content.content_file import DraftFile, SealedFile, open_private, sync_data, write_all
from lazulite.engine.content.contract import ContentDamagedError, ContentMissingError, ContentUnsealedError
from lazulite.engine.content.footer import windows

_CHECKSUM_BYTES = 4
NO_LINK = frozenset({errno.EMLINK, errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EXDEV})
"""The file has too many names already, or the file system has no second names."""


def owner_path(path: Path) -> Path:
    """Return where the owner of a copy stands."""
    return path.with_name(f"{path.name}.owner")


def read_owner(path: Path) -> str:
    """Return the owner of the content whose file is there.

    Raises:
        ContentUnsealedError: the content was never sealed, or its copy was never finished.
        ContentDamagedError: the owner is damaged.
        OSError: it cannot be read.
    """
    if not path.exists():
        raise ContentUnsealedError("a content has an owner only")
    try:
        data = owner_path(path).read_bytes()
    except FileNotFoundError:
        with contextlib.closing(SealedFile(path)) as file:
            return file.owner
    owner = data[:-_CHECKSUM_BYTES]
    if zlib.crc32(owner).to_bytes(_CHECKSUM_BYTES, "big") != data[-_CHECKSUM_BYTES:]:
        raise ContentDamagedError("the owner of a content is damaged")
    return owner.decode()


def copy_file(sources: Iterable[Path], target: Path, owner: str, open_file: Callable[[], SealedFile]) -> None:
    """Give a sealed file a second name, whose directory remains to be synced; or copy its bytes if that cannot be.

    Args:
        sources: where the file may be; tried in turn.
        target: the new name.
        owner: of the copy.
        open_file: opens the file, for its bytes.

    Raises:
        ContentMissingError: it is nowhere.
        ContentDamagedError: its bytes were to be copied, and are damaged.
        OSError: it cannot be copied.
    """
    _write_owner(owner_path(target), owner)
    for source in sources:
        try:
            os.link(source, target)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
            owner_path(target).unlink()
            _copy_bytes(open_file(), DraftFile(target), owner)
        return
    raise ContentMissingError("there is no such content")


def remove_file(path: Path) -> None:
    """Delete a content's file, and the owner beside it; not durably.

    Raises:
        OSError: it cannot be deleted.
    """
    path.unlink(missing_ok=True)
    owner_path(path).unlink(missing_ok=True)


def _write_owner(path: Path, owner: str) -> None:
    data = owner.encode()
    with FileIO(path, "xb", opener=open_private) as file:
        write_all(file, data + zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big"))
        sync_data(file.fileno())


def _copy_bytes(source: SealedFile, target: DraftFile, owner: str) -> None:
    with contextlib.closing(source):
        for number in range(windows(source.length)):
            target.append([source.read(number)])
        target.finish(owner)
