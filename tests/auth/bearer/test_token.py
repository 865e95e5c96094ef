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
from lazulite.auth.bearer.rules import BearerRules, Role
from lazulite.auth.bearer.token import (
    SKEW_SECONDS,
    TOKEN_CHARACTERS_MAX,
    BadTokenError,
    UnknownKeyError,
    VerifiedToken,
    check_token,
)
from lazulite.blob.auth.requirements import BLOB_ROLES
from lazulite.queue.roles import QUEUE_ROLES
from lazulite.table.roles import TABLE_BEARER, TABLE_ROLES
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


AUDIENCES = {AUDIENCE}
READS, EVERYTHING = (role.actions for role in TABLE_ROLES)
NOTHING: frozenset[str] = frozenset()


def check(token: str, rules: BearerRules = RULES, now: float = NOW) -> VerifiedToken:
    return check_token(token, KEYS, rules, rules.accepted_audiences(TABLE_BEARER, "acct"), now)


def grant(token: str, rules: BearerRules = RULES, now: float = NOW) -> frozenset[str]:
    return rules.actions(TABLE_ROLES, check(token, rules, now).identity.roles)


def why(token: str, rules: BearerRules = RULES, now: float = NOW) -> str:
    with pytest.raises(BadTokenError) as caught:
        check(token, rules, now)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_a_good_token() -> None:
    verified = check(KEY.token())
    assert tuple(verified.identity) == ("somebody", ISSUER, {CONTRIBUTOR}, NOW - 60)
    assert tuple(verified)[1:] == ({AUDIENCE}, NOW - 60, NOW + 3600)


@pytest.mark.parametrize(
    ("claims", "oid", "tid"),
    [
        ({"oid": "o", "tid": "t"}, "o", "t"),
        ({"oid": "o" * 257, "tid": "t\n"}, "somebody", ISSUER),
        ({"oid": 5, "tid": None, "sub": "\u00fc"}, "", ISSUER),
    ],
)
def test_the_identity_of_a_bearer(claims: dict[str, Any], oid: str, tid: str) -> None:
    assert check(KEY.token(**claims)).identity[:2] == (oid, tid)


@pytest.mark.parametrize("issued", [math.inf, -math.inf, True, "1", None, 10**400, [1]])
def test_a_time_of_issue_that_is_none(issued: object) -> None:
    claims = CLAIMS | {"iat": issued, "nbf": 7, "exp": NOW + 1}
    assert check(signed_payload(json.dumps(claims).encode())).identity.issued == 7


@pytest.mark.parametrize(
    ("roles", "role"), [(roles, role) for roles in (QUEUE_ROLES, BLOB_ROLES) for role in roles], ids=lambda _: ""
)
def test_roles_of_queues_and_blobs(roles: tuple[Role, ...], role: Role) -> None:
    for value in (role.title, role.id):
        values = check(KEY.token(roles=[value])).identity.roles
        assert RULES.actions(roles, values) == role.actions
        assert RULES.actions(TABLE_ROLES, values) == NOTHING
    other = BearerRules(ISSUER, role_values={role.flag: frozenset({"x"})})
    assert other.actions(roles, frozenset({role.title})) == NOTHING
    assert other.actions(roles, frozenset({"x"})) == role.actions


def test_roles_add_up() -> None:
    sender, processor = QUEUE_ROLES[3], QUEUE_ROLES[2]
    assert RULES.actions(QUEUE_ROLES, frozenset({sender.title, processor.id})) == sender.actions | processor.actions


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *CURVES])
def test_every_algorithm(algorithm: str) -> None:
    key = signing_key("key", algorithm)
    for entry in (key, key.jwk(alg=None)):
        keys = parse_jwks(jwks(entry))
        assert check_token(key.token(), keys, RULES, AUDIENCES, NOW).identity.roles == {CONTRIBUTOR}
        forged = SigningKey("key", algorithm, signing_key("forger", algorithm, 1).private)
        with pytest.raises(BadTokenError, match="signature"):
            check_token(forged.token(), keys, RULES, AUDIENCES, NOW)


# Roles.


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        ([READER], READS),
        (READER, READS),
        ([CONTRIBUTOR, READER], EVERYTHING),
        ([READER, CONTRIBUTOR], EVERYTHING),
        (["76199698-9eea-4c19-bc75-cec21354c6b6"], READS),
        (["0a9a7e1f-b9d0-4cc4-a60e-0319b160aaa3"], EVERYTHING),
        ([], NOTHING),
        (None, NOTHING),
        (["storage table data contributor"], NOTHING),
        ([None, 7, [CONTRIBUTOR], {CONTRIBUTOR: True}], NOTHING),
        ({CONTRIBUTOR: CONTRIBUTOR}, NOTHING),
        (f"{READER} {CONTRIBUTOR}", NOTHING),
    ],
)
def test_roles(roles: object, expected: frozenset[str]) -> None:
    assert grant(KEY.token(roles=roles)) == expected


def test_other_claims_and_values() -> None:
    values = {"reader": frozenset({"r"}), "contributor": frozenset({"c"})}
    rules = BearerRules(ISSUER, role_claims=("oid", "groups"), role_values=values)
    assert grant(KEY.token(oid="r"), rules) == READS
    assert grant(KEY.token(oid="x", groups=["y", "c"]), rules) == EVERYTHING
    assert grant(KEY.token(sub="c"), rules) == NOTHING, "neither the usual claim nor another one counts"


