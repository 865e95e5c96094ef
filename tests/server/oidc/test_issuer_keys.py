"""The keys of an issuer: fetched, kept, renewed, dropped, by a clock and a sleep that the test holds."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator

import pytest

from lazulite.auth.bearer.authentication import KeysUnavailableError
from lazulite.auth.bearer.jwks import JWKS_BYTES_MAX, JwksError, KeySet, parse_jwks
from lazulite.server.oidc.fetch import FetchError
from lazulite.server.oidc.issuer_keys import (
    DISCOVERY_BYTES_MAX,
    REFRESH_SECONDS,
    RETRY_SECONDS,
    TRUSTED_SECONDS,
    UNKNOWN_KEY_SECONDS,
    IssuerKeys,
    fetch_issuer_keys,
    fetcher_of,
)
from tests.issuer import DISCOVERY, KEYS, TENANT, Issuer, issuing
from tests.tokens import SigningKey, jwks, signing_key

TLS = ssl.create_default_context()
ONE, TWO = signing_key("one"), signing_key("two", "ES256")


def key_set(*keys: SigningKey) -> KeySet:
    return parse_jwks(jwks(*keys))


class Fixture:
    """An issuer in memory: `answer` is what the next fetches give, an open `gate` lets them through."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.answer: KeySet | Exception = key_set(ONE)
        self.gate = asyncio.Event()
        self.gate.set()
        self.fetches = 0
        self.begun: asyncio.Queue[None] = asyncio.Queue()
        self.reports: list[str] = []
        self.slept: asyncio.Queue[float] = asyncio.Queue()
        self.wake = asyncio.Semaphore(0)
        self.source = IssuerKeys(self.fetch, self.reports.append, monotonic=lambda: self.now_s, sleep=self.sleep)

    async def fetch(self) -> KeySet:
        self.fetches += 1
        self.begun.put_nowait(None)
        answer = self.answer
        await self.gate.wait()
        if isinstance(answer, Exception):
            raise answer
        return KeySet(answer.keys)

    async def sleep(self, seconds: float) -> None:
        self.slept.put_nowait(seconds)
        await self.wake.acquire()

    async def refreshed(self) -> float:
        """Let the background fetch again; return how long it sleeps afterwards."""
        self.wake.release()
        return await self.slept.get()


@pytest.fixture(name="issuer")
async def _issuer() -> AsyncIterator[Fixture]:
    fixture = Fixture()
    async with fixture.source:
        assert await fixture.slept.get() == REFRESH_SECONDS
        await fixture.begun.get()
        yield fixture


async def test_the_first_request_waits_for_the_first_fetch() -> None:
    fixture = Fixture()
    fixture.gate.clear()
    async with fixture.source as source:
        asking = [asyncio.create_task(source.current()) for _ in range(3)]
        await asyncio.sleep(0)
        fixture.gate.set()
        assert await asyncio.gather(*asking) == [key_set(ONE)] * 3
        assert fixture.fetches == 1


async def test_they_are_renewed_in_the_background(issuer: Fixture) -> None:
    known = await issuer.source.current()
    assert await issuer.refreshed() == REFRESH_SECONDS
    assert await issuer.source.current() is known, "the same keys stay the same object"
    issuer.answer = key_set(TWO)
    await issuer.refreshed()
    assert await issuer.source.current() == key_set(TWO), "the dropped key is gone"
    assert issuer.fetches == 3


async def test_requests_go_on_while_they_are_renewed(issuer: Fixture) -> None:
    known = await issuer.source.current()
    issuer.gate.clear()
    issuer.wake.release()
    await issuer.begun.get()
    assert await issuer.source.current() is known
    issuer.gate.set()


async def test_an_issuer_that_is_down_is_believed_for_a_while(issuer: Fixture) -> None:
    known = await issuer.source.current()
    issuer.answer = FetchError("it is down")
    assert await issuer.refreshed() == RETRY_SECONDS
    assert await issuer.refreshed() == RETRY_SECONDS
    assert issuer.reports == ["no signing keys for bearer tokens: it is down; retried until there are"]
    issuer.now_s += TRUSTED_SECONDS
    assert await issuer.source.current() is known
    issuer.now_s += 0.1
    with pytest.raises(KeysUnavailableError):
        await issuer.source.current()
    with pytest.raises(KeysUnavailableError):
        await issuer.source.renewed(known)
    issuer.answer = key_set(ONE)
    assert await issuer.refreshed() == REFRESH_SECONDS
    assert await issuer.source.current() is known
    assert issuer.reports[1:] == ["the issuer of bearer tokens gives its signing keys again"]


