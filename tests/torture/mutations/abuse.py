"""Mutations that the campaign of hostile clients must find."""

from collections.abc import Callable, Mapping

from lazulite.auth.accounts.account import Account
from lazulite.auth.authenticator import Authenticator, VerifiedCredentials
from lazulite.protocol.addressing import Address
from lazulite.protocol.message import Request
from lazulite.protocol.version import RequestVersion
from lazulite.server.http.connection_parts import ConnectionParts
from lazulite.server.http.timeouts import Sweeper
from lazulite.server.limits import Limits


def _no_deadlines() -> None:
    def sweep(self: Sweeper) -> None:
        """Close no connection that is past its deadline."""

    Sweeper.sweep = sweep  # type: ignore[method-assign]


def _no_bounds() -> None:
    made, receive_body = Limits.__init__, Request.receive_body

    async def receive_all(self: Request, bytes_max: int = 0) -> None:
        await receive_body(self)

    def boundless(self: Limits, **given: float) -> None:
        made(self, **(given | {"body_bytes": 1 << 30}))  # type: ignore[arg-type]  # names and types vary

    Limits.__init__ = boundless  # type: ignore[method-assign]
    Request.receive_body = receive_all  # type: ignore[method-assign]


def _no_close() -> None:
    def stay(self: ConnectionParts, *, linger: bool) -> None:
        """Leave a connection open although its input cannot be parsed."""

    ConnectionParts.end = stay  # type: ignore[method-assign]


def _credentials_last() -> None:
    authenticate = Authenticator.authenticate

    async def late(
        self: Authenticator,
        account: Account,
        request: Request,
        address: Address,
        parameters: Mapping[str, str],
        version: RequestVersion,
    ) -> VerifiedCredentials:
        await request.receive_body()
        return await authenticate(self, account, request, address, parameters, version)

    Authenticator.authenticate = late  # type: ignore[method-assign]


MUTATIONS: dict[str, Callable[[], None]] = {
    "deadlines": _no_deadlines,
    "bounds": _no_bounds,
    "close": _no_close,
    "credentials": _credentials_last,
}
