"""JSON Web Key Sets: the public keys that verify bearer tokens. Source: RFC 7517, RFC 7518 section 6.

Invariants:
- Only the public members of asymmetric keys are read, so a shared secret in a set can verify nothing, and a private key
  is used as its public half.
- A key has the algorithms that it may verify, fixed by its type and its own `alg`, whatever a token asks for.
- Sets of the same keys are equal, however they were spelled.
- A key set in a file is read again when it changes. A file that becomes unreadable leaves the last good keys in force,
  and that is reported once.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from lazulite.auth.accounts.account import POLL_SECONDS
from lazulite.auth.accounts.file_store import FileState, state_of

JWKS_BYTES_MAX = 256 * 1024
KEYS_MAX = 100
"""Keys of a set; Entra ID has about ten."""
RSA_BITS_MIN = 2048
RSA_BITS_MAX = 8192
"""Verifying with a longer key takes too long."""
KEY_ID_CHARACTERS_MAX = 256

_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES = {"P-256": frozenset({"ES256"}), "P-384": frozenset({"ES384"}), "P-521": frozenset({"ES512"})}
ALGORITHMS = _RSA.union(*_CURVES.values())
"""What a token may be signed with: never a shared secret, never nothing."""

PublicKey = RSAPublicKey | EllipticCurvePublicKey


class JwksError(ValueError):
    """A text is no key set, or a set has no key that could verify a token. The text is one line for people."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key that verifies signatures. Equal to another by what the set says of it."""

    kid: str | None
    algorithms: frozenset[str]
    members: tuple[str, ...] = field(repr=False)
    """The members of the JWK that make the key."""
    public: PublicKey = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys of one issuer."""

    keys: frozenset[VerificationKey]

    def find(self, kid: str | None, algorithm: str) -> VerificationKey | None:
        """Return the key that a token names; of a token that names none, the only key that there is for its algorithm.

        Several keys of one name for one algorithm are as good as none: nothing says which is meant.
        """
        fit = [key for key in self.keys if algorithm in key.algorithms and (kid is None or key.kid == kid)]
        return fit[0] if len(fit) == 1 else None


def parse_jwks(text: bytes) -> KeySet:
    """Read a key set. Keys that can verify no token (RFC 7517 section 5) are left out.

    Raises:
        JwksError: it is too large, has too many keys, is not a key set, or has no usable key.
    """
    if len(text) > JWKS_BYTES_MAX:
        raise JwksError(f"the key set has more than {JWKS_BYTES_MAX} bytes")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise JwksError("the key set is not JSON") from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise JwksError('the key set has no list "keys"')
    if len(entries) > KEYS_MAX:
        raise JwksError(f"the key set has more than {KEYS_MAX} keys")
    keys = frozenset(key for key in map(_read_key, entries) if key is not None)
    if not keys:
        raise JwksError("the key set has no RSA or EC key for signatures")
    return KeySet(keys)


def _read_key(entry: object) -> VerificationKey | None:
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    operations = entry.get("key_ops", ["verify"])
    kid = entry.get("kid")
    names = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y")}.get(str(entry.get("kty")))
    if names is None or not isinstance(operations, list) or not {"verify", "sign"} & set(map(str, operations)):
        return None
    members = tuple(member for member in map(entry.get, names) if isinstance(member, str))
    if len(members) < len(names):
        return None
    if kid is not None and not (isinstance(kid, str) and len(kid) <= KEY_ID_CHARACTERS_MAX):
        return None
    algorithms = _RSA if members[0] == "RSA" else _CURVES.get(members[1], frozenset())
    if entry.get("alg") is not None:
        algorithms = algorithms & {str(entry["alg"])}
    if not algorithms:
        return None
    public = _public_key(dict(zip(names, members, strict=True)), min(algorithms))
    return None if public is None else VerificationKey(kid, algorithms, members, public)


def _public_key(members: dict[str, str], algorithm: str) -> PublicKey | None:
    try:
        key = PyJWK(members, algorithm).key
    except (PyJWTError, ValueError):
        return None
    if isinstance(key, RSAPublicKey):
        return key if RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX else None
    return key if isinstance(key, EllipticCurvePublicKey) else None


class FileKeys:
    """The keys of a file. See `KeySource`.

    Args:
        path: the file, a JSON Web Key Set.
        report: gets the reason, once for each bad state, if the file cannot be read.
        monotonic: seconds that never step back.

    Raises:
        JwksError: the file cannot be read from the start.
    """

    def __init__(
        self, path: Path, report: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._report = report
        self._monotonic = monotonic
        self._next_poll_s = monotonic() + POLL_SECONDS
        self._state, self._keys = self._read()

    async def current(self) -> KeySet:
        """Return the keys of the file as it is now, give or take `POLL_SECONDS`."""
        now_s = self._monotonic()
        if now_s >= self._next_poll_s:
            self._next_poll_s = now_s + POLL_SECONDS
            self._look()
        return self._keys

    async def renewed(self, known: KeySet) -> KeySet:  # noqa: ARG002 - of no use here: a look costs next to nothing
        """Look at once."""
        self._look()
        return self._keys

    def _look(self) -> None:
        try:
            state: FileState | None = state_of(os.stat(self._path))
        except OSError:
            state = None
        if state == self._state:
            return
        self._state = state
        try:
            self._state, keys = self._read()
        except JwksError as error:
            self._report(f"{error}; the signing keys stay as they were")
            return
        if keys != self._keys:
            self._keys = keys

    def _read(self) -> tuple[FileState | None, KeySet]:
        try:
            with self._path.open("rb") as file:
                state = state_of(os.fstat(file.fileno()))
                return state, parse_jwks(file.read(JWKS_BYTES_MAX + 1))
        except OSError as error:
            raise JwksError(f"cannot read {self._path}: {error.strerror}") from None
        except JwksError as error:
            raise JwksError(f"{self._path}: {error}") from None
