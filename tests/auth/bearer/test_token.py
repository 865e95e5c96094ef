"""Tokens: what each claim, header and signature must be, and that anything else is one kind of error."""

import json
import math
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt import PyJWS

from lazulite.auth.bearer.jwks import parse_jwks
from lazulite.auth.bearer.rules import BearerRules
from lazulite.auth.bearer.token import (
    CONTRIBUTOR_GRANT,
    NO_ROLE_GRANT,
    READER_GRANT,
    SKEW_SECONDS,
    TOKEN_CHARACTERS_MAX,
    BadTokenError,
    UnknownKeyError,
    check_token,
)
from lazulite.auth.grant import Grant
from tests.tokens import (
    AUDIENCE,
    CONTRIBUTOR,
    CURVES,
    ISSUER,
    NOW,
    READER,
    SigningKey,
    jwks,
    private_rsa,
    segment,
    signed_by_secret,
    signing_key,
    with_header,
)

KEY = signing_key("one")
RULES = BearerRules(ISSUER)
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 1, "roles": [READER]}
KEYS = parse_jwks(jwks(KEY, signing_key("ec", "ES256")))


def grant(token: str, rules: BearerRules = RULES, now: float = NOW) -> Grant:
    return check_token(token, KEYS, rules, now).grant


def why(token: str, rules: BearerRules = RULES, now: float = NOW) -> str:
    with pytest.raises(BadTokenError) as caught:
        check_token(token, KEYS, rules, now)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_a_good_token() -> None:
    verified = check_token(KEY.token(), KEYS, RULES, NOW)
    assert verified == (CONTRIBUTOR_GRANT, NOW - 60, NOW + 3600)


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *CURVES])
def test_every_algorithm(algorithm: str) -> None:
    key = signing_key("key", algorithm)
    for entry in (key, key.jwk(alg=None)):
        keys = parse_jwks(jwks(entry))
        assert check_token(key.token(), keys, RULES, NOW).grant is CONTRIBUTOR_GRANT
        forged = SigningKey("key", algorithm, signing_key("forger", algorithm, 1).private)
        with pytest.raises(BadTokenError, match="signature"):
            check_token(forged.token(), keys, RULES, NOW)


# Roles.


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ([READER], READER_GRANT),
        (READER, READER_GRANT),
        ([CONTRIBUTOR, READER], CONTRIBUTOR_GRANT),
        ([READER, CONTRIBUTOR], CONTRIBUTOR_GRANT),
        (["76199698-9eea-4c19-bc75-cec21354c6b6"], READER_GRANT),
        (["0a9a7e1f-b9d0-4cc4-a60e-0319b160aaa3"], CONTRIBUTOR_GRANT),
        ([], NO_ROLE_GRANT),
        (None, NO_ROLE_GRANT),
        (["storage table data contributor"], NO_ROLE_GRANT),
        ([None, 7, [CONTRIBUTOR], {CONTRIBUTOR: True}], NO_ROLE_GRANT),
        ({CONTRIBUTOR: CONTRIBUTOR}, NO_ROLE_GRANT),
        (f"{READER} {CONTRIBUTOR}", NO_ROLE_GRANT),
    ],
)
def test_roles(roles: object, expected: Grant) -> None:
    assert grant(KEY.token(roles=roles)) is expected


def test_other_claims_and_values() -> None:
    rules = BearerRules(ISSUER, role_claims=("oid", "groups"), readers=frozenset({"r"}), contributors=frozenset({"c"}))
    assert grant(KEY.token(oid="r"), rules) is READER_GRANT
    assert grant(KEY.token(oid="x", groups=["y", "c"]), rules) is CONTRIBUTOR_GRANT
    assert grant(KEY.token(sub="c"), rules) is NO_ROLE_GRANT, "neither the usual claim nor another one counts"


# Claims.


@pytest.mark.parametrize(
    "issuer", [ISSUER + "/", ISSUER.upper(), "https://evil.example", "", None, 5, [ISSUER], {ISSUER: 1}]
)
def test_another_issuer(issuer: object) -> None:
    assert why(signed_payload(json.dumps({**CLAIMS, "iss": issuer}).encode())) == "The issuer is another one."


