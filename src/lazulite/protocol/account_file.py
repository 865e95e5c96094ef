"""`accounts.json`: the accounts that outlive the process, two keys each.

    {"version": 1, "accounts": [{"name": "orders", "keys": ["<base64>", "<base64>"]}], "sha256": "<hexadecimal>"}

`sha256` covers `accounts`, so that damage to a key is found; who writes the file by hand may leave it out.

Invariants:
- a reader sees a whole state, the one before an edit or the one after: the file is replaced, never rewritten;
- edits exclude each other by a lock file, so none is lost, and are durable when they return;
- the file is readable by its owner only.
"""

import base64
import binascii
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lazulite.engine.directories import make_private, sync_directory

Stamp = tuple[int, int, int]
"""(inode, change time in ns, size): differs between any two states of the file, its permissions included."""

KEY_BYTES = 64
MAX_FILE_BYTES = 16 * 1024 * 1024
VERSION = 1
_NAME = re.compile(r"[a-z0-9]{3,24}")


class AccountFileError(ValueError):
    """The account file cannot be read, or an edit of it was refused. The text is for people and holds no key."""


class AccountFile:
    """The durable accounts of one location.

    Args:
        path: `accounts.json` under the location. It need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> dict[str, tuple[bytes, ...]]:
        """Return each account's keys by name, in the order in which they were added.

        Raises:
            AccountFileError: unreadable, damaged, or of a newer version.
        """
        return dict(self.read()[1])

    def read(self) -> tuple[Stamp | None, list[tuple[str, tuple[bytes, ...]]]]:
        """Return the accounts and the stamp of the very state that they were read from (None: no file, no accounts).

        Raises:
            AccountFileError: as `load`.
        """
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                text = file.read(MAX_FILE_BYTES)
        except FileNotFoundError:
            return None, []
        except OSError as error:
            raise AccountFileError(f"cannot read {self.path}: {error.strerror}") from None
        return (status.st_ino, status.st_ctime_ns, status.st_size), self._parse(text)

    def add(self, name: str, random_key_source: Callable[[int], bytes]) -> tuple[bytes, ...]:
        """Add an account with two new keys and return them.

        Args:
            name: 3 to 24 characters of a-z and 0-9.
            random_key_source: given a count, returns that many random bytes (`secrets.token_bytes`).

        Raises:
            AccountFileError: a name that is taken or not allowed, or a file that cannot be read or written.
        """
        if not _NAME.fullmatch(name):
            raise AccountFileError(f"account name {name!r}: use 3 to 24 characters of a-z and 0-9")
        with self._edit() as accounts:
            if name in accounts:
                raise AccountFileError(f"account {name} exists already")
            accounts[name] = (random_key_source(KEY_BYTES), random_key_source(KEY_BYTES))
            return accounts[name]

    def rotate(self, name: str, which: int, random_key_source: Callable[[int], bytes]) -> tuple[bytes, ...]:
        """Replace key `which` (1 or 2) of an account and return its keys; the other one stays.

        Raises:
            AccountFileError: no such account or key, or a file that cannot be read or written.
        """
        if which not in (1, 2):
            raise AccountFileError("an account has key 1 and key 2")
        with self._edit() as accounts:
            if name not in accounts:
                raise AccountFileError(f"there is no account {name}")
            first, second = accounts[name]
            new = random_key_source(KEY_BYTES)
            accounts[name] = (new, second) if which == 1 else (first, new)
            return accounts[name]

    def _parse(self, text: bytes) -> list[tuple[str, tuple[bytes, ...]]]:
        damaged = AccountFileError(f"{self.path} is damaged")
        try:
            document = json.loads(text)
            if document["version"] != VERSION:
                raise AccountFileError(f"{self.path} was written by a newer Lazulite")
            if document.keys() - {"version", "accounts", "sha256"}:
                raise damaged
            if document.get("sha256", sealed := _seal(document["accounts"])) != sealed:
                raise damaged
            accounts = {entry["name"]: _decode_keys(entry["keys"]) for entry in document["accounts"]}
            if len(accounts) != len(document["accounts"]):
                raise damaged
        except AccountFileError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            # Not chained: the cause may quote a key.
            raise damaged from None
        return list(accounts.items())

    @contextmanager
    def _edit(self) -> Iterator[dict[str, tuple[bytes, ...]]]:
        """Yield the accounts for changing; store them when the block ends well."""
        try:
            make_private(self.path.parent)
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                accounts = self.load()
                yield accounts
                self._store(accounts)
            finally:
                os.close(lock)
        except OSError as error:
            raise AccountFileError(f"cannot write {self.path}: {error.strerror}") from None

    def _store(self, accounts: dict[str, tuple[bytes, ...]]) -> None:
        entries = [
            {"name": name, "keys": [base64.b64encode(key).decode() for key in keys]} for name, keys in accounts.items()
        ]
        document = {"version": VERSION, "accounts": entries, "sha256": _seal(entries)}
        text = json.dumps(document, indent=1).encode() + b"\n"
        replace_durably(self.path, text)


def replace_durably(path: Path, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all, for its owner's eyes; durable on return."""
    temporary = Path(f"{path}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        # The mode above holds only for a file that did not exist, and less the umask.
        os.fchmod(descriptor, 0o600)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    os.rename(temporary, path)
    sync_directory(path.parent)


def _seal(entries: object) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _decode_keys(texts: list[str]) -> tuple[bytes, ...]:
    keys = tuple(base64.b64decode(text, validate=True) for text in texts)
    if len(keys) != 2 or not all(keys):
        raise binascii.Error
    return keys
