"""Storage accounts: a name and the keys that sign for it, by HMAC-SHA256 (RFC 2104).

Invariants:
- key material is in no `repr`, exception text or log line;
- an `Account` compares by identity, and a directory hands out the same object until the account changes, so that caches
  can hang on it and a rotated key empties them;
- once accounts were stored, even if they are all removed, the development account is in force only if it is one of
  the stored ones. So it never comes back by itself, and the command and every process agree.
"""

import base64
import binascii
import os
import re
import time
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from lazulite.auth.accounts.document import DEVELOPMENT_NAME, PUBLIC_KEY, Accounts, AccountsError
from lazulite.auth.accounts.file_store import AccountFile, FileState, state_of
from lazulite.auth.accounts.switches import DEFAULTS, EMULATORS, Switches

_BLOCK_BYTES = sha256().block_size
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class Signer:
    """Signs with one key. Its repr shows nothing of it.

    A key, made as long as a block of the hash, begins two hashes: of the message, and of the message's hash. Both
    beginnings are kept and copied for each message, so a signature costs no look at the key.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        if len(key) > _BLOCK_BYTES:
            key = sha256(key).digest()
        block = key.ljust(_BLOCK_BYTES, b"\0")
        self._inner = sha256(block.translate(_INNER))
        self._outer = sha256(block.translate(_OUTER))

    def sign(self, message: bytes) -> bytes:
        """Return a message's signature in base64."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return b2a_base64(outer.digest(), newline=False)


_NAME = re.compile(r"[^\s/:;?#%\\\x00-\x1f\x7f-\U0010ffff]{1,64}")
"""Emulator names are free-form (reference §1), within what one path segment and one environment variable can carry."""

POLL_SECONDS = 0.005
"""The shortest time between two checks of the account file, whatever the number of requests."""
LAST_REMOVED = "the last account was removed: all requests are rejected until an account is added"

__all__ = [
    "DEVELOPMENT_ACCOUNT",
    "POLL_SECONDS",
    "Account",
    "AccountDirectory",
    "AccountFile",
    "AccountsError",
    "parse_accounts",
]


@dataclass(frozen=True, eq=False, slots=True)
class Account:
    """A storage account. Either key signs."""

    name: str
    keys: tuple[bytes, ...] = field(repr=False)
    delegation_keys_since: int = 0
    """See `document.StoredAccount`."""
    switches: Switches = DEFAULTS
    """The settings of the account's Blob service."""
    signers: tuple[Signer, ...] = field(init=False, repr=False)
    """One for each key."""

    def __post_init__(self) -> None:
        """Prepare the signers."""
        object.__setattr__(self, "signers", tuple(map(Signer, self.keys)))

    def __reduce__(self) -> tuple[type["Account"], tuple[str, tuple[bytes, ...], int, Switches]]:
        """Prepare the signers again in the process that unpickles: a hash that was begun cannot be pickled."""
        return Account, (self.name, self.keys, self.delegation_keys_since, self.switches)


DEVELOPMENT_ACCOUNT = Account(DEVELOPMENT_NAME, (PUBLIC_KEY,), switches=EMULATORS)
"""The emulator's account, whose key is public."""


def parse_accounts(text: str) -> dict[str, Account]:
    """Read `name:key1[:key2];…`, the value of `AZURITE_ACCOUNTS` or `LAZULITE_ACCOUNTS`.

    Raises:
        ValueError: with a text that shows nothing of the value, as a misplaced part of it may be a key.
    """
    accounts: dict[str, Account] = {}
    entries = [entry.strip() for entry in text.split(";")]
    for number, entry in enumerate(filter(None, entries), 1):
        name, *keys = entry.split(":")
        if not _NAME.fullmatch(name) or name.endswith("-secondary"):
            raise ValueError(f"account {number} has no usable name; expected name:key1[:key2]")
        if name in accounts:
            raise ValueError(f"account {number} repeats the name of an earlier one")
        if not 1 <= len(keys) <= 2:
            raise ValueError(f"account {number} needs one or two keys: name:key1[:key2]")
        decoded = tuple(_decode_key(key, number) for key in keys)
        accounts[name] = Account(name, decoded, switches=EMULATORS if PUBLIC_KEY in decoded else DEFAULTS)
    return accounts


