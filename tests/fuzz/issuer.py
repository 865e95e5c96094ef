"""An issuer of bearer tokens that signs whatever it is given.

Its key is made again in each process: inputs hold what is signed, not signatures, so they replay all the same.
"""

from collections.abc import Callable
from functools import partial

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from lazulite.auth.bearer.authentication import BearerAuthentication
from lazulite.auth.bearer.jwks import KeySet, parse_jwks
from lazulite.auth.bearer.rules import BearerConventions, BearerRules
from lazulite.protocol.clock import Clock
from tests.tokens import SigningKey, jwks, private_rsa, segment

ISSUER = "https://issuer.example/tenant/v2.0"
KEY_ID = "k"
_PRIVATE = private_rsa()


def sign(header: bytes, claims: bytes) -> str:
    """A JWT of these very bytes, signed by RS256."""
    text = f"{segment(header)}.{segment(claims)}"
    return f"{text}.{segment(_PRIVATE.sign(text.encode(), PKCS1v15(), SHA256()))}"


class _Keys:
    """A `KeySource` that has what it has: a key that leaves open what it is for."""

    def __init__(self) -> None:
        self._keys = parse_jwks(jwks(SigningKey(KEY_ID, "RS256", _PRIVATE).jwk(use=None, alg=None)))

    async def current(self) -> KeySet:
        return self._keys

    async def renewed(self, known: KeySet) -> KeySet:
        return known


_KEYS = _Keys()


def authentication(clock: Clock) -> Callable[[BearerConventions], BearerAuthentication]:
    """The server's side of it."""
    return partial(BearerAuthentication, rules=BearerRules(ISSUER), keys=_KEYS, clock=clock, allow_http=True)
