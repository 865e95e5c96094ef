"""Properties that only the holders of a key can read: an authenticated format of our own, and that of the old SDKs."""

from lazulite_patterns.encryption.cells import Cipher
from lazulite_patterns.encryption.checks import UndecryptableCheck
from lazulite_patterns.encryption.ciphers import Ciphers
from lazulite_patterns.encryption.errors import Undecryptable
from lazulite_patterns.encryption.keyring import KeyRing, WrappingKey
from lazulite_patterns.encryption.legacy import LegacyCipher
from lazulite_patterns.encryption.table import EncryptedTable, reencrypt

__all__ = [
    "Cipher",
    "Ciphers",
    "EncryptedTable",
    "KeyRing",
    "LegacyCipher",
    "Undecryptable",
    "UndecryptableCheck",
    "WrappingKey",
    "reencrypt",
]
