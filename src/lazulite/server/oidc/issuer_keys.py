"""The signing keys of an OpenID Connect issuer, fetched, kept, renewed. Source: OpenID Connect Discovery 1.0 section 4.

Invariants:
- one fetch at a time, bounded in time and bytes; requests wait for one only if a token names an unknown key, or before
  the first fetch is done;
- keys that the issuer dropped are gone within `REFRESH_SECONDS` and a fetch's time while the issuer answers, and within
  `TRUSTED_SECONDS` if it does not;
- tokens that name unknown keys cause at most one fruitless fetch in `UNKNOWN_KEY_SECONDS`; tokens that come in between
  wait for the next one, so that an attacker cannot keep a new key of the issuer from being found.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Self

from lazulite.auth.bearer.authentication import KeysUnavailableError
from lazulite.auth.bearer.jwks import JWKS_BYTES_MAX, JwksError, KeySet, parse_jwks
from lazulite.server.oidc.fetch import FetchError, fetch, origin_of

REFRESH_SECONDS = 300.0
"""From one fetch to the next."""
RETRY_SECONDS = 15.0
"""From a failed fetch to the next."""
UNKNOWN_KEY_SECONDS = 5.0
"""From a fetch for an unknown key that brought nothing new to the next for one."""
TRUSTED_SECONDS = 3600.0
"""How long keys are believed without a word from the issuer: about as long as its tokens last."""
FETCH_SECONDS_MAX = 10.0
"""For both documents together."""
DISCOVERY_BYTES_MAX = 64 * 1024
_DISCOVERY = "/.well-known/openid-configuration"


def fetcher_of(issuer: str) -> Callable[[], Awaitable[KeySet]]:
    """Return what fetches the keys of an issuer, whose certificate the system's authorities vouch for."""
    return partial(fetch_issuer_keys, issuer, ssl.create_default_context())


async def fetch_issuer_keys(issuer: str, tls: ssl.SSLContext) -> KeySet:
    """Ask an issuer where its keys are, and return them.

    Args:
        issuer: its URL, as in the `iss` of its tokens.
        tls: for https.

    Raises:
        FetchError: a document cannot be had, or is not what it should be.
        JwksError: the key set is not usable.
    """
    text = await fetch(issuer.removesuffix("/") + _DISCOVERY, bytes_max=DISCOVERY_BYTES_MAX, tls=tls)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        raise FetchError(f"{issuer}{_DISCOVERY} is not the configuration of that issuer")
    url = document.get("jwks_uri")
    # Keys that came over an unprotected connection prove nothing; the issuer's own origin was accepted as it is.
    if not isinstance(url, str) or (origin_of(url).scheme != "https" and origin_of(url) != origin_of(issuer)):
        raise FetchError(f"the jwks_uri of {issuer} is not an https URL")
    return parse_jwks(await fetch(url, bytes_max=JWKS_BYTES_MAX, tls=tls))


class IssuerKeys:
    """The keys of an issuer, renewed in the background from `async with` on. See `KeySource`.

    Args:
        fetch_keys: fetches them; raises `FetchError` or `JwksError`.
        report: takes a line for people when the issuer stops, or resumes, to provide usable keys.
        monotonic: seconds that never step back.
        sleep: waits between two fetches.
        fetch_seconds_max: how long a fetch may take.
    """

    def __init__(
        self,
        fetch_keys: Callable[[], Awaitable[KeySet]],
        report: Callable[[str], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        fetch_seconds_max: float = FETCH_SECONDS_MAX,
    ) -> None:
        self._fetch_keys = fetch_keys
        self._report = report
        self._monotonic = monotonic
        self._sleep = sleep
        self._fetch_seconds_max = fetch_seconds_max
        self._keys: KeySet | None = None
        self._asked_s = 0.0
        self._failed = False
        self._no_fetch_before_s = monotonic()
        self._fetching: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._fetching = asyncio.create_task(self._fetch_once())
        self._refreshing = asyncio.create_task(self._refresh())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [task for task in (self._refreshing, self._fetching) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def current(self) -> KeySet:
        """Return the keys in force.

        Raises:
            KeysUnavailableError: the issuer has given none, or none for `TRUSTED_SECONDS`.
        """
        if self._keys is None:
            await self._join()
        if self._keys is None or self._monotonic() - self._asked_s > TRUSTED_SECONDS:
            raise KeysUnavailableError
        return self._keys

    async def renewed(self, known: KeySet) -> KeySet:
        """Fetch newer keys than `known`, at once or, if that was in vain just before, after a while."""
        await self._join()
        wait_s = self._no_fetch_before_s - self._monotonic()
        if self._keys is known and wait_s > 0:
            await self._sleep(wait_s)
        if self._keys is known:
            await self._fetch()
            if self._keys is known:
                self._no_fetch_before_s = self._monotonic() + UNKNOWN_KEY_SECONDS
        return await self.current()

    async def _refresh(self) -> None:
        await self._join()
        while True:
            await self._sleep(RETRY_SECONDS if self._failed else REFRESH_SECONDS)
            await self._fetch()

    async def _fetch(self) -> None:
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch_once())
        await self._join()

    async def _join(self) -> None:
        """Wait for the fetch that is under way. A waiter that is cancelled does not cancel it for the others."""
        if self._fetching is not None:
            await asyncio.wait([self._fetching])

    async def _fetch_once(self) -> None:
        asked_s = self._monotonic()
        try:
            async with asyncio.timeout(self._fetch_seconds_max):
                keys = await self._fetch_keys()
        except (FetchError, JwksError) as error:
            self._note_failure(str(error))
        except TimeoutError:
            self._note_failure(f"the issuer did not answer within {self._fetch_seconds_max:g} s")
        else:
            self._asked_s = asked_s
            if keys != self._keys:
                self._keys = keys
            if self._failed:
                self._failed = False
                self._report("the issuer of bearer tokens gives its signing keys again")
        finally:
            self._fetching = None

    def _note_failure(self, why: str) -> None:
        if not self._failed:
            self._report(f"no signing keys for bearer tokens: {why}; retried until there are")
        self._failed = True