@pytest.mark.parametrize("error", [FetchError("down"), JwksError("rubbish")])
async def test_an_issuer_that_is_down_from_the_start(error: Exception) -> None:
    fixture = Fixture()
    fixture.answer = error
    async with fixture.source as source:
        with pytest.raises(KeysUnavailableError):
            await source.current()
        assert await fixture.slept.get() == RETRY_SECONDS
        fixture.answer = key_set(ONE)
        await fixture.refreshed()
        assert await source.current() == key_set(ONE)


async def test_an_unknown_key_brings_newer_ones_at_once(issuer: Fixture) -> None:
    known = await issuer.source.current()
    issuer.answer = key_set(ONE, TWO)
    assert await issuer.source.renewed(known) == key_set(ONE, TWO)
    issuer.answer = key_set(TWO)
    assert await issuer.source.renewed(await issuer.source.current()) == key_set(TWO)
    assert issuer.fetches == 3, "what brings something may be done again at once"


async def test_unknown_keys_cause_one_fetch_in_a_while_and_wait_for_it(issuer: Fixture) -> None:
    known = await issuer.source.current()
    assert await issuer.source.renewed(known) is known
    assert issuer.fetches == 2
    issuer.now_s += 1
    asking = [asyncio.create_task(issuer.source.renewed(known)) for _ in range(3)]
    for _ in asking:
        assert await issuer.slept.get() == UNKNOWN_KEY_SECONDS - 1
    assert issuer.fetches == 2
    issuer.now_s += UNKNOWN_KEY_SECONDS
    issuer.answer = key_set(ONE, TWO)
    for _ in range(4):  # one of them is the background's
        issuer.wake.release()
    assert await asyncio.gather(*asking) == [key_set(ONE, TWO)] * 3
    assert issuer.fetches == 3


async def test_an_issuer_that_is_down_is_not_asked_for_unknown_keys_all_the_time(issuer: Fixture) -> None:
    known = await issuer.source.current()
    issuer.answer = FetchError("down")
    assert await issuer.source.renewed(known) is known
    asking = asyncio.create_task(issuer.source.renewed(known))
    assert await issuer.slept.get() == UNKNOWN_KEY_SECONDS
    assert issuer.fetches == 2
    asking.cancel()


async def test_requests_with_unknown_keys_share_one_fetch(issuer: Fixture) -> None:
    known = await issuer.source.current()
    issuer.answer = key_set(TWO)
    issuer.gate.clear()
    asking = [asyncio.create_task(issuer.source.renewed(known)) for _ in range(5)]
    await issuer.begun.get()
    asking.pop().cancel()
    issuer.gate.set()
    assert await asyncio.gather(*asking) == [key_set(TWO)] * 4
    assert issuer.fetches == 2


async def test_a_fetch_that_began_before_the_key_was_there_does_not_count(issuer: Fixture) -> None:
    known = await issuer.source.current()
    issuer.gate.clear()
    issuer.wake.release()
    await issuer.begun.get()
    issuer.answer = key_set(ONE, TWO)
    asking = [asyncio.create_task(issuer.source.renewed(known)) for _ in range(3)]
    await asyncio.sleep(0)
    issuer.gate.set()
    assert await asyncio.gather(*asking) == [key_set(ONE, TWO)] * 3
    assert issuer.fetches == 3


async def test_a_slow_issuer_is_not_waited_for_for_ever() -> None:
    reports: list[str] = []
    slept: asyncio.Queue[float] = asyncio.Queue()

    async def never() -> KeySet:
        await asyncio.Event().wait()
        raise AssertionError

    async def sleep(seconds: float) -> None:
        slept.put_nowait(seconds)
        await asyncio.Event().wait()

    async with IssuerKeys(never, reports.append, sleep=sleep, fetch_seconds_max=0.01) as source:
        with pytest.raises(KeysUnavailableError):
            await source.current()
        assert await slept.get() == RETRY_SECONDS
    assert reports == [
        "no signing keys for bearer tokens: the issuer did not answer within 0.01 s; retried until there are"
    ]


