"""Token credentials for the SDK, and the issuer and server that they are for."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from azure.core.credentials import AccessToken
from tests.certificates import Authority
from tests.issuer import Issuer, issuing
from tests.server_process import serving
from tests.tokens import SigningKey, signing_key

FAR = 2**31


class Secured(NamedTuple):
    """A server that accepts the tokens of an issuer, over TLS."""

    endpoint: str
    issuer: Issuer
    key: SigningKey
    root: Path
    """The certificate that clients must trust."""

    def token(self, key: SigningKey | None = None, **claims: Any) -> str:
        """Return a contributor's token, good for now; claims may be changed."""
        return self.issuer.token(key or self.key, time.time(), **claims)

    def options(self) -> dict[str, Any]:
        """Return what every client is made with."""
        return {"connection_verify": str(self.root), "retry_total": 0}


@contextmanager
def secured(directory: Path) -> Iterator[Secured]:
    """Run an issuer and a server until the block ends."""
    authority = Authority(directory)
    key = signing_key("first")
    with issuing(key) as issuer:
        flags = (*authority.issue().flags, "--oidc-issuer", issuer.url)
        with serving(directory / "data", *flags) as server:
            yield Secured(server.account.endpoint, issuer, key, authority.root)


class Credential:
    """Gives a token made for what was asked; notes what was asked."""

    def __init__(self, make: Callable[[str | None], str]) -> None:
        self._make = make
        self.asked: list[tuple[tuple[str, ...], str | None]] = []

    def get_token(
        self, *scopes: str, claims: str | None = None, tenant_id: str | None = None, enable_cae: bool = False, **_: Any
    ) -> AccessToken:
        """Return a token, `tenant_id` being the tenant that a challenge named."""
        self.asked.append((scopes, tenant_id))
        return AccessToken(self._make(tenant_id), FAR)


class AsyncCredential(Credential):
    """The same, awaited."""

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:  # type: ignore[override]  # as the SDK has it
        """Return a token."""
        return super().get_token(*scopes, **options)

    async def close(self) -> None:
        """Hold nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.close()
