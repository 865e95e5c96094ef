"""One request on its way through a service, once it is authenticated: the part that all services share.

Invariant: a `ServiceCall` exists only for a request with valid credentials; each operation still asks
`ServiceCall.authorize` for its own permission.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lazulite.auth.grant import Grant, Requirement, authorize
from lazulite.engine.contract import Clock, Engine
from lazulite.protocol.addressing import Address
from lazulite.protocol.message import Request
from lazulite.service.properties_store import PropertiesStore


class NamedResource(Protocol):
    """The resource that a request addresses; each service has its own kinds."""

    @property
    def name(self) -> str:
        """Return the name that a service SAS is compared with; "" for the service itself."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """Everything that the operations of any service work with, handed in once."""

    engine: Engine
    properties: PropertiesStore
    clock: Clock
    monotonic: Callable[[], float]
    """Seconds, never stepping back."""


ContextT_co = TypeVar("ContextT_co", bound=ServiceContext, covariant=True)
ResourceT_co = TypeVar("ResourceT_co", bound=NamedResource, covariant=True)


@dataclass(slots=True)
class ServiceCall(Generic[ContextT_co, ResourceT_co]):
    """An authenticated request and its target."""

    context: ContextT_co
    request: Request
    address: Address
    parameters: Mapping[str, str]
    version: str
    grant: Grant
    resource: ResourceT_co
    method: str
    """The effective method, tunnelling undone."""
    deadline: float
    """When a page of a query must be answered, on the monotonic clock."""

    @property
    def account(self) -> str:
        """The account's name."""
        return self.address.account

    def authorize(self, requirement: Requirement) -> None:
        """Refuse what the credentials do not permit.

        Raises:
            ServiceError: 403 (404 for old SAS versions).
        """
        authorize(self.grant, requirement, self.resource.name)
