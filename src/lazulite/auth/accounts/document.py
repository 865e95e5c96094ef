"""Accounts as they are kept, two keys each, and the changes that people make of them.

    {"version": 1, "accounts": [{"name": "orders", "keys": ["<base64>", "<base64>"]}], "sha256": "<hexadecimal>"}

`sha256` covers `accounts`, so that damage to a key is found; a file written by hand may lack it. An account whose
user delegation keys were revoked has `delegation_keys_since`, too: the time of that, in seconds since 1970. One whose
switches differ from the defaults has `switches`. An older Lazulite that changes the accounts leaves both out again.
"""

import base64
import binascii
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from lazulite.auth.accounts.switches import DEFAULTS, EMULATORS, Switches

KEY_BYTES = 64
VERSION = 1
_SINCE = "delegation_keys_since"
_SWITCHES = "switches"
_NAME = re.compile(r"[a-z0-9]{3,24}")

Keys: TypeAlias = tuple[bytes, ...]


class StoredAccount(NamedTuple):
    """One account as it is kept."""

    keys: Keys
    delegation_keys_since: int = 0
    """User delegation keys of an earlier time are revoked. In seconds since 1970; 0: none are."""
    switches: Switches = DEFAULTS


Accounts: TypeAlias = Mapping[str, StoredAccount]
"""The accounts by name, in the order in which they were added."""
Change: TypeAlias = Callable[[Accounts | None], Accounts]
"""Makes new accounts of the stored ones; None: there never were any. May be called more than once; raises
`AccountsError` to reject."""
RandomBytes: TypeAlias = Callable[[int], bytes]
"""Given a count, returns that many random bytes (`secrets.token_bytes`)."""


DEVELOPMENT_NAME = "devstoreaccount1"
PUBLIC_KEY = base64.b64decode(
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""The key of the emulator's account."""
DEVELOPMENT = StoredAccount((PUBLIC_KEY, PUBLIC_KEY), switches=EMULATORS)
"""The emulator's account, as it is stored once a command has named it."""


class AccountsError(ValueError):
    """Accounts cannot be read, or a change of them was rejected. The text is for people and holds no key."""


class AccountStore(ABC):
    """Where accounts are kept: changed whole, or not at all, and no change is lost to another one."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Where that is, for messages."""

    @abstractmethod
    def stored(self) -> Accounts | None:
        """Return the accounts; None: there never were any, so the development account is in force.

        Raises:
            AccountsError: unreadable, damaged, or of a newer version.
        """

    def load(self) -> Accounts:
        """Return the stored accounts. Raises as `stored`."""
        return self.stored() or {}

    @abstractmethod
    def edit(self, change: Change) -> Accounts:
        """Change the accounts, durably, and return what they are now.

        Raises:
            AccountsError: `change` raised it, or they cannot be read or written.
        """

    def add(self, name: str, random_bytes: RandomBytes) -> Keys:
        """Add an account with two new keys and return them. The development account gets its public key instead.

        Args:
            name: 3 to 24 characters of a-z and 0-9.
            random_bytes: where keys come from.

        Raises:
            AccountsError: a name that is taken or not allowed, or as `edit`.
        """
        if not _NAME.fullmatch(name):
            raise AccountsError(f"account name {name!r}: use 3 to 24 characters of a-z and 0-9")

        def added(accounts: Accounts | None) -> Accounts:
            accounts = accounts or {}
            if name in accounts:
                raise AccountsError(f"account {name} exists already")
            if name == DEVELOPMENT_NAME:
                return {**accounts, name: DEVELOPMENT}
            return {**accounts, name: StoredAccount((random_bytes(KEY_BYTES), random_bytes(KEY_BYTES)))}

        return self.edit(added)[name].keys

    def remove(self, name: str) -> None:
        """Remove an account. After the last one there is no account, not even the development account.

        Raises:
            AccountsError: no such account, or as `edit`.
        """

        def removed(accounts: Accounts | None) -> Accounts:
            present = _including(accounts, name)
            return {each: account for each, account in present.items() if each != name}

        self.edit(removed)

    def rotate(self, name: str, which: int, random_bytes: RandomBytes) -> Keys:
        """Replace key `which` (1 or 2) of an account and return its keys; the other one stays.

        Raises:
            AccountsError: no such account or key, or as `edit`.
        """
        if which not in (1, 2):
            raise AccountsError("an account has key 1 and key 2")

        def rotated(accounts: Accounts | None) -> Accounts:
            accounts = _including(accounts, name)
            account = accounts[name]
            first, second = account.keys
            new = random_bytes(KEY_BYTES)
            return {**accounts, name: account._replace(keys=(new, second) if which == 1 else (first, new))}

        return self.edit(rotated)[name].keys

    def revoke_delegation_keys(self, name: str, now: int) -> None:
        """Revoke the user delegation keys that an account has given out, and with them each SAS that they signed.

        Args:
            name: of the account.
            now: a second since 1970 that has not begun yet, so that no earlier key is left.

        Raises:
            AccountsError: no such account, or as `edit`.
        """

        def revoked(accounts: Accounts | None) -> Accounts:
            accounts = _including(accounts, name)
            account = accounts[name]
            since = max(now, account.delegation_keys_since + 1)
            return {**accounts, name: account._replace(delegation_keys_since=since)}

        self.edit(revoked)

    def switch(self, name: str, change: Callable[[Switches], Switches]) -> None:
        """Change the switches of an account.

        Args:
            name: of the account.
            change: makes the new switches of the old ones. It may be called more than once.

        Raises:
            AccountsError: no such account, or as `edit`.
        """

        def switched(accounts: Accounts | None) -> Accounts:
            accounts = _including(accounts, name)
            account = accounts[name]
            return {**accounts, name: account._replace(switches=change(account.switches))}

        self.edit(switched)

    def switches_of(self, name: str) -> Switches:
        """Return the switches of an account.

        Raises:
            AccountsError: no such account, or as `load`.
        """
        return _including(self.stored(), name)[name].switches


def _including(accounts: Accounts | None, name: str) -> Accounts:
    """Return stored accounts, among them `name`: the development account is in force until another one is stored.

    Raises:
        AccountsError: no such account.
    """
    if accounts is None and name == DEVELOPMENT_NAME:
        return {name: DEVELOPMENT}
    if accounts is None or name not in accounts:
        raise AccountsError(f"there is no account {name}")
    return accounts


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
        accounts = {
            entry["name"]: StoredAccount(
                _decode_keys(entry["keys"]), int(entry.get(_SINCE, 0)), Switches.read(entry.get(_SWITCHES, {}))
            )
            for entry in document["accounts"]
        }
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
    entries = [_entry(name, account) for name, account in accounts.items()]
    document = {"version": VERSION, "accounts": entries, "sha256": _seal(entries)}
    return json.dumps(document, indent=1).encode() + b"\n"


def _entry(name: str, account: StoredAccount) -> dict[str, object]:
    entry: dict[str, object] = {"name": name, "keys": [base64.b64encode(key).decode() for key in account.keys]}
    added = {_SINCE: account.delegation_keys_since, _SWITCHES: account.switches.write()}
    return entry | {name: value for name, value in added.items() if value}


def _seal(entries: object) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _decode_keys(texts: list[str]) -> Keys:
    keys = tuple(base64.b64decode(text, validate=True) for text in texts)
    if len(keys) != 2 or not all(keys):
        raise binascii.Error
    return keys
