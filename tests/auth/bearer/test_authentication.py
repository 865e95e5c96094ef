"""Bearer tokens on requests: the challenge, the codes, the memory of tokens, and keys that come and go."""

from collections.abc import Collection

import pytest

from lazulite.auth.bearer import authentication as bearer_authentication
from lazulite.auth.bearer.authentication import BearerAuthentication, KeysUnavailableError, challenge
from lazulite.auth.bearer.jwks import KeySet, parse_jwks
from lazulite.auth.bearer.rules import BearerConventions, BearerRules
from lazulite.auth.bearer.token import SKEW_SECONDS, VerifiedToken, check_token
from lazulite.auth.grant import Grant
from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.version import BEARER_SINCE
from lazulite.queue.roles import QUEUE_BEARER
from lazulite.table.roles import TABLE_BEARER, TABLE_ROLES
from tests.tokens import ISSUER, NOW, SigningKey, jwks, signing_key

ONE, TWO = signing_key("one"), signing_key("two", "ES256")
BEFORE = "2019-02-02"
CHALLENGE = (
    "Bearer authorization_uri=https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/oauth2/authorize "
    "resource_id=https://storage.azure.com"
)


EVERYTHING = TABLE_ROLES[1].actions


class Keys:
    """Keys that a test sets; `coming` are the keys that the issuer has by now."""

    def __init__(self, *keys: SigningKey) -> None:
        self.in_force: KeySet | None = parse_jwks(jwks(*keys))
        self.coming: list[KeySet] = []
        self.looks = 0

    async def current(self) -> KeySet:
        if self.in_force is None:
            raise KeysUnavailableError
        return self.in_force

    async def renewed(self, known: KeySet) -> KeySet:
        assert known is self.in_force
        self.looks += 1
        if self.coming:
            self.in_force = self.coming.pop(0)
        return await self.current()


class Fixture:
    def __init__(
        self,
        *keys: SigningKey,
        allow_http: bool = False,
        entries_max: int = 100,
        conventions: BearerConventions = TABLE_BEARER,
    ) -> None:
        self.keys = Keys(*keys)
        self.now = float(NOW)
        self.authentication = BearerAuthentication(
            conventions,
            BearerRules(ISSUER),
            self.keys,
            self.ticks,
            allow_http=allow_http,
            cache_entries_max=entries_max,
        )

    def ticks(self) -> int:
        return int(self.now * TICKS_PER_SECOND) + UNIX_EPOCH_TICKS

    async def ask(self, token: str, scheme: str = "https", version: str = BEARER_SINCE, account: str = "acct") -> Grant:
        return await self.authentication.authenticate(token, scheme, version, account)

    async def rejection(
        self, token: str, scheme: str = "https", version: str = BEARER_SINCE, account: str = "acct"
    ) -> tuple[int, str]:
        with pytest.raises(ServiceError) as caught:
            await self.ask(token, scheme, version, account)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        assert len(token) < 9 or token not in repr(caught.value)
        return caught.value.status, caught.value.code


@pytest.fixture(name="service")
def _service() -> Fixture:
    return Fixture(ONE)