def _decode_key(text: str, number: int) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError(f"a key of account {number} is not base64")
    return key


class AccountDirectory:
    """The accounts that a running service knows: the environment's accounts, then the stored ones.

    Args:
        fixed: accounts from the environment; their keys win over those of stored ones of the same name.
        file: the durable accounts of a location. A change of it is noticed by the next `get`, without a restart. None:
            they are not in a file, and are set by `replace`.
        report: gets the reason, once for each damaged state, if the file cannot be read; the last good state holds on.

    Raises:
        AccountsError: the file is damaged or unreadable from the start.
    """

    def __init__(
        self,
        fixed: Mapping[str, Account],
        file: AccountFile | None = None,
        report: Callable[[str], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fixed = dict(fixed)
        self._file = file
        self._path = None if file is None else str(file.path)
        self._report = report
        self._monotonic = monotonic
        self._next_poll_s = 0.0
        self._state: FileState | None = None
        self._accounts: dict[str, Account] = {}
        self._development = False
        self._own_seen = False
        stored: Accounts | None = None
        if file is not None:
            self._state, stored = file.read()
        self.replace(stored)

    def get(self, name: str) -> Account | None:
        """Return the account of that name as it is now (give or take `POLL_SECONDS`), or None."""
        self._refresh()
        return self._accounts.get(name)

    def names(self) -> list[str]:
        """Return the names of all accounts in force, sorted."""
        return sorted(self._accounts)

    @property
    def development(self) -> bool:
        """Whether an account in force signs with the public development key, as of now likewise."""
        self._refresh()
        return self._development

    @property
    def implied(self) -> bool:
        """Whether the development account is in force because there never was another one, as of now likewise."""
        self._refresh()
        return not self._own_seen

    def read_if_changed(self) -> None:
        """Read the file if it has changed; for a process that has changed it itself."""
        if self._path is not None:
            self._read_if_changed(self._path)

    def _refresh(self) -> None:
        if self._path is not None:
            now_s = self._monotonic()
            if now_s >= self._next_poll_s:
                self._next_poll_s = now_s + POLL_SECONDS
                self._read_if_changed(self._path)

    def _read_if_changed(self, path: str) -> None:
        """Read the file again if it is not the one that was read last."""
        try:
            state = state_of(os.stat(path))
        except OSError:
            state = None
        if state != self._state:
            self._reload(state)

    def _reload(self, state: FileState | None) -> None:
        assert self._file is not None
        try:
            read_state, stored = self._file.read()
            if stored is None:
                raise AccountsError("the account file is gone")
        except AccountsError as error:
            self._state = state
            self._report(f"{error}; the accounts stay as they were")
            return
        self._state = read_state
        self.replace(stored)

    def replace(self, stored: Accounts | None) -> None:
        """Put `stored` in force, keeping the object of each account that did not change; None: there never were any."""
        accounts: dict[str, Account] = {}
        for name, read in ({} if stored is None else stored).items():
            fixed = self._fixed.get(name)
            terms = read if fixed is None else read._replace(keys=fixed.keys)
            known = self._accounts.get(name)
            is_known = known is not None and (known.keys, known.delegation_keys_since, known.switches) == terms
            accounts[name] = known if known is not None and is_known else Account(name, *terms)
        accounts = {**self._fixed, **accounts}
        if not accounts and self._own_seen and self._accounts:
            self._report(LAST_REMOVED)
        self._own_seen = self._own_seen or stored is not None or bool(accounts)
        self._accounts = accounts if self._own_seen else {DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT}
        self._development = any(PUBLIC_KEY in account.keys for account in self._accounts.values())
