"""What every service does with a request: from the parsed head to a finished response.

A request is compiled into a plan: version, address, account, credentials, route, prepared operation. The plan is run.
In front is a cache of plans (`service.plans`). What is ready is returned, what has to wait is awaited.

Invariants: `respond` raises nothing but cancellation and what is a defect. Every response carries the request's id and
the time; it carries the version, too, unless it rejects credentials or the version is older than that header. Nothing
of a request is acted on before its credentials were verified, except a CORS preflight, which has none. Nothing is
looked up, cached or logged under the name of an account that does not exist. A body is accepted only after its route
was found, its permission checked, and its length compared with the route's bound.
"""

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Generic, Never

from lazulite.auth.accounts.account import Account
from lazulite.auth.grant import Grant
from lazulite.engine.contract import EngineUnavailableError, SpaceDroppedError
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.protocol.addressing import Address
from lazulite.protocol.content_md5 import check_content_md5
from lazulite.protocol.errors import CREDENTIAL_REJECTIONS, ServiceError
from lazulite.protocol.message import EventualResponse, Request, Response
from lazulite.protocol.query_string import REQUEST_SECONDS_MAX, parse_query_string, read_timeout
from lazulite.protocol.version import (
    CORS_SINCE,
    DEFAULT_VERSION,
    ERROR_CODE_SINCE,
    NEWEST,
    RequestVersion,
    resolve_version,
)
from lazulite.service import cors
from lazulite.service.common_fields import CommonFields
from lazulite.service.definition import CallT, ContextT, ResourceT, ServiceDefinition, ServiceDependencies
from lazulite.service.fault_injection import FaultInjection, mark
from lazulite.service.gated import GatedOperation, settle
from lazulite.service.metered import prepared
from lazulite.service.plans import CutRequest, Plan, PlanCache
from lazulite.service.properties import CorsRule, ServiceProperties
from lazulite.service.rejection import Rejection
from lazulite.service.routing import PAGE, Keys, Operation, PreparedOperation, Route
from lazulite.service.templates import RepeatedPlan, TemplateContext

_TOO_LARGE = "RequestBodyTooLarge"
_NO_PARAMETERS: Mapping[str, str] = {}
_FAILURES = (ServiceError, SpaceDroppedError, EngineUnavailableError)
"""What may end an operation."""


