"""The bearer tokens of `lazulite serve`: settings in, what checks tokens out, for as long as the service runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from lazulite.protocol.clock import system_clock
from lazulite.service.definition import MakeBearer
from lazulite.settings.bearer import BearerSettings
from lazulite.settings.config import ConfigError


@asynccontextmanager
async def bearer_authentication(
    settings: BearerSettings | None, report: Callable[[str], None]
) -> AsyncIterator["MakeBearer | None"]:
    """Yield what makes the check of bearer tokens for a service, None without an issuer.

    An issuer that does not answer is asked again later.

    Raises:
        ConfigError: the file with the keys cannot be read.
    """
    if settings is None:
        yield None
        return
    # They need an extra, which `settings.bearer` looked for.
    from lazulite.auth.bearer.authentication import BearerAuthentication  # noqa: PLC0415
    from lazulite.auth.bearer.jwks import JwksError  # noqa: PLC0415
    from lazulite.auth.bearer.jwks_file import FileKeys  # noqa: PLC0415
    from lazulite.server.oidc.issuer_keys import IssuerKeys, fetcher_of  # noqa: PLC0415

    make = partial(BearerAuthentication, rules=settings.rules, clock=system_clock, allow_http=settings.allow_http)
    if settings.jwks is not None:
        try:
            keys = FileKeys(settings.jwks, report)
        except JwksError as error:
            raise ConfigError(str(error)) from None
        yield partial(make, keys=keys)
        return
    async with IssuerKeys(fetcher_of(settings.rules.issuer), report) as issuer_keys:
        yield partial(make, keys=issuer_keys)
