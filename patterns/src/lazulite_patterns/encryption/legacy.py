"""The client-side encryption 1.0 of the old SDKs: AES-256-CBC. It has no authentication, so it is for migration only.

Each entity has a random key of 32 bytes and an IV of 16. Each encrypted text is stored as Binary, with an IV of its
own: the first 16 bytes of SHA-256(IV ‖ UTF-8(RowKey + PartitionKey + name)). Version 1 of the SDK for Java has
PartitionKey and RowKey in the other order.

| property | value |
|---|---|
| `_ClientEncryptionMetadata1` | JSON: the wrapped key, the IV, the algorithm, and the library that wrote it |
| `_ClientEncryptionMetadata2` | the encrypted names, encrypted alike: a JSON array, or `[a, b]` by Java |
"""

import base64
import json
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from cryptography.hazmat.primitives.ciphers import Cipher as BlockCipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from lazulite_patterns.effects.tables import EntityKey, Kind, Properties
from lazulite_patterns.encryption.errors import Undecryptable
from lazulite_patterns.entities.errors import EntityValueError

ABOUT_KEY = "_ClientEncryptionMetadata1"
ABOUT_NAMES = "_ClientEncryptionMetadata2"
METADATA = (ABOUT_KEY, ABOUT_NAMES)
_PROTOCOL, _ALGORITHM = "1.0", "AES_CBC_256"
_WHOLE = frozenset({Kind.INSERT, Kind.PUT, Kind.REPLACE})


class Wrapping(Protocol):
    """A key that wraps the keys of entities, such as `WrappingKey` or one in a vault."""

    @property
    def kid(self) -> str:
        """The id, which is stored."""

    @property
    def algorithm(self) -> str:
        """The name of the algorithm, which is stored."""

    def wrap(self, key: bytes) -> bytes:
        """Return a key, wrapped."""

    def unwrap(self, wrapped: bytes, algorithm: str) -> bytes:
        """Return the key that was wrapped. Raises Undecryptable."""


class _Entity(NamedTuple):
    """The key and the IV of an entity, and the order of the keys in the IVs of its properties."""

    content_key: bytes
    iv: bytes
    java: bool

    def cipher(self, key: EntityKey, name: str) -> BlockCipher[CBC]:
        keys = key.partition_key + key.row_key if self.java else key.row_key + key.partition_key
        return BlockCipher(AES(self.content_key), CBC(sha256(self.iv + (keys + name).encode()).digest()[:16]))

    def encrypt(self, key: EntityKey, name: str, octets: bytes) -> bytes:
        padder, encryptor = PKCS7(128).padder(), self.cipher(key, name).encryptor()
        return encryptor.update(padder.update(octets) + padder.finalize()) + encryptor.finalize()

    def decrypt(self, key: EntityKey, name: str, octets: object) -> str:
        """Return a text. Raises Undecryptable if it is none, which is all that this format can tell."""
        if not isinstance(octets, bytes):
            raise Undecryptable(f"{key}.{name} is no Binary")
        unpadder, decryptor = PKCS7(128).unpadder(), self.cipher(key, name).decryptor()
        try:
            padded = decryptor.update(octets) + decryptor.finalize()
            return (unpadder.update(padded) + unpadder.finalize()).decode()
        except ValueError as error:
            raise Undecryptable(f"{key}.{name} was changed, moved, or encrypted with another key") from error