# Claims.


@pytest.mark.parametrize(
    "issuer", [ISSUER + "/", ISSUER.upper(), "https://evil.example", "", None, 5, [ISSUER], {ISSUER: 1}]
)
def test_another_issuer(issuer: object) -> None:
    assert (
        why(signed_payload(json.dumps({**CLAIMS, "iss": issuer}).encode()))
        == "The issuer is not the configured issuer."
    )


@pytest.mark.parametrize("audience", [AUDIENCE, AUDIENCE + "/", ["x", AUDIENCE + "/"]])
@pytest.mark.parametrize("configured", [AUDIENCE, AUDIENCE + "/"])
def test_the_audience_with_and_without_a_slash(audience: object, configured: str) -> None:
    assert grant(KEY.token(aud=audience), BearerRules(ISSUER, ("api://other", configured))) == EVERYTHING


@pytest.mark.parametrize(
    "audience", ["https://graph.microsoft.com", AUDIENCE + "//", AUDIENCE + ".evil.example", "", None, 5, [], [None]]
)
def test_another_audience(audience: object) -> None:
    assert why(KEY.token(aud=audience)) == "The audience is not accepted."


def test_the_edges_of_its_time() -> None:
    token = KEY.token(nbf=NOW, exp=NOW + 100)
    first, last = NOW - SKEW_SECONDS, NOW + 100 + SKEW_SECONDS
    assert grant(token, now=first) == grant(token, now=last - 0.5) == EVERYTHING
    assert why(token, now=first - 0.5) == "The token is not valid yet."
    assert why(token, now=last) == "The token has expired."
    assert grant(KEY.token(nbf=None, iat=None)) == EVERYTHING
    assert grant(KEY.token(exp=NOW + 0.5)) == EVERYTHING


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize("value", ["2030-01-01", str(NOW), True, [NOW], {}, math.nan, 10**400, -(10**400)])
def test_a_time_that_is_no_number(claim: str, value: Any) -> None:
    assert why(KEY.token(**{claim: value})).startswith(("A time", "A part"))


def test_without_an_end_there_is_no_token() -> None:
    assert why(KEY.token(exp=None)) == "A time of the token is missing or not a number."
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
        check(stranger.token())
    with pytest.raises(UnknownKeyError):
        check(SigningKey("ec", "RS256", KEY.private).token())


@pytest.mark.parametrize(
    "kid", ["two", "", "../../../../dev/null", "/dev/null", "one\x00", "' OR 1=1 --", "ONE", "k" * 256]
)
def test_an_unknown_key(kid: str) -> None:
    with pytest.raises(UnknownKeyError):
        check(KEY.token(header={"kid": kid}))


@pytest.mark.parametrize("claims", [{"iss": "https://evil.example"}, {"aud": "x"}, {"exp": NOW - 61}, {"exp": None}])
def test_no_other_key_could_mend_what_is_wrong_anyway(claims: dict[str, Any]) -> None:
    with pytest.raises(BadTokenError) as caught:
        check(signing_key("two").token(**claims))
    assert not isinstance(caught.value, UnknownKeyError)


@pytest.mark.parametrize("kid", ["k" * 257, 1, ["one"], {"one": 1}, True])
def test_a_name_of_a_key_that_cannot_be_one(kid: object) -> None:
    token = with_header(KEY.token(), {"alg": "RS256", "kid": kid})
    assert why(token) == "The key id is too long or not a string."


def test_keys_that_a_token_brings_along_are_not_looked_at() -> None:
    forger = SigningKey("one", "RS256", private_rsa(1))
    for header in ({"jwk": forger.jwk()}, {"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example/x"}):
        assert why(forger.token(header=header)) == "The signature is wrong."
        assert grant(KEY.token(header=header)) == EVERYTHING


def test_extensions_that_a_token_demands() -> None:
    headers: list[dict[str, Any]] = [{"crit": ["exp"], "exp": 1}, {"crit": []}, {"b64": False}, {"b64": True}]
    for header in headers:
        assert (
            why(with_header(KEY.token(), {"alg": "RS256", "kid": "one"} | header))
            == "The token requires an extension that is not supported."
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
    assert grant(token) == EVERYTHING
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
def test_any_text_is_rejected_in_the_same_way(token: str) -> None:
    with pytest.raises(BadTokenError):
        check(token)


@given(st.dictionaries(st.sampled_from(["aud", "nbf", "exp", "roles"]), JSON, max_size=3))
def test_any_claims_make_a_grant_or_are_rejected_in_the_same_way(claims: dict[str, Any]) -> None:
    try:
        found = grant(signed_payload(json.dumps(CLAIMS | claims).encode()))
    except BadTokenError:
        return
    assert found in (READS, NOTHING)


@given(st.integers(0, 2000), st.characters())
def test_a_token_with_one_character_changed_proves_nothing(at: int, character: str) -> None:
    token = KEY.token()
    at %= len(token)
    changed = token[:at] + character + token[at + 1 :]
    if changed != token:
        why(changed)