@pytest.mark.parametrize("audience", [AUDIENCE, AUDIENCE + "/", ["x", AUDIENCE + "/"]])
@pytest.mark.parametrize("configured", [AUDIENCE, AUDIENCE + "/"])
def test_the_audience_with_and_without_a_slash(audience: object, configured: str) -> None:
    assert grant(KEY.token(aud=audience), BearerRules(ISSUER, ("api://other", configured))) is CONTRIBUTOR_GRANT


@pytest.mark.parametrize(
    "audience", ["https://graph.microsoft.com", AUDIENCE + "//", AUDIENCE + ".evil.example", "", None, 5, [], [None]]
)
def test_another_audience(audience: object) -> None:
    assert why(KEY.token(aud=audience)) == "The audience is another one."


def test_the_edges_of_its_time() -> None:
    token = KEY.token(nbf=NOW, exp=NOW + 100)
    first, last = NOW - SKEW_SECONDS, NOW + 100 + SKEW_SECONDS
    assert grant(token, now=first) is grant(token, now=last - 0.5) is CONTRIBUTOR_GRANT
    assert why(token, now=first - 0.5) == "The token is not valid yet."
    assert why(token, now=last) == "The token has expired."
    assert grant(KEY.token(nbf=None, iat=None)) is CONTRIBUTOR_GRANT
    assert grant(KEY.token(exp=NOW + 0.5)) is CONTRIBUTOR_GRANT


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize("value", ["2030-01-01", str(NOW), True, [NOW], {}, math.nan, 10**400, -(10**400)])
def test_a_time_that_is_no_number(claim: str, value: Any) -> None:
    assert why(KEY.token(**{claim: value})).startswith(("A time", "A part"))


def test_without_an_end_there_is_no_token() -> None:
    assert why(KEY.token(exp=None)) == "A time of the token is missing or no number."
    assert why(KEY.token(nbf=math.inf)) == "The token is not valid yet."
    assert why(KEY.token(exp=-math.inf)) == "The token has expired."


# Signatures, algorithms, keys.


@pytest.mark.parametrize(
    "name", ["none", "None", "NONE", "HS256", "HS512", "EdDSA", "ES256K", "", "rs256", None, 5, []]
)
@pytest.mark.parametrize("signature", [None, "", "AA"])
def test_other_algorithms(name: object, signature: str | None) -> None:
    token = with_header(KEY.token(), {"alg": name, "kid": "one"})
    if signature is not None:
        token = token[: token.rindex(".") + 1] + signature
    assert why(token) in ("The algorithm is not allowed.", "The token is not a signed JWT of a usual length.")


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
@pytest.mark.parametrize("kid", ["one", None])
def test_the_public_key_is_no_secret_to_sign_with(encoding: Encoding, kid: str | None) -> None:
    secret = KEY.private.public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
    for each in (secret, secret.strip(), json.dumps(KEY.jwk()).encode()):
        assert why(signed_by_secret(KEY.token(), each, kid)) == "The algorithm is not allowed."


def test_a_key_is_used_for_no_other_algorithm_than_its_own() -> None:
    stranger = SigningKey("one", "PS256", KEY.private)
    with pytest.raises(UnknownKeyError):
        check_token(stranger.token(), KEYS, RULES, NOW)
    with pytest.raises(UnknownKeyError):
        check_token(SigningKey("ec", "RS256", KEY.private).token(), KEYS, RULES, NOW)


@pytest.mark.parametrize(
    "kid", ["two", "", "../../../../dev/null", "/dev/null", "one\x00", "' OR 1=1 --", "ONE", "k" * 256]
)
def test_an_unknown_key(kid: str) -> None:
    with pytest.raises(UnknownKeyError):
        check_token(KEY.token(header={"kid": kid}), KEYS, RULES, NOW)


@pytest.mark.parametrize("claims", [{"iss": "https://evil.example"}, {"aud": "x"}, {"exp": NOW - 61}, {"exp": None}])
def test_no_other_key_could_mend_what_is_wrong_anyway(claims: dict[str, Any]) -> None:
    with pytest.raises(BadTokenError) as caught:
        check_token(signing_key("two").token(**claims), KEYS, RULES, NOW)
    assert not isinstance(caught.value, UnknownKeyError)


