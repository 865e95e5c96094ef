"""Accounts as they are kept, two keys each, and the changes that people make of them.

    {"version": 1, "accounts": [{"name": "orders", "keys": ["<base64>", "<base64>"]}], "sha256": "<hexadecimal>"}

`sha256` covers `accounts`, so that damage to a key is found; who writes it by hand may leave it out.
"""

import base64
import binascii
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeAlias

KEY_BYTES = 64
VERSION = 1
_NAME = re.compile(r"[a-z0-9]{3,24}")

Keys: TypeAlias = tuple[bytes, ...]
Accounts: TypeAlias = Mapping[str, Keys]
"""Each account's keys by name, in the order in which they were added."""
Change: TypeAlias = Callable[[Accounts], Accounts]
"""Makes new accounts of those that there are. May be called more than once; raises `AccountsError` to refuse."""
RandomBytes: TypeAlias = Callable[[int], bytes]
"""Given a count, returns that many random bytes (`secrets.token_bytes`)."""


class AccountsError(ValueError):
    """Accounts cannot be read, or a change of them was refused. The text is for people and holds no key."""


class AccountStore(ABC):
    """Where accounts are kept: changed whole, or not at all, and no change is lost to another one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Where that is, for messages."""

    @abstractmethod
    def load(self) -> Accounts:
        """Return the accounts.

        Raises:
            AccountsError: unreadable, damaged, or of a newer version.
        """

    @abstractmethod
    def edit(self, change: Change) -> Accounts:
        """Change the accounts, durably, and return what they are now.

        Raises:
            AccountsError: `change` raised it, or they cannot be read or written.
        """

    def add(self, name: str, random_bytes: RandomBytes) -> Keys:
        """Add an account with two new keys and return them.

        Args:
            name: 3 to 24 characters of a-z and 0-9.
            random_bytes: where keys come from.

        Raises:
            AccountsError: a name that is taken or not allowed, or as `edit`.
        """
        if not _NAME.fullmatch(name):
            raise AccountsError(f"account name {name!r}: use 3 to 24 characters of a-z and 0-9")

        def added(accounts: Accounts) -> Accounts:
            if name in accounts:
                raise AccountsError(f"account {name} exists already")
            return {**accounts, name: (random_bytes(KEY_BYTES), random_bytes(KEY_BYTES))}

        return self.edit(added)[name]

    def rotate(self, name: str, which: int, random_bytes: RandomBytes) -> Keys:
        """Replace key `which` (1 or 2) of an account and return its keys; the other one stays.

        Raises:
            AccountsError: no such account or key, or as `edit`.
        """
        if which not in (1, 2):
            raise AccountsError("an account has key 1 and key 2")

        def rotated(accounts: Accounts) -> Accounts:
            if name not in accounts:
                raise AccountsError(f"there is no account {name}")
            first, second = accounts[name]
            new = random_bytes(KEY_BYTES)
            return {**accounts, name: (new, second) if which == 1 else (first, new)}

        return self.edit(rotated)[name]


def read_accounts(text: bytes, name: str) -> Accounts:
    """Read the form above.

    Args:
        text: in that form.
        name: what it is called in messages.

    Raises:
        AccountsError: damaged, or of a newer version.
    """
    damaged = AccountsError(f"{name} is damaged")
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise AccountsError(f"{name} was written by a newer Lazulite")
        if document.keys() - {"version", "accounts", "sha256"}:
            raise damaged
        if document.get("sha256", sealed := _seal(document["accounts"])) != sealed:
            raise damaged
        accounts = {entry["name"]: _decode_keys(entry["keys"]) for entry in document["accounts"]}
        if len(accounts) != len(document["accounts"]):
            raise damaged
    except AccountsError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # Not chained: the cause may quote a key.
        raise damaged from None
    return accounts


def write_accounts(accounts: Accounts) -> bytes:
    """Return the form above."""
    entries = [
        {"name": name, "keys": [base64.b64encode(key).decode() for key in keys]} for name, keys in accounts.items()
    ]
    document = {"version": VERSION, "accounts": entries, "sha256": _seal(entries)}
    return json.dumps(document, indent=1).encode() + b"\n"


def _seal(entries: object) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _decode_keys(texts: list[str]) -> Keys:
    keys = tuple(base64.b64decode(text, validate=True) for text in texts)
    if len(keys) != 2 or not all(keys):
        raise binascii.Error
    return keys
