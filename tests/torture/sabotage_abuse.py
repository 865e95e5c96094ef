"""How a server can break what hostile clients are to meet."""

from collections.abc import Callable, Mapping

from lazulite.auth.accounts.account import Account
from lazulite.auth.authenticator import Authenticator
from lazulite.auth.grant import Grant
from lazulite.protocol.addressing import Address
from lazulite.protocol.message import Request
from lazulite.server.http.connection import Connection
from lazulite.server.http.timeouts import Sweeper
from lazulite.server.limits import Limits


def _no_deadlines() -> None:
    def sweep(self: Sweeper) -> None:
        """Let everybody wait."""

    Sweeper.sweep = sweep  # type: ignore[method-assign]


def _no_bounds() -> None:
    made = Limits.__init__

    def boundless(self: Limits, **given: float) -> None:
        made(self, **(given | {"body_bytes": 1 << 30}))  # type: ignore[arg-type]  # names and types vary

    Limits.__init__ = boundless  # type: ignore[method-assign]


def _no_farewell() -> None:
    def stay(self: Connection, *, linger: bool) -> None:
        """Leave a connection open whose input nobody understands."""

    Connection._end = stay  # type: ignore[method-assign]


def _credentials_last() -> None:
    authenticate = Authenticator.authenticate

    async def late(
        self: Authenticator, account: Account, request: Request, address: Address, parameters: Mapping[str, str]
    ) -> Grant:
        await request.receive_body()
        return await authenticate(self, account, request, address, parameters)

    Authenticator.authenticate = late  # type: ignore[method-assign]


SABOTAGES: dict[str, Callable[[], None]] = {
    "deadlines": _no_deadlines,
    "bounds": _no_bounds,
    "farewell": _no_farewell,
    "credentials": _credentials_last,
}
