"""The rules of credentials that differ from service to service; each service hands its own to the `Authenticator`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lazulite.auth.sas.service_sas import ServiceSas
from lazulite.auth.shared_key import Canonicalize


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
