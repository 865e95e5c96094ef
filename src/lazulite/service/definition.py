"""A service as data: everything in which it differs from the others."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Generic, TypeAlias, TypedDict, TypeVar

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.authenticator import Authenticator, PublicAccess, ServiceCredentials
from lazulite.auth.delegation.store import DelegationStore
from lazulite.auth.grant import Grant
from lazulite.engine.commit import CommitProcedure, Plain
from lazulite.engine.content.contract import ContentStore
from lazulite.engine.contract import Clock, Engine
from lazulite.engine.remote.codec import Encoding
from lazulite.engine.remote.messages import Primary
from lazulite.engine.remote.procedures import Interface
from lazulite.faults.rules import NO_FAULTS, FaultSource
from lazulite.partitions.live import LivePartitions
from lazulite.protocol.addressing import Address, Addressing
from lazulite.protocol.clock import system_clock, until_9999
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.protocol.template import StartPattern
from lazulite.protocol.version import AssumedVersion, assumed_version
from lazulite.records.catalog import TimeToLive
from lazulite.records.spaces import Space
from lazulite.service.fault_injection import Addressed, addressed_by_url
from lazulite.service.fetching import FetchSource
from lazulite.service.properties import PropertiesObserver, PropertiesStore
from lazulite.service.rejection import Rejection, reject_in_xml
from lazulite.service.routing import (
    AnyCall,
    Operation,
    QueryLimits,
    Routes,
    ServiceContext,
    ServiceResource,
    own_component,
    own_method,
)
from lazulite.traffic.meter import Meter

if TYPE_CHECKING:
    # It needs the extra oidc.
    from lazulite.auth.bearer.authentication import BearerAuthentication
    from lazulite.auth.bearer.rules import BearerConventions

MakeBearer: TypeAlias = "Callable[[BearerConventions], BearerAuthentication]"
"""Makes the check of bearer tokens, given the conventions of a service."""

T = TypeVar("T")
ContextT = TypeVar("ContextT", bound=ServiceContext)
ResourceT = TypeVar("ResourceT", bound=ServiceResource)
CallT = TypeVar("CallT", bound=AnyCall)


class SharedFields(TypedDict):
    """The fields of a `ServiceContext`."""

    engine: Engine
    properties: PropertiesStore
    delegations: DelegationStore
    clock: Clock
    monotonic: Callable[[], float]
    random: Random
    limits: QueryLimits
    meter: Meter | None
    live: LivePartitions | None
    faults: FaultSource


BeginLarge: TypeAlias = Callable[[bool], Awaitable[None]]
"""Returns when an operation may begin that holds much memory until its response is made. The argument tells whether the
request has shown good credentials."""


async def begin_at_once(_: bool) -> None:
    """Return at once: a process without a scheduler has no crowd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDependencies:
    """Everything that a service needs from its process."""

    engine: Engine
    accounts: AccountDirectory
    contents: ContentStore | None = None
    """Large byte strings beside the rows; None: the process has no store for them. A service that uses it calls
    `sweep` with its own references when it starts, unless it has a `primary`."""
    clock: Clock = system_clock
    """The time now, for signatures and errors."""
    present: Clock | None = None
    """The time by which messages appear and expire, and leases end; None: `clock`, as if it was never set."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that never step back, for the time limits of queries and of caches."""
    random: Random = field(default_factory=SystemRandom)
    """The source of multipart boundaries."""
    limits: QueryLimits = field(default_factory=QueryLimits)
    addressing: Addressing = field(default_factory=Addressing)
    """How its accounts are addressed."""
    bearer: "MakeBearer | None" = None
    """Makes the check of bearer tokens, given the conventions of the service; None without an issuer."""
    fetch_source: FetchSource | None = None
    """Reads the sources of copies on other servers; None: the operator has allowed none."""
    schedule_fairly: Callable[[Operation], Operation] = lambda operation: operation
    """Schedules an operation that outlives its request."""
    begin_large: BeginLarge = begin_at_once
    meter: Meter | None = None
    """Counts the traffic of resources; None: it is not counted."""
    live: LivePartitions | None = None
    """Decides about requests as the cloud does, while it is active; None: all of them pass."""
    faults: FaultSource = NO_FAULTS
    """Tells what requests suffer from."""
    cache_ttl_seconds: float | None = None
    """How long rows are cached; None: until they change, as each change goes through `ServiceContext.invalidations`."""

    primary: Primary | None = None
    """The process that has the store, of a worker; None: this process has it."""
    note_properties: PropertiesObserver | None = None
    """Called with the properties of an account, each time that they were read."""
    note_rejection: Callable[[Request, ServiceError], None] = lambda _, __: None
    """Called with each rejected request, before its response is made."""

    def at_store(self, interface: Interface[T], make: Callable[[], T]) -> T:
        """Return the object that all processes of a location share: made here, or a stub of the primary's."""
        return make() if self.primary is None else interface.stub(self.primary)

    @property
    def ttl(self) -> TimeToLive | None:
        """The ttl of cached rows."""
        ttl = self.cache_ttl_seconds
        return None if ttl is None else TimeToLive(ttl, self.monotonic)

    def shared(self, service: str) -> SharedFields:
        """Return the fields that the contexts of all services have.

        Args:
            service: the service's name.
        """
        clock = until_9999(self.clock)
        return SharedFields(
            engine=self.engine,
            properties=PropertiesStore(self.engine, service, self.ttl, self.note_properties),
            delegations=DelegationStore(self.engine, service, self.accounts, clock, self.random.randbytes, self.ttl),
            clock=clock,
            monotonic=self.monotonic,
            random=self.random,
            limits=self.limits,
            meter=self.meter,
            live=self.live,
            faults=self.faults,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDefinition(Generic[ContextT, ResourceT, CallT]):
    """One service."""

    name: str
    """The row of its service properties: `table`."""
    server: str
    """The `Server` header."""
    credentials: ServiceCredentials
    """The letter in an account SAS, the canonicalization of Shared Key, and the codec of the service SAS."""
    routes: Routes[CallT]
    parse_resource: Callable[[str, Mapping[str, str]], ResourceT]
    """Reads the path below the account, percent-encoded, with the query; raises `ServiceError`."""
    make_context: Callable[[ServiceDependencies], ContextT]
    make_call: Callable[[ContextT, Request, Address, Mapping[str, str], str, Grant, ResourceT, str], CallT]
    """Takes the first eight fields of a `ServiceCall`."""
    component: Callable[[CallT], str] = own_component
    """Returns the component that a call addresses; raises `ServiceError`."""
    method: Callable[[Request], str] = own_method
    """Returns the effective method; raises `ServiceError`."""
    assumed_version: AssumedVersion = assumed_version
    """Returns the version of a request that names none."""
    reject: Callable[[Rejection], Response] = reject_in_xml
    """The format of errors."""
    messages: Mapping[str, str] = field(default_factory=dict)
    """Error code -> the service's own text in place of the catalogue's."""
    keyed_path: re.Pattern[str] | None = None
    """The paths that end in keys, percent-encoding and all: the first group is the path up to them, the others are the
    keys, each as its resource has it. Where a key takes part in a permission, no operation lasts. None: no path has
    keys."""
    keyed_starts: tuple[StartPattern, ...] = ()
    """The starts of heads whose requests have these keys (`protocol.template`), as the path has them on the wire."""
    keyed_host_path: re.Pattern[str] | None = None
    """`keyed_path` where the host names the account; None: it is the same."""
    keyed_host_starts: tuple[StartPattern, ...] = ()
    """`keyed_starts` where the host names the account; none: they are the same."""
    addressed: Callable[[CallT], Addressed] = addressed_by_url
    """Tells what a request is about, for rules of faults."""
    public_access: Callable[[ContextT], PublicAccess] | None = None
    """Makes the rules for requests without credentials; None: they may do nothing."""
    spaces: tuple[Space, ...] = ()
    """Its own spaces, for the registry."""
    dropped_code: str = "ResourceNotFound"
    """The error of a request whose space was dropped meanwhile."""
    maintain_seconds: float = 0
    """The pause between two runs of `ServiceContext.maintain`; 0: it never runs."""

    commits: tuple[CommitProcedure[Plain], ...] = ()
    """The procedures of its own commits, for workers."""
    rejections: tuple[Encoding[Plain], ...] = ()
    """Its own exceptions that commits and procedures raise, for workers."""

    def authenticator(self, context: ContextT, dependencies: ServiceDependencies) -> Authenticator:
        """Return what authenticates requests of the service in a process."""
        return Authenticator(
            dependencies.accounts,
            context.clock,
            context.policies,
            self.credentials,
            delegations=context.delegations,
            bearer=None if dependencies.bearer is None else dependencies.bearer(self.credentials.bearer),
            public_access=None if self.public_access is None else self.public_access(context),
        )

    @property
    def preflight(self) -> str:
        """The name of a CORS preflight in logs."""
        return f"{self.name.title()}PreflightRequest"

    @property
    def operations(self) -> frozenset[str]:
        """The names of all operations: every text that `RequestRecord.operation` can have."""
        return self.routes.operations | {self.preflight}
