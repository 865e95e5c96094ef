"""The call that a request is to a service, and routes as data: which call is which operation, and what each demands.

A service's routes are a table with one row for each operation, read like the reference's own. `Routes` interprets it.

Invariant: a `ServiceCall` exists only for a request with valid credentials; the kernel checks the permission that its
route requires before the operation runs.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import Generic, Protocol, TypeAlias, TypeVar

from lazulite.auth.delegation.store import DelegationStore
from lazulite.auth.grant import Grant, Requirement, authorize
from lazulite.engine.contract import Clock, Engine
from lazulite.engine.remote.messages import CacheInvalidation, Procedure
from lazulite.faults.rules import NO_FAULTS, FaultSource
from lazulite.partitions.live import Charge, LivePartitions
from lazulite.protocol.addressing import Address
from lazulite.protocol.content_md5 import checked_chunks
from lazulite.protocol.errors import ServiceError, unsupported_verb
from lazulite.protocol.message import EventualResponse, Request, RequestRecord, Response
from lazulite.protocol.template import Answer, HeadValues, Miss, PendingAnswer
from lazulite.protocol.xml import document as xml
from lazulite.records.catalog import NamedResource, ResourceCatalog, StoredAccessPolicy
from lazulite.records.spaces import DELEGATIONS, SERVICE_PROPERTIES
from lazulite.service.properties import PropertiesStore
from lazulite.service.signed_identifiers import format_time
from lazulite.traffic.meter import Meter


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds of one page of a query."""

    page_rows: int = 1000
    page_bytes: int = 16 * 1024 * 1024
    """Entities are not added to a page that has grown past this."""
    page_seconds: float = 5.0
    slice_seconds: float = 0.001
    """How long a page, a batch or the reading of a body may hold the event loop before others continue."""
    lookahead_rows: int = 1000
    """Rows looked at after a full page, to tell whether any other matches; past that a continuation is given."""


class ServiceResource(Protocol):
    """The resource that a request addresses; each service has its own kinds."""

    @property
    def kind(self) -> object:
        """Return the kind, as the service's routes name it."""
        ...

    @property
    def name(self) -> str:
        """Return the name that a service SAS is compared with; "" for the service itself."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that `ServiceDefinition.keyed_path` finds in the path of a usual spelling; or none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceContext:
    """Everything that the operations of any service work with, handed in once."""

    engine: Engine
    properties: PropertiesStore
    delegations: DelegationStore
    clock: Clock
    monotonic: Callable[[], float]
    """Seconds, never stepping back."""
    random: Random
    limits: QueryLimits
    meter: Meter | None = None
    """Counts the traffic of resources; None: it is not counted."""
    live: LivePartitions | None = None
    """The gate while it is active; None: never."""
    faults: FaultSource = NO_FAULTS
    """Tells what requests suffer from."""

    @property
    def gate(self) -> LivePartitions | None:
        """What decides about requests as the cloud does; None: all of them pass now."""
        live = self.live
        return live if live is not None and live.active else None

    def time(self) -> str:
        """Return the time now as errors carry it."""
        return format_time(self.clock())

    def invalidations(self) -> Mapping[int, CacheInvalidation]:
        """Return the caches of rows by space; each is invalidated when another process changes a row."""
        return {SERVICE_PROPERTIES: self.properties.invalidation, DELEGATIONS: self.delegations.invalidation}

    async def policies(self, account: str, resource: str) -> "tuple[StoredAccessPolicy, ...]":  # noqa: ARG002 - for services that have some
        """Return the stored access policies of a resource; a service without policies has none."""
        return ()

    def procedures(self) -> Mapping[str, Procedure]:
        """Return the procedures that the service's workers call at the primary; see `ServiceDependencies.primary`."""
        return {}

    async def start(self) -> None:
        """Finish what a crash interrupted."""

    async def maintain(self) -> None:
        """Do the work that is due without a request; see `ServiceDefinition.maintain_seconds`."""


