"""Verification of a bearer token: a JWT, the issuer's keys, our rules and the time in; a grant out. Pure.

Invariants:
- a claim is believed only after the signature, and the signature is checked with a key of the issuer's set and an
  algorithm that this key has: what the token says of keys (`jku`, `jwk`, `x5u`, `x5c`) is never looked at;
- any text whatever is either a token that proves something or a `BadTokenError`;
- no error text holds a part of the token.

Source: reference §14.7; RFC 7519, RFC 7515, OpenID Connect Core section 3.1.3.7.
"""

import json
import math
import re
from base64 import urlsafe_b64decode
from collections.abc import Collection
from typing import NamedTuple

from jwt import PyJWS
from jwt.exceptions import PyJWTError

from lazulite.auth.bearer.jwks import ALGORITHMS, KEY_ID_CHARACTERS_MAX, KeySet
from lazulite.auth.bearer.rules import BearerRules, bare
from lazulite.auth.grant import Identity

TOKEN_CHARACTERS_MAX = 16 * 1024
"""Entra ID's longest, with 200 groups, have about 12,000."""
SKEW_SECONDS = 60
"""How far the issuer's clock may be from ours."""

ID_CHARACTERS_MAX = 256
"""The greatest length of a user's or a tenant's id; Entra ID's have 36."""

_ISSUED_MAX = 2**53
_TOKEN = re.compile(r"([\w-]{1,4096})\.([\w-]+)\.[\w-]+", re.ASCII)
_JWS = PyJWS()


class BadTokenError(Exception):
    """The token proves nothing. The text is one sentence for people."""


class UnknownKeyError(BadTokenError):
    """The token's key is not in the set; the issuer may have a newer one."""


class VerifiedToken(NamedTuple):
    """What a token proves, and when. Times are seconds since 1970."""

    identity: Identity
    audiences: frozenset[str]
    not_before: float
    expires: float

    def check(self, audiences: Collection[str], now: float) -> None:
        """Reject it for other audiences, and outside of its time.

        Raises:
            BadTokenError: none of `audiences` is its own, or it is too early or too late.
        """
        if self.audiences.isdisjoint(audiences):
            raise BadTokenError("The audience is not accepted.")
        if now >= self.expires + SKEW_SECONDS:
            raise BadTokenError("The token has expired.")
        if now < self.not_before - SKEW_SECONDS:
            raise BadTokenError("The token is not valid yet.")


def check_token(token: str, keys: KeySet, rules: BearerRules, audiences: Collection[str], now: float) -> VerifiedToken:
    """Return what a token proves.

    Args:
        token: the text after `Bearer`.
        keys: those of the issuer.
        rules: what it must say.
        audiences: one of them must be in `aud`; see `BearerRules.accepted_audiences`.
        now: seconds since 1970.

    Raises:
        UnknownKeyError: its key is not among `keys`; with that key it might prove something.
        BadTokenError: it proves nothing.
    """
    match = _TOKEN.fullmatch(token) if len(token) <= TOKEN_CHARACTERS_MAX else None
    if match is None:
        raise BadTokenError("The token is not a signed JWT of a usual length.")
    kid, algorithm = _read_header(match[1])
    key = keys.find(kid, algorithm)
    if key is None:
        # Newer keys are not worth asking for if the token would be rejected with any.
        _judge(_read_object(_decode(match[2])), rules, audiences, now)
        raise UnknownKeyError("The issuer has no such key.")
    try:
        payload = _JWS.decode(token, key.public, [algorithm])
    except PyJWTError:
        raise BadTokenError("The signature is wrong.") from None
    return _judge(_read_object(payload), rules, audiences, now)


def _decode(segment: str) -> bytes:
    try:
        return urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except ValueError:
        raise BadTokenError("A part of the token is not base64url.") from None


def _read_header(segment: str) -> tuple[str | None, str]:
    header = _read_object(_decode(segment))
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise BadTokenError("The algorithm is not allowed.")
    if kid is not None and not (isinstance(kid, str) and len(kid) <= KEY_ID_CHARACTERS_MAX):
        raise BadTokenError("The key id is too long or not a string.")
    if "crit" in header or "b64" in header:
        raise BadTokenError("The token requires an extension that is not supported.")
    return kid, algorithm


def _read_object(text: bytes) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadTokenError("A part of the token is not a JSON object.")
    return value


def _judge(claims: dict[str, object], rules: BearerRules, audiences: Collection[str], now: float) -> VerifiedToken:
    if claims.get("iss") != rules.issuer:
        raise BadTokenError("The issuer is not the configured issuer.")
    not_before = _seconds(claims.get("nbf", -math.inf))
    verified = VerifiedToken(
        _identity(claims, rules, not_before),
        frozenset(map(bare, _texts(claims.get("aud")))),
        not_before,
        _seconds(claims.get("exp")),
    )
    verified.check(audiences, now)
    return verified


def _identity(claims: dict[str, object], rules: BearerRules, not_before: float) -> Identity:
    """Return the bearer; an issuer without object ids and tenants is asked for its `sub`, and is the tenant itself."""
    roles = frozenset(text for name in rules.role_claims for text in _texts(claims.get(name)))
    issued = claims.get("iat")
    if not isinstance(issued, int | float) or isinstance(issued, bool) or not abs(issued) < _ISSUED_MAX:
        issued = max(not_before, 0.0)
    oid = _id(claims.get("oid")) or _id(claims.get("sub"))
    return Identity(oid, _id(claims.get("tid")) or _id(rules.issuer), roles, float(issued))


def _id(claim: object) -> str:
    """Return a claim that can be a signed field of a SAS; "" for any other."""
    if not isinstance(claim, str) or len(claim) > ID_CHARACTERS_MAX or not (claim.isascii() and claim.isprintable()):
        return ""
    return claim


def _texts(claim: object) -> list[str]:
    values = claim if isinstance(claim, list) else [claim]
    return [value for value in values if isinstance(value, str)]


def _seconds(claim: object) -> float:
    """Return a NumericDate (RFC 7519 section 2)."""
    try:
        if isinstance(claim, int | float) and not isinstance(claim, bool) and not math.isnan(claim):
            return float(claim)
    except OverflowError:
        pass  # JSON knows numbers that no double holds.
    raise BadTokenError("A time of the token is missing or not a number.")