@pytest.fixture(name="checks")
def _checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens whose signature was checked."""
    seen: list[str] = []

    def counted(token: str, keys: KeySet, rules: BearerRules, audiences: Collection[str], now: float) -> VerifiedToken:
        seen.append(token)
        return check_token(token, keys, rules, audiences, now)

    monkeypatch.setattr(bearer_authentication, "check_token", counted)
    return seen


@pytest.mark.parametrize("version", [BEFORE, BEARER_SINCE, "2030-01-01"])
async def test_a_good_token_at_any_version(service: Fixture, version: str) -> None:
    assert (await service.ask(ONE.token(), version=version)).actions == EVERYTHING


@pytest.mark.parametrize("token", ["", "x", "\ud800", "é", ONE.token(iss="other"), ONE.token(exp=0), TWO.token()])
async def test_a_bad_token(service: Fixture, token: str) -> None:
    assert await service.rejection(token) == (401, "InvalidAuthenticationInfo")
    assert await service.rejection(token, version="2019-12-31") == (403, "AuthenticationFailed")


async def test_a_rejection_says_why_without_the_token(service: Fixture) -> None:
    with pytest.raises(ServiceError) as caught:
        await service.ask(ONE.token(aud="https://graph.microsoft.com"))
    assert caught.value.message.endswith("Please refer to the information in the www-authenticate header.")
    assert caught.value.details == (("AuthenticationErrorDetail", "The audience is not accepted."),)


async def test_the_codes_of_queues() -> None:
    service = Fixture(ONE, conventions=QUEUE_BEARER)
    assert (await service.ask(ONE.token(), version="2017-11-09")).actions == frozenset()
    assert await service.rejection(ONE.token(), version="2017-11-08") == (400, "InvalidAuthenticationInfo")
    assert await service.rejection("x", version="2019-12-12") == (401, "NoAuthenticationInformation")
    assert await service.rejection("x", version="2019-12-11") == (403, "AuthenticationFailed")
    assert service.authentication.challenge("https", "2019-12-12") == CHALLENGE
    assert service.authentication.challenge("https", "2019-12-11") is None


@pytest.mark.parametrize("slash", ["", "/"])
async def test_the_audience_of_one_account(service: Fixture, slash: str, checks: list[str]) -> None:
    queues = Fixture(ONE, conventions=QUEUE_BEARER)
    token = ONE.token(aud=f"https://acct.queue.core.windows.net{slash}")
    await queues.ask(token)
    assert await queues.rejection(token, account="other") == (401, "NoAuthenticationInformation"), "though cached"
    assert checks == [token]
    assert await service.rejection(token) == (401, "InvalidAuthenticationInfo")


def test_configured_audiences_are_the_only_ones() -> None:
    accepted = BearerRules(ISSUER, ("api://x/",)).accepted_audiences(QUEUE_BEARER, "acct")
    assert accepted == {"api://x"}


async def test_plain_http(service: Fixture) -> None:
    for token in (ONE.token(), "x"):
        assert await service.rejection(token, "http") == (403, "AuthorizationProtocolMismatch")
    allowed = Fixture(ONE, allow_http=True)
    token = ONE.token()
    assert await allowed.ask(token, "http") is await allowed.ask(token, "https")


def test_the_challenge(service: Fixture) -> None:
    answer = service.authentication.challenge
    assert answer("https", BEARER_SINCE) == answer("https", "2030-01-01") == CHALLENGE
    assert answer("https", BEFORE) is None
    assert answer("http", BEARER_SINCE) is None
    assert Fixture(ONE, allow_http=True).authentication.challenge("http", BEARER_SINCE) == CHALLENGE


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (
            BearerRules("https://sts.windows.net/tenant/"),
            "Bearer authorization_uri=https://sts.windows.net/tenant/oauth2/authorize "
            "resource_id=https://storage.azure.com",
        ),
        (
            BearerRules("http://127.0.0.1:1", ("https://orders.example/", "api://x")),
            "Bearer authorization_uri=http://127.0.0.1:1/oauth2/authorize resource_id=https://orders.example",
        ),
        (BearerRules("https://a/b", ("orders",)), "Bearer authorization_uri=https://a/b/oauth2/authorize"),
    ],
)
def test_the_challenge_of_other_issuers(rules: BearerRules, expected: str) -> None:
    assert challenge(rules) == expected


async def test_without_keys_every_token_gets_503(service: Fixture) -> None:
    token = ONE.token()
    await service.ask(token)
    service.keys.in_force = None
    assert await service.rejection(token) == (503, "ServerBusy")


# Memory.


async def test_a_signature_is_checked_once(service: Fixture, checks: list[str]) -> None:
    tokens = [ONE.token(sub=str(number)) for number in range(3)]
    for token in tokens * 5:
        await service.ask(token)
    assert checks == tokens


async def test_a_cached_token_ends_in_time(service: Fixture, checks: list[str]) -> None:
    token = ONE.token(exp=NOW + 100)
    await service.ask(token)
    service.now = NOW + 100 + SKEW_SECONDS - 0.001
    await service.ask(token)
    service.now = NOW + 100 + SKEW_SECONDS
    assert await service.rejection(token) == (401, "InvalidAuthenticationInfo")
    service.now = NOW - 60 - SKEW_SECONDS - 1
    assert await service.rejection(token) == (401, "InvalidAuthenticationInfo")
    assert checks == [token]


async def test_a_cached_token_ends_with_its_key(service: Fixture) -> None:
    token = ONE.token()
    await service.ask(token)
    service.keys.in_force = parse_jwks(jwks(TWO))
    assert await service.rejection(token) == (401, "InvalidAuthenticationInfo")
    service.keys.in_force = parse_jwks(jwks(signing_key("one", number=1)))
    assert await service.rejection(token) == (401, "InvalidAuthenticationInfo")


async def test_no_bad_token_is_cached(service: Fixture, checks: list[str]) -> None:
    bad = ONE.token(aud="other")
    await service.rejection(bad)
    await service.rejection(bad)
    assert checks == [bad, bad]
    assert len(service.authentication._cache) == 0


async def test_the_memory_is_bounded_and_holds_no_token() -> None:
    service = Fixture(TWO, entries_max=4)
    for number in range(20):
        token = TWO.token(sub=str(number))
        await service.ask(token)
        assert len(service.authentication._cache) <= 4
    held = repr(vars(service.authentication._cache))
    assert token not in held
    assert token.rsplit(".", maxsplit=1)[-1] not in held


# Keys that come.


async def test_an_unknown_key_is_looked_for(service: Fixture) -> None:
    await service.ask(ONE.token())
    service.keys.coming = [parse_jwks(jwks(ONE, TWO))]
    await service.ask(TWO.token())
    await service.ask(ONE.token())
    assert service.keys.looks == 1


async def test_only_unknown_keys_are_looked_for(service: Fixture) -> None:
    for token in ("x", ONE.token(aud="x"), ONE.token() + "AAAA", ONE.token(exp=0)):
        await service.rejection(token)
    assert service.keys.looks == 0
    await service.rejection(TWO.token())
    assert service.keys.looks == 1


async def test_an_issuer_that_always_has_others_is_not_asked_for_ever(service: Fixture) -> None:
    service.keys.coming = [parse_jwks(jwks(ONE.jwk(kid=str(number)))) for number in range(50)]
    assert await service.rejection(TWO.token()) == (401, "InvalidAuthenticationInfo")
    assert service.keys.looks == 3


async def test_keys_that_go_while_newer_ones_are_looked_for(service: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(_: KeySet) -> KeySet:
        raise KeysUnavailableError

    monkeypatch.setattr(service.keys, "renewed", gone)
    assert await service.rejection(TWO.token()) == (503, "ServerBusy")
