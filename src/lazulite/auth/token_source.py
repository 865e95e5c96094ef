"""Tokens of a client that has an account's key, renewed before they expire."""

from collections.abc import Callable

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas import AccountSas, format_sas_date, sign_account_sas
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock

_VALIDITY_TICKS = 15 * 60 * TICKS_PER_SECOND
"""How long a token is valid; clocks of client and server may be minutes apart."""
_RENEW_AFTER_TICKS = 5 * 60 * TICKS_PER_SECOND
"""The age of a token at which the next request gets a new one."""


class TokenSource:
    """An account SAS of one service, for all its resources. Call it for a token that is valid for 10 minutes or more.

    Args:
        account: the account whose key signs.
        key: the number of the key.
        service: `table`, `queue` or `blob`.
        permission: the letters of the SAS.
        clock: the time, in ticks.
    """

    def __init__(
        self, account: Account, key: int, service: str, permission: str, clock: Callable[[], int] = system_clock
    ) -> None:
        self._account, self._key = account, key
        self._service, self._permission = service, permission
        self._clock = clock
        self._token, self._signed_at = "", 0

    def __call__(self) -> str:
        """Return the query string of a token."""
        now = self._clock()
        if not self._token or now - self._signed_at > _RENEW_AFTER_TICKS:
            sas = AccountSas(
                services=self._service[0],
                resource_types="sco",
                permission=self._permission,
                expiry=format_sas_date(now + _VALIDITY_TICKS),
            )
            self._token, self._signed_at = sign_account_sas(self._account, sas, self._key), now
        return self._token