@pytest.mark.parametrize("kid", ["k" * 257, 1, ["one"], {"one": 1}, True])
def test_a_name_of_a_key_that_cannot_be_one(kid: object) -> None:
    token = with_header(KEY.token(), {"alg": "RS256", "kid": kid})
    assert why(token) == "The key's name is not usable."


def test_keys_that_a_token_brings_along_are_not_looked_at() -> None:
    forger = SigningKey("one", "RS256", private_rsa(1))
    for header in ({"jwk": forger.jwk()}, {"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example/x"}):
        assert why(forger.token(header=header)) == "The signature is wrong."
        assert grant(KEY.token(header=header)) is CONTRIBUTOR_GRANT


def test_extensions_that_a_token_demands() -> None:
    headers: list[dict[str, Any]] = [{"crit": ["exp"], "exp": 1}, {"crit": []}, {"b64": False}, {"b64": True}]
    for header in headers:
        assert (
            why(with_header(KEY.token(), {"alg": "RS256", "kid": "one"} | header)) == "The token demands an extension."
        )


def test_a_token_that_was_tampered_with() -> None:
    head, claims, signature = KEY.token(roles=[READER]).split(".")
    richer = KEY.token().split(".")[1]
    assert why(f"{head}.{richer}.{signature}") == "The signature is wrong."
    assert why(f"{head}.{claims}.{segment(bytes(256))}") == "The signature is wrong."
    assert why(f"{head}.{claims}.{signature[:-4]}") == "The signature is wrong."
    assert why(with_header(f"{head}.{claims}.{signature}", {"alg": "RS256", "kid": "one"})) == "The signature is wrong."


def test_a_signed_payload_that_is_no_object() -> None:
    for payload in (b"[]", b"1", b"", b"\xff", b"[" * 5000):
        assert why(signed_payload(payload)).startswith(("A part", "The token is not"))


def signed_payload(payload: bytes) -> str:
    return PyJWS().encode(payload, KEY.private, "RS256", {"kid": "one"})


def test_the_longest_token() -> None:
    spare = TOKEN_CHARACTERS_MAX - len(KEY.token(pad=""))
    token = KEY.token(pad="x" * (spare * 3 // 4 - 1))
    assert TOKEN_CHARACTERS_MAX - 4 < len(token) <= TOKEN_CHARACTERS_MAX
    assert grant(token) is CONTRIBUTOR_GRANT
    assert why(KEY.token(pad="x" * TOKEN_CHARACTERS_MAX)) == "The token is not a signed JWT of a usual length."


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "a.b", "a.b.c.d", "a.b.c.d.e", "a.b.", ".b.c", "a..c", "a b.c.d", "é.é.é", "a.b.c\n", "a=.b.c"],
)
def test_what_does_not_look_like_a_token(token: str) -> None:
    assert why(token) == "The token is not a signed JWT of a usual length."


# Anything.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "alg": st.sampled_from(["RS256", "ES256", "none", "HS256"]) | JSON,
        "kid": st.sampled_from(["one", "ec"]) | JSON,
        "crit": JSON,
        "b64": JSON,
        "typ": JSON,
    },
)
PARTS = (HEADERS | JSON).map(segment) | st.binary(max_size=300).map(segment) | st.text("abAQ-_09", max_size=40)


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")) | st.tuples(PARTS, PARTS, PARTS).map(".".join))
def test_any_text_is_refused_in_the_same_way(token: str) -> None:
    with pytest.raises(BadTokenError):
        check_token(token, KEYS, RULES, NOW)


@given(st.dictionaries(st.sampled_from(["aud", "nbf", "exp", "roles"]), JSON, max_size=3))
def test_any_claims_make_a_grant_or_are_refused_in_the_same_way(claims: dict[str, Any]) -> None:
    try:
        found = grant(signed_payload(json.dumps(CLAIMS | claims).encode()))
    except BadTokenError:
        return
    assert found in (READER_GRANT, NO_ROLE_GRANT)


@given(st.integers(0, 2000), st.characters())
def test_a_token_with_one_character_changed_proves_nothing(at: int, character: str) -> None:
    token = KEY.token()
    at %= len(token)
    changed = token[:at] + character + token[at + 1 :]
    if changed != token:
        why(changed)
