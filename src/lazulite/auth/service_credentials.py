"""The rules of credentials that differ from service to service; each service hands its own to the `Authenticator`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lazulite.auth.bearer.rules import BearerConventions
from lazulite.auth.delegation.sas import ParseDelegationSas
from lazulite.auth.sas.service_sas import ServiceSas
from lazulite.auth.shared_key import Canonicalize, Respell
from lazulite.protocol.version import REJECTIONS_NAMED_SINCE

_ACCOUNT_SAS_MARKER = "ss"


@dataclass(frozen=True, slots=True)
class ServiceCredentials:
    """The rules of one service."""

    letter: str
    """The letter of the service in an account SAS."""
    canonicalize: Canonicalize
    """The string-to-sign of Shared Key."""
    sas_marker: str
    """The query parameter that tells a service SAS from an account SAS."""
    sas_parameters: tuple[str, ...]
    """Every query parameter that takes part in a service SAS."""
    parse_sas: Callable[[Mapping[str, str]], ServiceSas]
    """Read a service SAS from query parameters; raise `MalformedSasError`."""
    bearer: BearerConventions
    """The roles of bearer tokens, and their codes."""
    challenged_since: str = REJECTIONS_NAMED_SINCE
    """The first version that rejects a request without credentials with 401, not with 404 `ResourceNotFound`."""
    hides_from_unstated: bool = False
    """Whether a request without credentials that states no version gets the 404."""
    respell: Respell | None = None
    """What a path names, as the service signs it by Shared Key, too (§44). None: only the path that came is signed."""
    parse_delegation_sas: ParseDelegationSas | None = None
    """Read a user delegation SAS of a request. None: there are none."""
    sas_resource: Callable[[str, Mapping[str, str]], Mapping[str, str]] | None = None
    """Returns the fields of the resource that a service SAS signs, given the path below the account, percent-encoded,
    and the query parameters. `sas_marker` is one of the fields. No client can send them: each name has an upper-case
    letter. None: query parameters name the resource."""

    def sas_fields(self, path: str, parameters: Mapping[str, str]) -> Mapping[str, str]:
        """Return the fields of a SAS: the query parameters, and those of the resource if a service SAS signs it."""
        if self.sas_resource is None or _ACCOUNT_SAS_MARKER in parameters:
            return parameters
        return {**parameters, **self.sas_resource(path, parameters)}
