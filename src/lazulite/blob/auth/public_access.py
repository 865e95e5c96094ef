"""Reading without credentials from containers that are public. Source: REST reference, Set Container ACL."""

from collections.abc import Awaitable, Callable, Mapping

from lazulite.auth.accounts.account import Account
from lazulite.auth.grant import Grant
from lazulite.blob.auth.requirements import LEVELS
from lazulite.blob.auth.sas import BlobScope
from lazulite.blob.resource import Kind, resource_of
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.resource_names import NAME_MAX
from lazulite.service.routing import unknown_component

LevelOf = Callable[[str, str], Awaitable[str]]
"""(account, container) -> the level of public access, a key of `LEVELS`; "" for none, and without such a container."""
_READS = frozenset({"GET", "HEAD"})


class BlobPublicAccess:
    """The containers that are public: a `PublicAccess`. Only a read of a container or blob looks one up.

    Args:
        level_of: tells how public a container is.
    """

    def __init__(self, level_of: LevelOf) -> None:
        self._level_of = level_of

    async def grant(
        self, account: Account, method: str, path: str, parameters: Mapping[str, str], code: str
    ) -> Grant | None:
        """See `PublicAccess`.

        Raises:
            ServiceError: `PublicAccessNotPermitted`; `InvalidQueryParameterValue` for the account's root as such.
        """
        if method not in _READS:
            return None
        kind, container, _ = resource_of(path, parameters)
        if kind is Kind.SERVICE:
            if "comp" not in parameters:
                raise unknown_component()
            return None
        if not account.switches.public_access:
            raise ServiceError("PublicAccessNotPermitted")
        if len(container) > NAME_MAX:
            return None
        levels = LEVELS.get(await self._level_of(account.name, container))
        if levels is None:
            return None
        return Grant("anonymous", levels, scope=BlobScope(container), anonymous_code=code)
