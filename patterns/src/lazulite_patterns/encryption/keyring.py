"""Keys: those of the own format by their ids, and a key that wraps the keys of entities in the old format."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from lazulite_patterns.encryption.errors import Undecryptable

__all__ = ["InvalidTag", "KeyRing", "WrappingKey"]
_KEY_BYTES = 32
ID_BYTES_MAX = 64


@dataclass(frozen=True)
class KeyRing:
    """The master keys of the own format: 32 random bytes each.

    Attributes:
        keys: by their ids, which are stored with each property. Old ones stay until nothing is encrypted with them.
        current: the id of the key for new properties.
        blind: the key of blind indexes; None for none. It cannot be changed without writing all rows again.
    """

    keys: Mapping[str, bytes] = field(repr=False)
    current: str
    blind: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Reject keys of another length."""
        if self.current not in self.keys:
            raise ValueError(f"there is no key {self.current!r}")
        if any(not 1 <= len(each.encode()) <= ID_BYTES_MAX for each in self.keys):
            raise ValueError(f"the id of a key has 1 to {ID_BYTES_MAX} bytes")
        if any(len(each) != _KEY_BYTES for each in (*self.keys.values(), *([self.blind] if self.blind else []))):
            raise ValueError(f"a key has {_KEY_BYTES} bytes")

    def derived(self, key_id: str, purpose: bytes) -> bytes:
        """Return a key for one purpose.

        Raises:
            Undecryptable: there is no key with this id.
        """
        if (master := self.keys.get(key_id)) is None:
            raise Undecryptable(f"there is no key {key_id!r}")
        return derive(master, purpose)


def derive(master: bytes, purpose: bytes) -> bytes:
    """Return the key for one purpose of a master key, by HKDF with SHA-256."""
    return HKDF(SHA256(), _KEY_BYTES, salt=None, info=purpose).derive(master)


@dataclass(frozen=True)
class WrappingKey:
    """A key that wraps others by AES key wrap with 256 bits, as A256KW of JSON Web Keys. A vault may replace it.

    Attributes:
        kid: the id, which is stored with the wrapped key.
        algorithm: its name, which is stored, too.
    """

    kid: str
    key: bytes = field(repr=False)
    algorithm: str = "A256KW"

    def wrap(self, key: bytes) -> bytes:
        """Return a key, wrapped."""
        return aes_key_wrap(self.key, key)

    def unwrap(self, wrapped: bytes, algorithm: str) -> bytes:
        """Return the key that was wrapped.

        Raises:
            Undecryptable: it was changed, wrapped with another key, or by another algorithm.
        """
        if algorithm != self.algorithm:
            raise Undecryptable(f"the key is wrapped by {algorithm!r}, not by {self.algorithm}")
        try:
            return aes_key_unwrap(self.key, wrapped)
        except (InvalidUnwrap, ValueError) as error:
            raise Undecryptable(f"the key that {self.kid!r} wraps was changed, or another one wrapped it") from error