ContextT_co = TypeVar("ContextT_co", bound=ServiceContext, covariant=True)
ResourceT_co = TypeVar("ResourceT_co", bound=ServiceResource, covariant=True)


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
    deadline: float = math.inf
    """When a page must be answered, on the monotonic clock; infinite for a route without pages."""
    body_bytes_max: int = 0
    """The most bytes of the body, by the route."""

    @property
    def account(self) -> str:
        """The account's name."""
        return self.address.account

    @property
    def record(self) -> RequestRecord:
        """The facts of the request for logs."""
        return self.request.record

    def charge(self) -> Charge:
        """Return what the gate charges the request for: here, its account alone."""
        return Charge(self.account, "")

    def body_chunks(self) -> AsyncIterator[bytes]:
        """Accept the body of a route that streams, and yield it in chunks.

        Raises:
            ServiceError: it is too long, too slow, or not the one of its Content-MD5.
            ClientDisconnectedError: it never became whole. In any case, what was yielded is to be discarded.
        """
        return checked_chunks(self.request, self.body_bytes_max)

    def admit(self, requirement: Requirement | None) -> None:
        """Reject a request by what its route requires, and by what its own headers require beside that.

        Raises:
            ServiceError: as `authorize`.
        """
        self.authorize(requirement)

    def authorize(self, requirement: Requirement | None) -> None:
        """Reject an operation that the credentials do not permit; None requires nothing.

        Raises:
            ServiceError: 403 (404 for old SAS versions).
        """
        if requirement is not None:
            authorize(self.grant, requirement, self.resource.name)


NamedResourceT = TypeVar("NamedResourceT", bound=NamedResource)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogContext(ServiceContext, Generic[NamedResourceT]):
    """What the operations of such a service work with; a service adds its own."""

    catalog: ResourceCatalog[NamedResourceT]

    def invalidations(self) -> Mapping[int, CacheInvalidation]:
        """See `ServiceContext`."""
        return {**ServiceContext.invalidations(self), self.catalog.space: self.catalog.invalidation}

    async def policies(self, account: str, resource: str) -> tuple[StoredAccessPolicy, ...]:
        """Return the stored access policies of a resource; none if it does not exist."""
        return await self.catalog.policies(account, resource)

    async def start(self) -> None:
        """Empty the spaces of resources whose deletion a crash interrupted."""
        await self.catalog.finish_drops()


AnyCall: TypeAlias = ServiceCall[ServiceContext, ServiceResource]
"""A call of any service."""
CallT_contra = TypeVar("CallT_contra", bound=AnyCall, contravariant=True)
Operation: TypeAlias = Coroutine[object, None, Response]
Keys: TypeAlias = tuple[str, ...]
"""The keys in the path of a request, decoded, and behind them the value of a parameter that varies."""

NO_BODY = 0
"""The body means nothing: it is not accepted, but read and dropped."""
XML_BODY = xml.BYTES_MAX
"""The most bytes of an XML document."""
_READS = frozenset({"GET", "HEAD"})
_ANY = "*"
"""No component has this name, as each is in lower case and of letters."""
_OF_ACCOUNT = "service/"
"""What the components of an account begin with."""


class Deadline(Enum):
    """The time that an operation may take."""

    REQUEST = auto()
    """The request's `timeout`."""
    PAGE = auto()
    """The shorter of `timeout` and `page_seconds`, after which a page ends with a continuation."""


REQUEST, PAGE = Deadline


class PreparedOperation(ABC):
    """An operation, prepared from a call: everything is read and checked that needs neither its keys nor its body.

    It responds to the request of that call. If it `lasts`, it also responds to further requests with the same cache key
    (`service.plans`), and holds nothing of the call's request but what `plans.settled_request` leaves.
    """

    __slots__ = ()

    @property
    def lasts(self) -> bool:
        """Whether it responds to further requests."""
        return True

    @abstractmethod
    def respond(self, request: Request, keys: Keys) -> EventualResponse:
        """Respond to a request, given its keys.

        Raises:
            ServiceError: a rejection; or awaiting the response raises it.
        """

    @property
    def has_templates(self) -> bool:
        """Whether `repeated` may return something. Without it, no request pays for the search of a template."""
        return False

    def repeated(self, names: Sequence[str]) -> "RepeatedOperation | None":  # noqa: ARG002 - for those that have one
        """Return what answers requests by the values of their heads alone; None: there is no such way.

        Args:
            names: of the values, see `CutHead.names`.
        """
        return None


