"""A backup: a directory with a store, the accounts, and `backup.json`, the list of all its files.

    backup.json     {"version": 1, "files": {"store/000009.sst": {"bytes": 123, "sha256": "…"}, …}, "sha256": "…"}
    accounts.json   if there were accounts
    store/          a checkpoint

Invariants: a backup is made beside its place and renamed once all of it is on the disk, so it is whole or not there;
its files and directories are its owner's only (0600, 0700). The list has every file, and its own `sha256` covers the
list, so that any change of any byte can be named.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lazulite.engine.durable_files import make_private, sync_directory

LIST = "backup.json"
VERSION = 1
_CHUNK_BYTES = 1 << 20
_RUNTIME = frozenset({"LOCK", "LOG", "lazulite.mark"})
"""What reading a store may leave in its directory."""


class BackupError(Exception):
    """A backup cannot be made, or is not what it was. The text is for people and names the file."""


class FileFacts(NamedTuple):
    """What identifies the bytes of a file."""

    bytes: int
    sha256: str


Listing = Mapping[str, FileFacts]
"""Path below the backup -> its facts."""


@contextmanager
def placed(target: Path) -> Iterator[Path]:
    """Yield a new directory beside `target`; if the block ends well, it is put there, durably, else removed.

    Raises:
        BackupError: there is something at `target` that is not an empty directory.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} exists and is not empty; choose another place")
    make_private(target.parent)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))  # Its mode is 0700.
    try:
        yield made
        for directory in (made, *(path for path in made.rglob("*") if path.is_dir())):
            sync_directory(directory)
        made.rename(target)
        sync_directory(target.parent)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def copy_tree(source: Path, target: Path) -> dict[str, FileFacts]:
    """Copy a directory's files, durably; return the facts of each by its path below `source`."""
    found: dict[str, FileFacts] = {}
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.name not in _RUNTIME:
            name = path.relative_to(source).as_posix()
            found[name] = copy_file(path, target / name)
    return found


def copy_file(source: Path, target: Path) -> FileFacts:
    """Copy a file for its owner's eyes only, durably; return its facts."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with source.open("rb") as reading, open(descriptor, "wb") as writing:
        digest = hashlib.sha256()
        size = 0
        while chunk := reading.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            writing.write(chunk)
        writing.flush()
        os.fsync(descriptor)
    return FileFacts(size, digest.hexdigest())


def facts_of(path: Path) -> FileFacts:
    """Return the facts of a file."""
    with path.open("rb") as file:
        return FileFacts(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def write_list(directory: Path, files: Listing) -> None:
    """Put the list into a backup, durably."""
    document = {"version": VERSION, "files": {name: facts._asdict() for name, facts in sorted(files.items())}}
    text = json.dumps(document | {"sha256": _seal(document)}, indent=1).encode() + b"\n"
    descriptor = os.open(directory / LIST, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)


def read_list(directory: Path) -> Listing:
    """Return the list of a backup.

    Raises:
        BackupError: there is none, or it is damaged, or of a newer version.
    """
    path = directory / LIST
    damaged = BackupError(f"{path} is damaged")
    try:
        document = json.loads(path.read_bytes())
        seal = document.pop("sha256")
        files = {name: FileFacts(**facts) for name, facts in document["files"].items()}
        version = document["version"]
    except FileNotFoundError:
        raise BackupError(f"{directory} is not a backup: it has no {LIST}") from None
    except OSError as error:
        raise BackupError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged from None
    if seal != _seal(document):
        raise damaged
    if version != VERSION:
        raise BackupError(f"{path} was written by a newer Lazulite")
    return files


def check_list(directory: Path, listing: Listing) -> None:
    """Compare every file of a backup with the list.

    Raises:
        BackupError: one is missing, changed, or not in the list.
    """
    compare(directory, listing, {name: facts_of(directory / name) for name in _names(directory)})


def compare(directory: Path, listing: Listing, found: Listing) -> None:
    """Compare what a backup has with its list.

    Raises:
        BackupError: as `check_list`.
    """
    for name in sorted(listing.keys() | found.keys()):
        if name not in found:
            raise BackupError(f"{directory / name} is missing")
        if name not in listing:
            raise BackupError(f"{directory / name} does not belong to the backup")
        if listing[name] != found[name]:
            raise BackupError(f"{directory / name} is damaged: its content has changed since the backup")


def _names(directory: Path) -> list[str]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name not in _RUNTIME)
    return [path.relative_to(directory).as_posix() for path in files if path != directory / LIST]


def _seal(document: object) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
