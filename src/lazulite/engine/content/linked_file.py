"""A copy of a content: a second name of its file, and beside it the owner of the copy. Every call here may block.

    {name}         the file, whose footer names the owner of the first content
    {name}.owner   0xFF, the trailer of that footer, the owner of this content in UTF-8, then CRC-32 of all that (4
                   bytes, big endian); of earlier versions the owner and its CRC-32 alone

Invariants: the owner is durable before the name is made. So a name without an owner beside it is no acknowledged copy.
A file that lies under the name of another content is found by its footer: the owner differs, or the length, or of a
copy the trailer.
"""

import contextlib
import errno
import os
import zlib
from collections.abc import Callable, Iterable
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from lazulite.engine.content.content_file import SealedFile, UnsealedFile, open_private, sync_data, write_all
from lazulite.engine.content.contract import Claim, ContentDamagedError, ContentMissingError, ContentUnsealedError
from lazulite.engine.content.footer import TRAILER_BYTES, windows

_CHECKSUM_BYTES = 4
_WITH_TRAILER = b"\xff"
"""What no UTF-8 begins with."""
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
        return _read_copy(path).owner
    except FileNotFoundError:
        with contextlib.closing(SealedFile(path)) as file:
            return file.owner


def open_claimed(path: Path, claim: Claim | None) -> SealedFile:
    """Open the file of a content, and compare it with what a row says of it; None: nothing.

    Raises:
        FileNotFoundError: it is not there.
        ContentDamagedError: it has no valid footer, or is another content's.
        OSError: it cannot be read.
    """
    file = SealedFile(path)
    try:
        if claim is not None:
            _check(file, path, claim)
    except BaseException:
        file.close()
        raise
    return file


def copy_file(sources: Iterable[Path], target: Path, owner: str, open_file: Callable[[], SealedFile]) -> None:
    """Give a sealed file a second name, whose directory remains to be synced; or copy its bytes if that cannot be.

    Args:
        sources: where the file may be; tried in turn.
        target: the new name.
        owner: of the copy.
        open_file: opens the file.

    Raises:
        ContentMissingError: it is nowhere.
        ContentDamagedError: as `open_file`; or its bytes were to be copied, and are damaged.
        OSError: it cannot be copied.
    """
    with contextlib.closing(open_file()) as file:
        _write_owner(owner_path(target), owner, file.trailer)
        for source in sources:
            try:
                os.link(source, target)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in NO_LINK:
                    raise
                owner_path(target).unlink()
                _copy_bytes(file, UnsealedFile(target), owner)
            return
    raise ContentMissingError("there is no such content")


def remove_file(path: Path) -> None:
    """Delete a content's file, and the owner beside it; not durably.

    Raises:
        OSError: it cannot be deleted.
    """
    path.unlink(missing_ok=True)
    owner_path(path).unlink(missing_ok=True)


class _Copy(NamedTuple):
    """What stands beside the file of a copy."""

    owner: str
    trailer: bytes
    """The end of the file's footer; empty if an earlier version made the copy."""


def _check(file: SealedFile, path: Path, claim: Claim) -> None:
    """Reject the file of another content. Raises as `open_claimed`."""
    owner = file.owner
    if owner != claim.partition:
        with contextlib.suppress(FileNotFoundError):
            copy = _read_copy(path)
            owner = copy.owner if copy.trailer in (b"", file.trailer) else ""
    if owner != claim.partition:
        raise ContentDamagedError("the file is that of another content")
    if claim.length is not None and file.length != claim.length:
        raise ContentDamagedError(f"the content has {file.length} bytes, but its row says {claim.length}")


def _read_copy(path: Path) -> _Copy:
    """Read what stands beside the file of a copy. Raises `FileNotFoundError`, and as `read_owner`."""
    data = owner_path(path).read_bytes()
    body = data[:-_CHECKSUM_BYTES]
    if zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") != data[-_CHECKSUM_BYTES:]:
        raise ContentDamagedError("the owner of a content is damaged")
    if not body.startswith(_WITH_TRAILER):
        return _Copy(body.decode(), b"")
    start = len(_WITH_TRAILER) + TRAILER_BYTES
    return _Copy(body[start:].decode(), body[len(_WITH_TRAILER) : start])


def _write_owner(path: Path, owner: str, trailer: bytes) -> None:
    data = _WITH_TRAILER + trailer + owner.encode()
    with FileIO(path, "xb", opener=open_private) as file:
        write_all(file, data + zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big"))
        sync_data(file.fileno())


def _copy_bytes(source: SealedFile, target: UnsealedFile, owner: str) -> None:
    for number in range(windows(source.length)):
        target.append([source.read(number)])
    target.finish(owner)
