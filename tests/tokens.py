"""Signing keys, key sets and tokens, made when a test asks for them. Nothing here is a secret of anybody."""

import base64
import hmac
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER = "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0"
AUDIENCE = "https://storage.azure.com"
NOW = 1_900_000_000
READER = "Storage Table Data Reader"
CONTRIBUTOR = "Storage Table Data Contributor"
CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class SigningKey:
    """A private key with a name."""

    kid: str | None
    algorithm: str
    private: Private

    def jwk(self, **changes: Any) -> dict[str, Any]:
        """Return its public half; a change to None takes the member away."""
        public = self.private.public_key()
        if isinstance(public, rsa.RSAPublicKey):
            made = RSAAlgorithm.to_jwk(public, as_dict=True)
        else:
            made = ECAlgorithm.to_jwk(public, as_dict=True)
        members = {**made, "kid": self.kid, "use": "sig", "alg": self.algorithm} | changes
        return {name: value for name, value in members.items() if value is not None and name != "key_ops"}

    def token(self, *, header: dict[str, Any] | None = None, now: float = NOW, **changes: Any) -> str:
        """Return a token for a contributor; a change of a claim to None takes it away."""
        claims = {"iss": ISSUER, "aud": AUDIENCE, "nbf": now - 60, "iat": now - 60, "exp": now + 3600}
        claims |= {"roles": [CONTRIBUTOR], "sub": "somebody"} | changes
        claims = {name: value for name, value in claims.items() if value is not None}
        headers = {"kid": self.kid} if self.kid else {}
        return jwt.encode(claims, self.private, self.algorithm, headers | (header or {}))


@cache
def private_rsa(number: int = 0, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return an RSA key; another number is another key."""
    assert number >= 0
    return rsa.generate_private_key(65537, bits)


@cache
def signing_key(kid: str | None, algorithm: str = "RS256", number: int = 0) -> SigningKey:
    """Return a key of that name."""
    if algorithm in CURVES:
        return SigningKey(kid, algorithm, ec.generate_private_key(CURVES[algorithm]))
    return SigningKey(kid, algorithm, private_rsa(number))


def jwks(*keys: SigningKey | dict[str, Any]) -> bytes:
    """Return a key set."""
    return json.dumps({"keys": [key.jwk() if isinstance(key, SigningKey) else key for key in keys]}).encode()


def segment(value: object) -> str:
    """Return one part of a token."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def with_header(token: str, header: object) -> str:
    """Return the token with another header, its signature as it was."""
    return ".".join([segment(header), *token.split(".")[1:]])


def signed_by_secret(token: str, secret: bytes, kid: str | None) -> str:
    """Return the token's claims, signed with HS256."""
    text = f"{segment({'alg': 'HS256', 'typ': 'JWT', 'kid': kid})}.{token.split('.')[1]}"
    return f"{text}.{segment(hmac.digest(secret, text.encode(), 'sha256'))}"
