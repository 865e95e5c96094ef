"""The credentials of the Blob service, and anonymous reads of public containers.

Sources, in the REST reference: "Authorize with Shared Key" for the string-to-sign; Set Container ACL for public access.
"""

from collections.abc import Awaitable, Callable, Mapping

from lazulite.auth.accounts.account import Account
from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.canonicalize import string_to_sign
from lazulite.auth.grant import Grant
from lazulite.blob.auth.delegation_sas import parse_blob_delegation_sas
from lazulite.blob.auth.requirements import BLOB_BEARER, LEVELS
from lazulite.blob.auth.sas import BLOB_SAS_PARAMETERS, CONTAINER, BlobScope, parse_blob_sas, resource_fields
from lazulite.blob.resource import Kind, named_path, resource_of
from lazulite.blob.versions import CHALLENGE_SINCE, SHARED_KEY_SINCE
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.resource_names import NAME_MAX
from lazulite.protocol.version import DEFAULT_VERSION
from lazulite.service.routing import unknown_component

LevelOf = Callable[[str, str], Awaitable[str]]
"""(account, container) -> the level of public access, a key of `LEVELS`; "" for none, and without such a container."""
_READS = frozenset({"GET", "HEAD"})


def blob_string_to_sign(scheme: str, request: Request, account: str, path: str, comp: str | None) -> str:
    """Return the string-to-sign of a request: `Canonicalize` for blobs. The arguments are those of `string_to_sign`."""
    version = request.headers.get("x-ms-version") or DEFAULT_VERSION
    known = "SharedKeyLite" if version < SHARED_KEY_SINCE else scheme
    return string_to_sign(known, request, account, path, comp)


BLOB_CREDENTIALS = ServiceCredentials(
    "b",
    blob_string_to_sign,
    CONTAINER,
    BLOB_SAS_PARAMETERS,
    parse_blob_sas,
    BLOB_BEARER,
    parse_delegation_sas=parse_blob_delegation_sas,
    challenged_since=CHALLENGE_SINCE,
    hides_from_unversioned=True,
    sas_resource=resource_fields,
    normalize_path=named_path,
)


class BlobPublicAccess:
    """The public containers: a `PublicAccess`. Only a read of a container or blob needs to know the level of one.

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
