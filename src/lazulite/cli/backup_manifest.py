"""A backup: a directory with a store, the accounts, and `backup.json`, the manifest of all its files.

    backup.json     {"version": 1, "files": {"store/000009.sst": {"bytes": 123, "sha256": "…"}, …}, "sha256": "…"}
    accounts.json   the accounts, if there are any
    store/          a checkpoint
    content/        the contents to which its rows refer, and perhaps others

Invariants:

- A backup is written to a staging directory beside its target and renamed once all of it is synced. It is complete or
  absent.
- Its files have mode 0600 and its directories 0700.
- The manifest lists every file, and its own `sha256` covers the manifest. A change of any byte is found and its file
  named.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lazulite.cli.progress_line import BytesDone, ProgressLine
from lazulite.engine.durable_files import make_private, sync_directory
from lazulite.settings.config import BACKUP_MANIFEST

VERSION = 1
_CHUNK_BYTES = 1 << 20
_RUNTIME_FILES = frozenset({"LOCK", "LOG", "lazulite.mark"})
"""Files that reading a store may leave in its directory."""


class BackupError(Exception):
    """A backup cannot be made, or is damaged. The text is for people and names the file."""


class FileDigest(NamedTuple):
    """The size and the digest of a file."""

    bytes: int
    sha256: str


Manifest = Mapping[str, FileDigest]
"""Path below the backup -> the digest of that file."""


@contextmanager
def atomic_directory(target: Path) -> Iterator[Path]:
    """Yield a new directory beside `target`. Rename it to `target`, durably, if the block succeeds; else remove it.

    Raises:
        BackupError: `target` exists and is not an empty directory.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} exists and is not empty; choose another directory")
    make_private(target.parent)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))  # Its mode is 0700.
    try:
        yield staging
        for directory in (staging, *(path for path in staging.rglob("*") if path.is_dir())):
            sync_directory(directory)
        staging.rename(target)
        sync_directory(target.parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def copy_tree(source: Path, target: Path, line: ProgressLine) -> dict[str, FileDigest]:
    """Copy a directory's files, durably. Return the digest of each by its path below `source`.

    The total size is computed first, for the line that shows the progress.
    """
    paths = [path for path in sorted(source.rglob("*")) if path.is_file() and path.name not in _RUNTIME_FILES]
    progress = BytesDone("copied", sum(path.stat().st_size for path in paths))

    digests: dict[str, FileDigest] = {}
    with line:

        def count(size: int) -> None:
            progress.done += size
            line.show(progress)

        for path in paths:
            name = path.relative_to(source).as_posix()
            digests[name] = copy_file(path, target / name, count)
    return digests


def copy_file(source: Path, target: Path, count: Callable[[int], None] = lambda _: None) -> FileDigest:
    """Copy a file, durably and with mode 0600; call `count` with the bytes of each piece. Return its digest."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with source.open("rb") as reading, open(descriptor, "wb") as writing:
        digest = hashlib.sha256()
        size = 0
        while chunk := reading.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            writing.write(chunk)
            count(len(chunk))
        writing.flush()
        os.fsync(descriptor)
    return FileDigest(size, digest.hexdigest())


def digest_file(path: Path) -> FileDigest:
    """Return the size and the digest of a file."""
    with path.open("rb") as file:
        return FileDigest(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def write_manifest(directory: Path, files: Manifest) -> None:
    """Write the manifest of a backup, durably."""
    document = {"version": VERSION, "files": {name: digest._asdict() for name, digest in sorted(files.items())}}
    text = json.dumps(document | {"sha256": _checksum(document)}, indent=1).encode() + b"\n"
    descriptor = os.open(directory / BACKUP_MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a backup.

    Raises:
        BackupError: the manifest is missing, damaged, or of another version of the format.
    """
    path = directory / BACKUP_MANIFEST
    damaged = BackupError(f"{path} is damaged")
    try:
        document = json.loads(path.read_bytes())
        checksum = document.pop("sha256")
        files = {name: FileDigest(**digest) for name, digest in document["files"].items()}
        version = document["version"]
    except FileNotFoundError:
        raise BackupError(f"{directory} is not a backup: it has no {BACKUP_MANIFEST}") from None
    except OSError as error:
        raise BackupError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged from None
    if checksum != _checksum(document):
        raise damaged
    if version != VERSION:
        raise BackupError(f"{path} was written by {_writer_of(version)}")
    return files


def check_manifest(directory: Path, manifest: Manifest, line: ProgressLine) -> None:
    """Compare every file of a backup with the manifest, and show the progress.

    Raises:
        BackupError: a file is missing, changed, or not in the manifest.
    """
    progress = BytesDone("read", sum(digest.bytes for digest in manifest.values()))
    found: dict[str, FileDigest] = {}
    with line:
        for name in _file_names(directory):
            found[name] = digest_file(directory / name)
            progress.done += found[name].bytes
            line.show(progress)
    compare_manifest(directory, manifest, found)


def compare_manifest(directory: Path, manifest: Manifest, found: Manifest) -> None:
    """Compare the files that were found with the manifest.

    Raises:
        BackupError: see `check_manifest`.
    """
    for name in sorted(manifest.keys() | found.keys()):
        if name not in found:
            raise BackupError(f"{directory / name} is missing")
        if name not in manifest:
            raise BackupError(f"{directory / name} does not belong to the backup")
        if manifest[name] != found[name]:
            raise BackupError(f"{directory / name} is damaged: its content has changed since the backup")


def _file_names(directory: Path) -> list[str]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name not in _RUNTIME_FILES)
    return [path.relative_to(directory).as_posix() for path in files if path != directory / BACKUP_MANIFEST]


def _writer_of(version: object) -> str:
    """Return which Lazulite writes manifests of another version than this one, in words."""
    if isinstance(version, int) and version < VERSION:
        return f"an earlier Lazulite, in version {version} of the format, which this one does not read"
    return "a newer Lazulite"


def _checksum(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
