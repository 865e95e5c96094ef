"""The own format: each property by itself, encrypted and authenticated with its place.

A stored property is Binary: `version ‖ type ‖ length and id of the key ‖ nonce ‖ AES-256-GCM of the value ‖ tag`.

- The key is HKDF-SHA256(master key, PartitionKey, RowKey): each row has its own.
- The nonce is random, 12 bytes.
- The associated data are everything before the nonce, the table, PartitionKey, RowKey and the property's name. So a
  value that was moved to another table, row or property, or whose type was changed, is rejected. Version 1 lacks the
  table; it is only read.

A *blind index* of a property is another property, `<name>_Blind`: an HMAC of type and value. Rows with the same value
have the same one, in any row; it tells that, and nothing else.
"""

import copy
import hmac
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lazulite_patterns.effects.tables import EntityKey, Kind, Properties
from lazulite_patterns.encryption.errors import Undecryptable
from lazulite_patterns.encryption.keyring import InvalidTag, KeyRing, derive
from lazulite_patterns.encryption.values import decoded, encoded
from lazulite_patterns.entities.errors import EntityValueError

BLIND = "_Blind"
_VERSION, _UNBOUND = 2, 1
_NONCE_BYTES, _TAG_BYTES, _BLIND_BYTES = 12, 16, 16


class Cipher:
    """Encrypts properties in the own format."""

    def __init__(
        self,
        keys: KeyRing,
        names: Iterable[str],
        *,
        blind: Iterable[str] = (),
        allow_plain: bool = False,
        table: str | None = None,
        allow_unbound: bool = True,
    ) -> None:
        """Take keys and names.

        Args:
            keys: the master keys.
            names: of the properties to encrypt, as the table has them.
            blind: those of them that are found by their values, too.
            allow_plain: whether a property that is not encrypted may be read, as before a table is encrypted. Then a
                program that can write the table can replace values.
            table: the table that values are bound to; None for the one that has them. A copy of a table with another
                name needs that of the original.
            allow_unbound: whether values of version 1 may be read, which are bound to no table. After `reencrypt`
                there are none.
        """
        self.keys = keys
        self._names = frozenset(names)
        self._blind = frozenset(blind)
        self._allow_plain = allow_plain
        self._table = table
        self._allow_unbound = allow_unbound
        if not self._blind <= self._names:
            raise ValueError(f"{min(self._blind - self._names)} is not encrypted")
        if self._blind and keys.blind is None:
            raise ValueError("a blind index needs KeyRing(blind=…)")

    @property
    def names(self) -> frozenset[str]:
        """The names of the properties that are encrypted."""
        return self._names

    def of(self, table: str) -> "Cipher":
        """Return a cipher whose values are bound to a table, unless it was bound to one."""
        if self._table is not None:
            return self
        bound = copy.copy(self)
        bound._table = table
        return bound

    def encrypt(self, key: EntityKey, properties: Properties, kind: Kind) -> dict[str, object]:
        """Return the properties of a write as they are stored; a merge may have some of them."""
        whole = kind not in {Kind.MERGE, Kind.PUT_MERGE}
        dropped = {name + BLIND for name in self._blind} if whole else set[str]()  # A replacement writes them again.
        stored = {name: value for name, value in properties.items() if name not in dropped}
        for name in self._names & properties.keys():
            if (value := properties[name]) is not None:
                stored[name] = self._sealed(key, name, value)
                stored |= self.blind(name, value)
        for name in self._blind - properties.keys():
            if name + BLIND in stored:
                raise EntityValueError(f"{name}{BLIND} is written with {name} only")
        return stored

    def decrypt(self, key: EntityKey, properties: Properties) -> dict[str, object]:
        """Return the properties of a row as they were written, without those of blind indexes."""
        hidden = {name + BLIND for name in self._blind}
        plain = {name: value for name, value in properties.items() if name not in hidden}
        for name in self._names & properties.keys():
            plain[name] = self._opened(key, name, properties[name])
        return plain

    def blind(self, name: str, value: object) -> Mapping[str, object]:
        """Return the property by which rows with a value are found; nothing if there is none."""
        if name not in self._blind or self.keys.blind is None:
            return {}
        code, octets = encoded(value)
        key = derive(self.keys.blind, _framed(b"lazulite-patterns blind", name.encode()))
        return {name + BLIND: hmac.digest(key, bytes([code]) + octets, sha256)[:_BLIND_BYTES]}

    def is_current(self, properties: Properties) -> bool:
        """Tell whether all properties are encrypted with the current key."""
        head = self._head(0)
        if any(name in properties and name + BLIND not in properties for name in self._blind):
            return False
        return all(
            isinstance(value, bytes) and value[:1] + b"\0" + value[2 : len(head)] == head
            for name, value in properties.items()
            if name in self._names and value is not None
        ) and not any(name in properties for name in ("_ClientEncryptionMetadata1", "_ClientEncryptionMetadata2"))

    def _head(self, code: int) -> bytes:
        key_id = self.keys.current.encode()
        return bytes([_VERSION, code, len(key_id)]) + key_id

    def _sealed(self, key: EntityKey, name: str, value: object) -> bytes:
        code, octets = encoded(value)
        head, nonce = self._head(code), os.urandom(_NONCE_BYTES)
        own = self.keys.derived(self.keys.current, _purpose(key))
        return head + nonce + AESGCM(own).encrypt(nonce, octets, _place(head, self._table or "", key, name))

    def _opened(self, key: EntityKey, name: str, stored: object) -> object:
        found = _parsed(stored) if isinstance(stored, bytes) else None
        if found is None or (self._allow_plain and found[0] not in self.keys.keys):
            if self._allow_plain:
                return stored
            raise Undecryptable(f"{key}.{name} is not encrypted")
        key_id, head, nonce, sealed = found
        if head[0] == _UNBOUND and not self._allow_unbound:
            raise Undecryptable(f"{key}.{name} is bound to no table")
        own = self.keys.derived(key_id, _purpose(key))
        try:
            octets = AESGCM(own).decrypt(nonce, sealed, _place(head, self._table or "", key, name))
        except InvalidTag as error:
            raise Undecryptable(f"{key}.{name} was changed, moved, or encrypted with another key") from error
        return decoded(head[1], octets)


def _parsed(stored: bytes) -> tuple[str, bytes, bytes, bytes] | None:
    """Return the id of the key, what is before the nonce, the nonce, and the rest; None if it is another format."""
    if len(stored) < 3 or stored[0] not in {_VERSION, _UNBOUND}:
        return None
    end = 3 + stored[2]
    if len(stored) < end + _NONCE_BYTES + _TAG_BYTES:
        return None
    try:
        key_id = stored[3:end].decode()
    except UnicodeDecodeError:
        return None
    return key_id, stored[:end], stored[end : end + _NONCE_BYTES], stored[end + _NONCE_BYTES :]


def _framed(*parts: bytes) -> bytes:
    """Return parts with their lengths, so that no two lists of parts are the same bytes."""
    return b"".join(len(each).to_bytes(4, "big") + each for each in parts)


def _purpose(key: EntityKey) -> bytes:
    return _framed(b"lazulite-patterns property", key.partition_key.encode(), key.row_key.encode())


def _place(head: bytes, table: str, key: EntityKey, name: str) -> bytes:
    bound = [] if head[0] == _UNBOUND else [table.lower().encode()]
    return _framed(head, *bound, key.partition_key.encode(), key.row_key.encode(), name.encode())