async def test_the_end_does_not_wait_for_the_issuer() -> None:
    fixture = Fixture()
    fixture.gate.clear()
    async with fixture.source as source:
        asking = asyncio.create_task(source.current())
        await asyncio.sleep(0)
    with pytest.raises(KeysUnavailableError):
        await asking
    assert len(asyncio.all_tasks()) == 1


# Over HTTP.


@pytest.fixture(name="real")
def _real() -> Iterator[Issuer]:
    with issuing(ONE) as issuer:
        yield issuer


async def test_the_configuration_says_where_the_keys_are(real: Issuer) -> None:
    assert await fetch_issuer_keys(real.url, TLS) == key_set(ONE)
    assert real.asked == [f"/{TENANT}/v2.0{DISCOVERY}", KEYS]


async def test_an_issuer_with_a_slash_at_the_end(real: Issuer) -> None:
    real.answers[DISCOVERY] = (
        200,
        json.dumps({"issuer": f"{real.origin}/", "jwks_uri": real.origin + KEYS}).encode(),
    )
    assert await fetch_issuer_keys(f"{real.origin}/", TLS) == key_set(ONE)


async def test_the_configuration_of_another_issuer(real: Issuer) -> None:
    for other in (real.url + "/", "https://evil.example", None, [real.url]):
        real.configure(issuer=other, jwks_uri=real.origin + KEYS)
        with pytest.raises(FetchError, match="not the configuration"):
            await fetch_issuer_keys(real.url, TLS)


@pytest.mark.parametrize(
    "url",
    [None, 5, "", "/keys", "file:///etc/passwd", "ftp://x/", "http://localhost:1/keys", "http://127.0.0.1:1/keys"],
)
async def test_keys_in_a_place_that_cannot_be_trusted(real: Issuer, url: object) -> None:
    real.configure(issuer=real.url, jwks_uri=url)
    with pytest.raises(FetchError):
        await fetch_issuer_keys(real.url, TLS)
    assert KEYS not in real.asked


async def test_keys_over_plain_http_come_from_the_issuer_itself_or_not_at_all(real: Issuer) -> None:
    with issuing(TWO) as other:
        real.configure(issuer=real.url, jwks_uri=other.origin + KEYS)
        with pytest.raises(FetchError, match="not an https URL"):
            await fetch_issuer_keys(real.url, TLS)
        assert other.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"rubbish"),
        (200, b"[" * 60_000),
        (200, b"{}"),
        (404, b"{}"),
        (302, b""),
        (200, b" " * (DISCOVERY_BYTES_MAX + 1)),
    ],
    ids=str,
)
async def test_a_configuration_that_is_none(real: Issuer, answer: tuple[int, bytes]) -> None:
    real.answers[f"/{TENANT}/v2.0{DISCOVERY}"] = answer
    with pytest.raises(FetchError):
        await fetch_issuer_keys(real.url, TLS)


@pytest.mark.parametrize(
    "answer",
    [(200, b"rubbish"), (200, b'{"keys":[]}'), (500, b""), (302, b""), (200, b" " * (JWKS_BYTES_MAX + 1))],
    ids=str,
)
async def test_keys_that_are_none(real: Issuer, answer: tuple[int, bytes]) -> None:
    real.answers[KEYS] = answer
    with pytest.raises((FetchError, JwksError)):
        await fetch_issuer_keys(real.url, TLS)


async def test_a_spoiled_answer_leaves_the_keys_as_they_were(real: Issuer) -> None:
    reports: list[str] = []
    async with IssuerKeys(fetcher_of(real.url), reports.append) as source:
        known = await source.current()
        real.answers[KEYS] = (200, b"rubbish")
        assert await source.renewed(known) is known
        assert reports == ["no signing keys for bearer tokens: the key set is not JSON; retried until there are"]