class RepeatedOperation(Protocol):
    """An operation of requests that differ in the values of their heads, and in their bodies, alone."""

    @property
    def waits(self) -> bool:
        """Whether an answer may come later."""
        ...

    def answer(self, values: HeadValues, body: bytes, later: PendingAnswer | None) -> Answer | Miss | None:
        """Return the answer to a request; None: `later` gets the outcome. See `Template.begin`.

        The credentials are good, and the values are of the usual form. Anything but success is a `Miss`: the request
        then goes to `PreparedOperation.respond`, which finds the reason. So nothing may be changed before a miss.
        """
        ...


class CallOperation(PreparedOperation):
    """The operation of one call.

    Args:
        work: its response, or the operation, which has not begun.
    """

    __slots__ = ("_work",)

    def __init__(self, work: EventualResponse) -> None:
        self._work = work

    @property
    def lasts(self) -> bool:
        """False: it is of one call."""
        return False

    def respond(self, _: Request, __: Keys) -> EventualResponse:
        """See `PreparedOperation`."""
        return self._work


@dataclass(frozen=True, slots=True)
class Route(Generic[CallT_contra]):
    """One operation: the requests that it is for, and its demands."""

    kind: object
    """The kind of the addressed resource."""
    method: str
    component: str
    """The result of `component_of` for its requests; "" for the resource itself."""
    operation: str
    """The operation's name in logs."""
    operate: Callable[[CallT_contra], EventualResponse | PreparedOperation]
    """Takes a call whose request has its body. Returns the response to this call, or its operation, or a prepared one.
    """
    requires: Requirement | None
    """The permission; None: `requires_of` tells it, or the operation checks the permission of each of its parts."""
    body: int = NO_BODY
    """The most bytes of the request's body."""
    body_stated: int = 0
    """The bound that the rejection of a longer body states; 0: `body`."""
    framing: Callable[[Mapping[str, str]], int] | None = None
    """Takes the headers of a request to the most bytes that its body may have beside its content; None: it is bare."""
    streams: bool = False
    """Whether the operation reads the body in chunks (`ServiceCall.body_chunks`), instead of finding it whole."""
    compares_checksums: bool = False
    """Whether the operation compares its content with the checksums of the request; else the kernel does, by
    `Content-MD5` alone."""
    since: str = ""
    """The first version that has it."""
    deadline: Deadline = REQUEST
    headers: frozenset[str] = frozenset()
    """The request headers that together tell it from other routes of the same address."""
    varies: tuple[str, ...] | None = None
    """The header fields whose values a cached plan leaves to each request, in lower case. None: no plan is cached."""
    varies_parameter: str = ""
    """The query parameter whose value a cached plan leaves to each request, in lower case: the operation gets the value
    behind the keys. The routes of one method name one parameter at most."""
    requires_of: Callable[[CallT_contra], Requirement] | None = None
    """Tells the permission, where it depends on more of the request than its address."""
    large: bool = False
    """Whether a response may have megabytes, which are held while it is made, though it has no deadline of a page."""
    charges: bool = False
    """Whether the operation asks the gate itself, as its body tells the partition; else the kernel does, before it."""
    changes: bool | None = None
    """Whether the secondary endpoint rejects it; None: unless its method is GET or HEAD."""

    def prepare(self, call: CallT_contra) -> PreparedOperation:
        """Return the operation for a call whose request has its body.

        Raises:
            ServiceError: the call is not one that the operation responds to.
        """
        operation = self.operate(call)
        return operation if isinstance(operation, PreparedOperation) else CallOperation(operation)

    def keys_of(self, call: CallT_contra) -> Keys:
        """Return the keys of a call, and behind them the value of the parameter that varies."""
        keys = call.resource.keys
        return (*keys, call.parameters.get(self.varies_parameter, "")) if self.varies_parameter else keys

    async def respond(self, call: CallT_contra) -> Response:
        """Return the response to a call. Raises as the operation."""
        response = self.prepare(call).respond(call.request, self.keys_of(call))
        return response if isinstance(response, Response) else await response

    @property
    def is_secondary(self) -> bool:
        """Whether the secondary endpoint has it."""
        return self.method in _READS if self.changes is None else not self.changes