class LegacyCipher:
    """Encrypts texts as the old SDKs do.

    Attributes:
        allow_plain: whether entities without encryption are read as they are.
    """

    def __init__(
        self, key: Wrapping, names: Iterable[str], *, others: Iterable[Wrapping] = (), allow_plain: bool = False
    ) -> None:
        """Take the key that wraps those of entities, the names of texts to encrypt, and keys for reading only."""
        self._key = key
        self._keys: dict[str, Wrapping] = {each.kid: each for each in (*others, key)}
        self._names = frozenset(names)
        self.allow_plain = allow_plain

    def of(self, table: str) -> "LegacyCipher":  # noqa: ARG002
        """Return the cipher: the format binds no value to a table."""
        return self

    @property
    def names(self) -> frozenset[str]:
        """The names of the properties that are encrypted."""
        return self._names

    def select(self, *names: str) -> tuple[str, ...]:
        """Return what a query has to select to read these properties: the keys and the metadata, too."""
        return ("PartitionKey", "RowKey", *names, *METADATA)

    def encrypt(self, key: EntityKey, properties: Properties, kind: Kind) -> dict[str, object]:
        """Return the properties of a whole entity as they are stored.

        Raises:
            EntityValueError: a property is no text, or it is a merge, which would leave texts of two keys.
        """
        if kind not in _WHOLE:
            raise EntityValueError(f"{key}: this encryption has no merge, as an entity has one key")
        entity = _Entity(os.urandom(32), os.urandom(16), java=False)
        encrypted = sorted(name for name in self._names if properties.get(name) is not None)
        stored = {name: value for name, value in properties.items() if name not in METADATA}
        for name in encrypted:
            if not isinstance(text := properties[name], str):
                raise EntityValueError(f"{key}.{name}: only texts are encrypted in this format")
            stored[name] = entity.encrypt(key, name, text.encode())
        stored[ABOUT_NAMES] = entity.encrypt(key, ABOUT_NAMES, json.dumps(encrypted).encode())
        stored[ABOUT_KEY] = json.dumps(self._about(entity))
        return stored

    def decrypt(self, key: EntityKey, properties: Properties) -> dict[str, object]:
        """Return the properties of a row as they were written, by any of the old SDKs."""
        if not all(name in properties for name in METADATA):
            if self.allow_plain and not any(name in properties for name in METADATA):
                return dict(properties)
            raise Undecryptable(f"{key} is not encrypted")
        entity = self._entity(key, properties[ABOUT_KEY])
        names = entity.decrypt(key, ABOUT_NAMES, properties[ABOUT_NAMES])
        plain = {name: value for name, value in properties.items() if name not in METADATA}
        for name in _names(key, names, java=entity.java):
            if plain.get(name) is not None:
                plain[name] = entity.decrypt(key, name, plain[name])
        return plain

    def blind(self, name: str, value: object) -> Mapping[str, object]:  # noqa: ARG002 - there is none
        """Return nothing: this format has no blind index."""
        return {}

    def is_current(self, properties: Properties) -> bool:
        """Tell whether the entity is encrypted with the key for new ones."""
        try:
            about = json.loads(str(properties.get(ABOUT_KEY)))
            return bool(about["WrappedContentKey"]["KeyId"] == self._key.kid)
        except (ValueError, KeyError, TypeError):
            return False

    def _about(self, entity: _Entity) -> dict[str, object]:
        return {
            "WrappedContentKey": {
                "KeyId": self._key.kid,
                "EncryptedKey": base64.b64encode(self._key.wrap(entity.content_key)).decode(),
                "Algorithm": self._key.algorithm,
            },
            "EncryptionAgent": {"Protocol": _PROTOCOL, "EncryptionAlgorithm": _ALGORITHM},
            "ContentEncryptionIV": base64.b64encode(entity.iv).decode(),
            "KeyWrappingMetadata": {"EncryptionLibrary": "Python lazulite-patterns"},
        }

    def _entity(self, key: EntityKey, text: object) -> _Entity:
        try:
            about = json.loads(str(text))
            wrapped, agent = about["WrappedContentKey"], about["EncryptionAgent"]
            key_id, algorithm = wrapped["KeyId"], wrapped["Algorithm"]
            octets, iv = (base64.b64decode(each) for each in (wrapped["EncryptedKey"], about["ContentEncryptionIV"]))
            known = (agent["Protocol"], agent["EncryptionAlgorithm"]) == (_PROTOCOL, _ALGORITHM)
        except (ValueError, KeyError, TypeError) as error:
            raise Undecryptable(f"{key}.{ABOUT_KEY} is not that of an encrypted entity") from error
        if not known:
            raise Undecryptable(f"{key} is encrypted by {agent!r}")
        if (wrapping := self._keys.get(key_id)) is None:
            raise Undecryptable(f"{key}: there is no key {key_id!r}")
        return _Entity(wrapping.unwrap(octets, algorithm), iv, _by_java(about.get("KeyWrappingMetadata")))


def _by_java(metadata: Any) -> bool:
    """Tell whether the SDK for Java wrote an entity: only its first version left the metadata out."""
    return metadata is None or "Java" in str(metadata.get("EncryptionLibrary", ""))


def _names(key: EntityKey, text: str, *, java: bool) -> list[str]:
    if java:
        return [each for each in text[1:-1].split(", ") if each]
    try:
        return [str(each) for each in json.loads(text)]
    except (ValueError, TypeError) as error:
        raise Undecryptable(f"{key}.{ABOUT_NAMES} was changed") from error
