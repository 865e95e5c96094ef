"""The bearer tokens of `lazulite serve`: settings in, what checks tokens out, for as long as the service runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from lazulite.auth.bearer.authentication import BearerAuthentication, KeySource
from lazulite.auth.bearer.jwks import JwksError
from lazulite.auth.bearer.jwks_file import FileKeys
from lazulite.protocol.clock import system_clock
from lazulite.server.oidc.issuer_keys import IssuerKeys, fetcher_of
from lazulite.settings.bearer import BearerSettings
from lazulite.settings.config import ConfigError


@asynccontextmanager
async def bearer_authentication(
    settings: BearerSettings | None, report: Callable[[str], None]
) -> AsyncIterator[BearerAuthentication | None]:
    """Yield what checks bearer tokens, None without an issuer. An issuer that does not answer is asked again later.

    Raises:
        ConfigError: the file with the keys cannot be read.
    """
    if settings is None:
        yield None
        return
    if settings.jwks is not None:
        try:
            keys = FileKeys(settings.jwks, report)
        except JwksError as error:
            raise ConfigError(str(error)) from None
        yield _authentication(settings, keys)
        return
    async with IssuerKeys(fetcher_of(settings.rules.issuer), report) as issuer_keys:
        yield _authentication(settings, issuer_keys)


def _authentication(settings: BearerSettings, keys: KeySource) -> BearerAuthentication:
    return BearerAuthentication(settings.rules, keys, system_clock, allow_http=settings.allow_http)
