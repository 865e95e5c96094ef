"""HMAC-SHA256 (RFC 2104), as everything in this service is signed: the key's share of the work is done once.

A key, made as long as a block of the hash, begins two hashes: of the message, and of the message's hash. Both
beginnings are kept and copied for each message, so a signature costs no look at the key.
"""

from binascii import b2a_base64
from hashlib import sha256

_BLOCK_BYTES = sha256().block_size
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class Signer:
    """Signs with one key. Its repr shows nothing of it."""

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
