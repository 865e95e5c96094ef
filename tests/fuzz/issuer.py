"""An issuer of bearer tokens that signs whatever it is given.

Its key is made anew in each process: inputs hold what is signed, not signatures, so they replay all the same.
"""

import base64
import json

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

from lazulite.protocol.bearer_authentication import BearerAuthentication
from lazulite.protocol.bearer_rules import BearerRules
from lazulite.protocol.clock import Clock
from lazulite.protocol.jwks import KeySet, parse_jwks

ISSUER = "https://issuer.example/tenant/v2.0"
AUDIENCE = "https://storage.azure.com"
KEY_ID = "k"
_KEY = generate_private_key(65537, 2048)


def base64url(data: bytes) -> str:
    """The text of bytes in a JWT."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(header: bytes, claims: bytes) -> str:
    """A JWT of these very bytes, signed by RS256."""
    text = f"{base64url(header)}.{base64url(claims)}"
    return f"{text}.{base64url(_KEY.sign(text.encode(), PKCS1v15(), SHA256()))}"


class _Keys:
    """A `KeySource` that has what it has."""

    def __init__(self) -> None:
        modulus = _KEY.public_key().public_numbers().n
        number = base64url(modulus.to_bytes(256, "big"))
        self._keys = parse_jwks(
            json.dumps({"keys": [{"kty": "RSA", "kid": KEY_ID, "n": number, "e": "AQAB"}]}).encode()
        )

    async def current(self) -> KeySet:
        return self._keys

    async def renewed(self, known: KeySet) -> KeySet:
        return known


_KEYS = _Keys()


def authentication(clock: Clock) -> BearerAuthentication:
    """The server's side of it."""
    return BearerAuthentication(BearerRules(ISSUER), _KEYS, clock, allow_http=True)
