"""Key sets: which keys are taken, for what, and what is rejected; and one in a file, which is read again."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import POLL_SECONDS
from lazulite.auth.bearer.jwks import ALGORITHMS, JWKS_BYTES_MAX, KEYS_MAX, FileKeys, JwksError, KeySet, parse_jwks
from tests.tokens import CURVES, SigningKey, jwks, private_rsa, signing_key

RSA = signing_key("rsa")
RS = {"RS256", "RS384", "RS512"}
PS = {"PS256", "PS384", "PS512"}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)
MEMBERS = st.sampled_from(["kty", "n", "e", "crv", "x", "y", "kid", "alg", "use", "key_ops"])
ENTRIES = st.sampled_from([RSA.jwk(), signing_key("ec", "ES256").jwk(), {}])

ONE, TWO = jwks(signing_key("one")), jwks(signing_key("two", "ES256"))


def algorithms(*entries: SigningKey | dict[str, Any]) -> list[set[str]]:
    return [set(key.algorithms) for key in parse_jwks(jwks(*entries)).keys]


def test_only_asymmetric_algorithms_are_known() -> None:
    assert RS | PS | set(CURVES) == ALGORITHMS


def test_a_key_verifies_what_it_says_or_what_its_type_can() -> None:
    assert algorithms(RSA) == [{"RS256"}]
    assert algorithms(RSA.jwk(alg=None)) == [RS | PS]
    assert algorithms(RSA.jwk(alg="PS512")) == [{"PS512"}]
    for name in CURVES:
        assert algorithms(signing_key("ec", name)) == algorithms(signing_key("ec", name).jwk(alg=None)) == [{name}]


@pytest.mark.parametrize(
    "entry",
    [
        {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "alg": "HS256"},
        {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "alg": "RS256"},
        RSA.jwk(alg="HS256"),
        RSA.jwk(alg="none"),
        RSA.jwk(alg="ES256"),
        RSA.jwk(alg=["RS256"]),
        RSA.jwk(use="enc"),
        {**RSA.jwk(), "key_ops": ["encrypt"]},
        {**RSA.jwk(), "key_ops": "verify"},
        RSA.jwk(kid=7),
        RSA.jwk(kid="k" * 257),
        RSA.jwk(n=None),
        RSA.jwk(n=5),
        RSA.jwk(n="!"),
        RSA.jwk(n=""),
        RSA.jwk(e="AA"),
        SigningKey("short", "RS256", private_rsa(0, 1024)).jwk(),
        SigningKey("other", "ES256", ec.generate_private_key(ec.SECP256K1())).jwk(),
        signing_key("ec", "ES256").jwk(y=signing_key("ec", "ES256").jwk()["x"]),
        signing_key("ec", "ES256").jwk(crv="P-384", alg="ES384"),
        {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
        {"kty": ["RSA"]},
        {},
        None,
        [],
        "key",
    ],
)
def test_a_key_that_can_verify_no_token_is_left_out(entry: Any) -> None:
    text = json.dumps({"keys": [entry]}).encode()
    with pytest.raises(JwksError):
        parse_jwks(text)
    both = parse_jwks(json.dumps({"keys": [entry, RSA.jwk()]}).encode())
    assert both == parse_jwks(jwks(RSA))


def test_of_a_private_key_only_the_public_half_is_used() -> None:
    numbers = private_rsa().private_numbers()
    entry = RSA.jwk(d=format(numbers.d, "x"), p="1", q="1")
    assert parse_jwks(jwks(entry)) == parse_jwks(jwks(RSA))


def test_sets_of_the_same_keys_are_equal() -> None:
    other = signing_key("other", "ES256")
    assert parse_jwks(jwks(RSA, other)) == parse_jwks(jwks({**other.jwk(), "x5t": "?"}, RSA, RSA))
    assert parse_jwks(jwks(RSA)) != parse_jwks(jwks(RSA.jwk(kid="renamed")))
    assert parse_jwks(jwks(RSA)) != parse_jwks(jwks(RSA.jwk(alg=None)))


def test_a_key_is_found_by_name_and_algorithm() -> None:
    other, nameless = signing_key("other", number=1), signing_key(None, "ES256")
    keys = parse_jwks(jwks(RSA, other, nameless))

    def kid(name: str | None, algorithm: str) -> object:
        found = keys.find(name, algorithm)
        return found and (found.kid, found.algorithms)

    assert kid("rsa", "RS256") == ("rsa", {"RS256"})
    assert kid("other", "RS256") == ("other", {"RS256"})
    assert kid("rsa", "PS256") is None
    assert kid("nobody", "RS256") is None
    assert kid(None, "ES256") == (None, {"ES256"})
    assert kid(None, "RS256") is None, "two could be meant"
    assert parse_jwks(jwks(RSA, signing_key("rsa", number=1))).find("rsa", "RS256") is None, "two could be meant"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"rubbish",
        b"\xff",
        b"[]",
        b"{}",
        b'{"keys":{}}',
        b'{"keys":[]}',
        b"[" * 100_000,
        b"9" * 10_000,
        jwks(*[RSA] * (KEYS_MAX + 1)),
        jwks(RSA) + b" " * JWKS_BYTES_MAX,
    ],
)
def test_what_is_no_key_set_is_rejected(text: bytes) -> None:
    with pytest.raises(JwksError) as caught:
        parse_jwks(text)
    assert len(str(caught.value)) < 100


def test_the_largest_set_is_taken() -> None:
    assert len(parse_jwks(jwks(*[RSA.jwk(kid=str(number)) for number in range(KEYS_MAX)])).keys) == KEYS_MAX
    text = jwks(RSA)
    assert parse_jwks(text.ljust(JWKS_BYTES_MAX))


@given(ENTRIES, st.dictionaries(MEMBERS, JSON | st.text("AQab-_=", max_size=40), max_size=3))
def test_any_key_is_taken_or_left(entry: dict[str, Any], changes: dict[str, Any]) -> None:
    text = json.dumps({"keys": [entry | changes, RSA.jwk(kid="sound")]}).encode()
    keys = parse_jwks(text)
    assert isinstance(keys, KeySet)
    assert keys.find("sound", "RS256") is not None


@given(st.binary(max_size=100) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_set_or_an_error(text: bytes) -> None:
    with pytest.raises(JwksError):
        parse_jwks(text)


class Fixture:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.now_s = 0.0
        self.reports: list[str] = []
        path.write_bytes(ONE)
        self.source = FileKeys(path, self.reports.append, lambda: self.now_s)

    async def current(self) -> KeySet:
        self.now_s += POLL_SECONDS
        return await self.source.current()

    def replace(self, content: bytes) -> None:
        other = self.path.with_suffix(".new")
        other.write_bytes(content)
        other.rename(self.path)


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Fixture:
    return Fixture(tmp_path / "keys.json")


async def test_it_is_read_again_when_it_changes(file: Fixture) -> None:
    assert await file.current() == parse_jwks(ONE)
    file.replace(TWO)
    assert await file.current() == parse_jwks(TWO)
    assert file.reports == []


async def test_it_is_not_looked_at_more_often_than_that(file: Fixture) -> None:
    known = await file.current()
    file.replace(TWO)
    assert await file.source.current() is known
    assert await file.source.renewed(known) == parse_jwks(TWO)


async def test_the_same_keys_stay_the_same_object(file: Fixture) -> None:
    known = await file.current()
    file.replace(ONE + b"\n")
    assert await file.current() is known


@pytest.mark.parametrize("content", [b"", b"rubbish", b" " * (JWKS_BYTES_MAX + 1)])
async def test_spoiled_it_leaves_the_keys_as_they_were(file: Fixture, content: bytes) -> None:
    known = await file.current()
    file.replace(content)
    assert await file.current() is await file.current() is known
    assert len(file.reports) == 1
    assert file.reports[0].startswith(str(file.path))
    assert file.reports[0].endswith("; the signing keys stay as they were")
    file.replace(TWO)
    assert await file.current() == parse_jwks(TWO)


async def test_gone_it_leaves_the_keys_as_they_were(file: Fixture) -> None:
    known = await file.current()
    file.path.unlink()
    assert await file.current() is await file.current() is known
    assert file.reports == [f"cannot read {file.path}: No such file or directory; the signing keys stay as they were"]
    file.replace(TWO)
    assert await file.current() == parse_jwks(TWO)


@pytest.mark.parametrize("content", [None, b"", b'{"keys":[]}'])
def test_from_the_start_it_must_be_good(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(JwksError, match=r"keys\.json"):
        FileKeys(path, lambda _: None)