class ServiceKernel(Generic[ContextT, ResourceT, CallT]):
    """A service on one engine. Implements `protocol.message.Service`.

    Args:
        definition: the service.
        dependencies: of the process.
    """

    def __init__(
        self, definition: ServiceDefinition[ContextT, ResourceT, CallT], dependencies: ServiceDependencies
    ) -> None:
        self._definition = definition
        self._name = definition.name
        self._context = context = definition.make_context(dependencies)
        self._addressing = dependencies.addressing
        self._accounts = dependencies.accounts
        self._authenticator = definition.authenticator(context, dependencies)
        self._schedule_fairly = dependencies.schedule_fairly
        self._overdue: set[asyncio.Task[Response]] = set()
        """Operations that outlive the time of their requests."""
        self._begin_large = dependencies.begin_large
        self._common = CommonFields(definition.server)
        self._note_rejection = dependencies.note_rejection
        self._faults = context.faults
        self._injection = FaultInjection(context.faults, definition.name)
        routes = definition.routes
        self.plans = PlanCache(
            routes.varying,
            definition.keyed_path,
            parameters=routes.varying_parameters,
            keyed_host_path=definition.keyed_host_path,
            names_account=self._addressing.names_account,
        )
        """The cached plans."""
        self._templates = TemplateContext(
            self._accounts,
            context.properties,
            context.clock,
            self._common,
            definition.keyed_starts,
            definition.keyed_host_starts or definition.keyed_starts,
        )

    @property
    def invalidations(self) -> Mapping[int, CacheInvalidation]:
        """The caches of rows by space; each is invalidated when another process changes a row."""
        return self._context.invalidations()

    async def start(self) -> None:
        """Finish what a crash interrupted."""
        await self._context.start()

    @property
    def maintain_seconds(self) -> float:
        """The pause between two runs of `maintain`; 0: it never runs."""
        return self._definition.maintain_seconds

    async def maintain(self) -> None:
        """Do the work that is due without a request."""
        await self._context.maintain()

    def respond(self, request: Request) -> EventualResponse:
        """See `Service`."""
        if self._context.gate is not None or self._faults.active:
            return self._compile_and_run(request, None)
        now = self._context.clock()
        cut = self.plans.cut(request)
        plan = None if cut is None else self.plans.find(cut.key)
        if cut is None or plan is None or not self._applies(plan, request, now):
            return self._compile_and_run(request, cut)
        properties = self._context.properties.cached(plan.account.name)
        if properties is None:
            return self._compile_and_run(request, cut)
        record = request.record
        record.service, record.version, record.account = self._name, plan.version.governing, plan.account.name
        record.operation = plan.route.operation
        request.authenticated = True
        if plan.operation.has_templates:
            request.repeat = RepeatedPlan(self._templates, plan)
        self.plans.hits += 1
        if plan.route.large or (plan.route.body and request.body_to_come is not None):
            return self._finished(request, plan, properties.cors, self._receive_and_run(request, plan, cut.keys))
        try:
            response = plan.operation.respond(request, cut.keys)
        except _FAILURES as failure:
            response = self._failed(request, plan.parameters, plan.version, failure)
        if not isinstance(response, Response):
            return self._finished(request, plan, properties.cors, response)
        self._finish(request, plan.version, response, properties.cors, now)
        return response

    def _applies(self, plan: Plan, request: Request, now: int) -> bool:
        """Return whether a cached plan is for a request: the account is the same object, the credentials are valid."""
        if self._accounts.get(plan.account.name) is not plan.account:
            return False
        try:
            plan.credentials.check(request, now)
        except ServiceError:
            return False  # The request may be signed in another spelling. If it is rejected, it is so in due order.
        return True

    async def _receive_and_run(self, request: Request, plan: Plan, keys: Keys) -> Response:
        """Accept the body of a request, and run its plan. Raises as the operation."""
        await self._receive(request, plan.route)
        return await self._run(request, plan, keys)

    async def _finished(self, request: Request, plan: Plan, rules: Sequence[CorsRule], work: Operation) -> Response:
        """Return the response to a request with a cached plan, once it is there."""
        try:
            response = await work
        except _FAILURES as failure:
            response = self._failed(request, plan.parameters, plan.version, failure)
        self._finish(request, plan.version, response, rules, self._context.clock())
        return response

    async def respond_to_part(self, request: Request, version: RequestVersion) -> Response:
        """Respond to a request inside another one, such as a part of a batch, whose version governs it."""
        return await self._compile_and_run(request, None, version)

    async def _compile_and_run(
        self, request: Request, cut: CutRequest | None, version: RequestVersion | None = None
    ) -> Response:
        """Compile a request into a plan, and run it.

        Args:
            request: the request.
            cut: the request, cut; None: its plan is not cached.
            version: of a request inside another one.
        """
        try:
            parameters = parse_query_string(request.query)
        except ServiceError as error:
            return self.reject(request, error)
        is_part = version is not None
        version = version or resolve_version(request.headers, parameters, self._definition.assumed_version)
        record = request.record
        record.service, record.version = self._name, version.governing
        if self._faults.active:
            self._injection.note_clock(request)
        rules: Sequence[CorsRule] = ()
        try:
            address = self._addressing.locate(request)
            account = self._authenticator.account(address)
            record.account = account.name
            if request.method == "OPTIONS":
                response = await self._preflight(request)
            else:
                properties = self._context.properties.cached(account.name) or await self._properties(account.name)
                rules = properties.cors
                version = version.or_default(properties.blob.default_version)
                record.version = version.governing
                plan, call, keys = await self._compile(request, account, address, parameters, version, is_part=is_part)
                response = await self._run(request, plan, keys)
                if record.fault is not None:
                    await self._injection.after(record.fault, response)
                if cut is not None and self.plans.offer(cut, plan, call) and plan.operation.has_templates:
                    request.repeat = RepeatedPlan(self._templates, plan)
        except _FAILURES as failure:
            response = self._failed(request, parameters, version, failure)
        gate = self._context.gate
        if gate is not None:
            settle(gate, request, response)
        self._finish(request, version, response, rules, self._context.clock())
        if record.fault is not None:
            mark(record.fault, response)
        return response

    def reject(self, request: Request, error: ServiceError) -> Response:
        """Return the response to a request that was rejected before the service saw it."""
        try:
            parameters = parse_query_string(request.query)
        except ServiceError:
            parameters = _NO_PARAMETERS
        version = resolve_version(request.headers, parameters, self._definition.assumed_version)
        response = self._reject(request, parameters, version, error)
        self._finish(request, version, response, (), self._context.clock())
        return response

    async def admit(self, request: Request, grant: Grant | None = None) -> CallT:
        """Return the call of a request that another request contains, such as the source of a copy; it does not run.

        Args:
            request: without a body.
            grant: what the credentials of the other request allow; None: its own credentials are checked.

        Raises:
            ServiceError: the rejection that the request would get.
        """
        return (await self._admit(request, grant))[0]

    async def run(self, request: Request, grant: Grant) -> Response:
        """Run a request that stands for another one, such as the read of a page of a website.

        Args:
            request: without a body.
            grant: what the other request may do.

        Raises:
            ServiceError: the rejection that the request would get.
            SpaceDroppedError, EngineUnavailableError: likewise.
        """
        call, route = await self._admit(request, grant)
        eventual = self._operation(route, call).respond(request, route.keys_of(call))
        response = eventual if isinstance(eventual, Response) else await eventual
        gate = self._context.gate
        if gate is not None:
            settle(gate, request, response)
        return response

    async def _admit(self, request: Request, grant: Grant | None) -> tuple[CallT, Route[CallT]]:
        """Return a request without a body as a call, and its route. See `admit`."""
        parameters = parse_query_string(request.query)
        version = resolve_version(request.headers, parameters, self._definition.assumed_version)
        address = self._addressing.locate(request)
        account = self._authenticator.account(address)
        if grant is None:
            credentials = await self._authenticator.authenticate(account, request, address, parameters, version)
            grant = credentials.grant
        return self._route(request, address, parameters, version, grant)

    async def _compile(
        self,
        request: Request,
        account: Account,
        address: Address,
        parameters: Mapping[str, str],
        version: RequestVersion,
        *,
        is_part: bool,
    ) -> tuple[Plan, CallT, Keys]:
        """Authenticate a request, route it, accept its body and prepare its operation.

        Return its plan, the call that the operation is prepared from, and the keys.

        Raises:
            ServiceError: see the steps.
        """
        credentials = await self._authenticator.authenticate(account, request, address, parameters, version)
        request.authenticated = credentials.grant.kind != "anonymous"
        seconds = read_timeout(parameters)
        call, route = self._route(request, address, parameters, version, credentials.grant)
        await self._receive(request, route)
        if self._faults.active:
            await self._injection.before(call, route, self._definition.addressed(call), is_part=is_part)
        if route.deadline is PAGE:
            call.deadline = self._end_of_page(seconds)
        operation, in_host = self._operation(route, call), address.root == "/"
        plan = Plan(account, credentials, parameters, version, route, seconds, operation, in_host)
        return plan, call, route.keys_of(call)

    def _operation(self, route: Route[CallT], call: CallT) -> PreparedOperation:
        """Return the operation of a call whose request has its body, behind the gate if there is one.

        Raises:
            ServiceError: see `Route.prepare`.
        """
        gate = self._context.gate
        if gate is None or route.charges:
            return prepared(route, call)
        return GatedOperation(gate, route, call)

    async def _run(self, request: Request, plan: Plan, keys: Keys) -> Response:
        """Run a plan whose request has its body. Raises as the operation."""
        response = plan.operation.respond(request, keys)
        if isinstance(response, Response):
            return response
        return await (response if plan.seconds == REQUEST_SECONDS_MAX else self._within(plan.seconds, response))

    async def _receive(self, request: Request, route: Route[Never]) -> None:
        """Accept the body of a request, and wait until a large response may be made.

        Raises:
            ServiceError: the body is too long, or not the one of its Content-MD5.
            ClientDisconnectedError: see `Request.receive_body`.
        """
        if request.body_to_come is not None and route.body:
            await _receive_body(request, route)
        if "content-md5" in request.headers and request.body_to_come is None and not route.compares_checksums:
            check_content_md5(request.headers, request.body)
        if route.large or route.deadline is PAGE:
            await self._begin_large(request.authenticated)

    def _route(
        self,
        request: Request,
        address: Address,
        parameters: Mapping[str, str],
        version: RequestVersion,
        grant: Grant,
    ) -> tuple[CallT, Route[CallT]]:
        """Return an authenticated request as a call, and its route, whose permission it has.

        Raises:
            ServiceError: 400, 403, 405.
        """
        definition = self._definition
        governing = version.governing or version.require()
        resource = definition.parse_resource(address.resource, parameters)
        method = definition.method(request)
        call = definition.make_call(self._context, request, address, parameters, governing, grant, resource, method)
        component = definition.component(call)
        route = definition.routes.find(call, component)
        if route is None:
            raise definition.routes.rejection(call, component)
        if address.secondary and not route.is_secondary:
            raise ServiceError("InsufficientAccountPermissions")
        request.record.operation = route.operation
        call.body_bytes_max = route.body
        call.admit(route.requires if route.requires_of is None else route.requires_of(call))
        return call, route

    def _end_of_page(self, seconds: int) -> float:
        """Return when a page must be answered, given the request's timeout."""
        return self._context.monotonic() + min(seconds, self._context.limits.page_seconds)

    async def _within(self, seconds: float, operation: Operation) -> Response:
        """Return the response of an operation that takes no longer.

        Another one goes on to its end, so that none is ever half done.

        Raises:
            ServiceError: `OperationTimedOut`, or an error of the operation.
        """
        task = asyncio.create_task(self._schedule_fairly(operation))
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
        self._overdue.add(task)
        task.add_done_callback(self._discard)
        raise ServiceError("OperationTimedOut")

    def _discard(self, task: "asyncio.Task[Response]") -> None:
        self._overdue.discard(task)
        if not task.cancelled():
            task.exception()  # Retrieved, so that asyncio does not report it as lost.

    async def _preflight(self, request: Request) -> Response:
        request.record.operation = self._definition.preflight
        properties = await self._context.properties.get(request.record.account)
        headers = request.headers
        granted = cors.preflight(
            properties.cors,
            headers.get("origin"),
            headers.get("access-control-request-method"),
            headers.get("access-control-request-headers"),
        )
        return Response(200, granted)

    async def _properties(self, account: str) -> ServiceProperties:
        """Return the properties of an account; the defaults while the engine is unavailable."""
        try:
            return await self._context.properties.get(account)
        except EngineUnavailableError:
            return ServiceProperties()

    def _failed(
        self, request: Request, parameters: Mapping[str, str], version: RequestVersion, failure: Exception
    ) -> Response:
        """Return the response to a request that one of `_FAILURES` ended."""
        if isinstance(failure, SpaceDroppedError):
            failure = ServiceError(self._definition.dropped_code)
        elif not isinstance(failure, ServiceError):
            failure = ServiceError("ServerBusy")
        return self._reject(request, parameters, version, failure)

    def _reject(
        self, request: Request, parameters: Mapping[str, str], version: RequestVersion, error: ServiceError
    ) -> Response:
        request.record.service = self._name
        self._note_rejection(request, error)
        error.reword(self._definition.messages)
        governing = version.governing or NEWEST
        headers = [("x-ms-error-code", error.code)] if governing >= ERROR_CODE_SINCE else []
        headers += error.headers
        if error.status == 401:
            headers.append(("WWW-Authenticate", self._authenticator.challenge(request.scheme, version)))
        return self._definition.reject(Rejection(error, request, parameters, governing, headers, self._context.time()))

    def _finish(
        self, request: Request, version: RequestVersion, response: Response, rules: Sequence[CorsRule], now: int
    ) -> None:
        """Add the headers that all responses have; `rules` are the CORS rules, `now` is the time of the response."""
        if not response.headers and not response.error_code:
            client_id = request.headers.get("x-ms-client-request-id")
            response.opening += self._common.lines(request.id, client_id, version.governing, now)
        else:
            rejected = response.error_code in CREDENTIAL_REJECTIONS
            shown = "" if response.error_code and _hides_version(request, version, response) else version.governing
            response.headers += self._common.pairs(request, shown, now, credentials_rejected=rejected)
        if rules and not version.is_stated_before(CORS_SINCE):
            names = [name for name, _ in response.fields()]
            response.headers += cors.response_headers(rules, request.headers.get("origin"), request.method, names)


def _hides_version(request: Request, version: RequestVersion, response: Response) -> bool:
    """Tell whether a rejection has no `x-ms-version`: a 404 without credentials and a version (§32.2)."""
    is_anonymous = "authorization" not in request.headers
    return response.status == HTTPStatus.NOT_FOUND and is_anonymous and version == ("", DEFAULT_VERSION)


async def _receive_body(request: Request, route: Route[Never]) -> None:
    """Receive the body of a request, unless its operation streams it; in any case reject one that is too long.

    Raises:
        ServiceError: `RequestBodyTooLarge`, or as `Request.receive_body`.
        ClientDisconnectedError: see there.
    """
    most = route.body if route.framing is None else route.body + route.framing(request.headers)
    if route.streams:
        if request.body_to_come and (request.body_to_come.length or 0) > most:
            raise _too_large(route)
        return
    try:
        await request.receive_body(most)
    except ServiceError as error:
        raise _too_large(route) if error.code == _TOO_LARGE else error from None


def _too_large(route: Route[Never]) -> ServiceError:
    return ServiceError(_TOO_LARGE, details=[("MaxLimit", str(route.body_stated or route.body))])