class Routes(Generic[CallT_contra]):
    """The routes of a service.

    Args:
        rows: one for each operation; of two for one address, at most one is without headers. The one with the most
            headers of a request is its route.
        verb_code: the code of a request whose method its resource does not have.

    Raises:
        ValueError: two rows are for the same requests.
    """

    def __init__(self, *rows: Route[CallT_contra], verb_code: str = "UnsupportedHttpVerb") -> None:
        self._rows: dict[tuple[object, str, str], tuple[Route[CallT_contra], ...]] = {}
        for row in sorted(rows, key=lambda row: -len(row.headers)):
            key = (row.kind, row.component, row.method)
            alike = self._rows.get(key, ())
            if any(row.headers == other.headers for other in alike):
                raise ValueError(f"two routes for {key}")
            self._rows[key] = (*alike, row)
        self.rows = rows
        self._verb_code = verb_code
        self._methods: dict[tuple[object, str], dict[str, None]] = {}
        """The methods of each address, in the order of the rows; of each kind by the component `_ANY`."""
        for row in rows:
            for component in (row.component, _ANY):
                self._methods.setdefault((row.kind, component), {})[row.method] = None
        self._account = next((row.kind for row in rows if row.component.startswith(_OF_ACCOUNT)), None)
        """The kind of resource that has the components of an account."""
        self.varying = _varying(rows)
        """For each method of a route whose plans are cached, the fields that such routes let vary."""
        self.varying_parameters = {row.method: row.varies_parameter for row in rows if row.varies_parameter}
        """The query parameter that such routes let vary, by method."""
        self.operations = frozenset(row.operation for row in rows)
        """The names of all operations."""

    def find(self, call: CallT_contra, component: str = "") -> Route[CallT_contra] | None:
        """Return the route of a request; None if there is none in its version."""
        for route in self._rows.get((call.resource.kind, component, call.method), ()):
            if not route.headers or call.request.headers.keys() >= route.headers:
                return route if call.version >= route.since else None
        return None

    def rejection(self, call: CallT_contra, component: str) -> ServiceError:
        """Return the error of a request without a route: the method is not allowed, or there is no such address.

        A method is not allowed if the address does not have it, or no address of that kind. Neither is any method for a
        component of the account elsewhere (§33).

        *Unverified*: before the first version of an operation, its address was none.
        """
        kind = call.resource.kind
        of_kind = self._methods.get((kind, _ANY), {})
        methods = self._methods.get((kind, component), of_kind)
        is_foreign = kind != self._account and component.startswith(_OF_ACCOUNT)
        if methods and (call.method not in methods or is_foreign):
            return unsupported_verb(methods, self._verb_code)
        if not component:
            return ServiceError("InvalidUri")
        return unknown_component()


def _varying(rows: Iterable[Route[CallT_contra]]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        if row.varies is not None:
            found[row.method] = tuple(dict.fromkeys((*found.get(row.method, ()), *row.varies)))
    return found


def unknown_component() -> ServiceError:
    """Return the error of a request whose `comp` names no part of its resource. Recorded: it lacks the value."""
    details = [("QueryParameterName", "comp"), ("QueryParameterValue", ""), ("Reason", "")]
    return ServiceError("InvalidQueryParameterValue", details=details)


def component_of(parameters: Mapping[str, str]) -> str:
    """Return the part of a resource that `restype` and `comp` name: `service/properties`, `acl`, or "" for neither."""
    restype, component = parameters.get("restype"), parameters.get("comp")
    if restype is None:
        return "" if component is None else component.lower()
    return f"{restype}/{component or ''}".lower()


def own_method(request: Request) -> str:
    """Return the method of a request of a service that tunnels none."""
    return request.method


def own_component(call: AnyCall) -> str:
    """Return the component of a call whose query alone names it."""
    return component_of(call.parameters)
