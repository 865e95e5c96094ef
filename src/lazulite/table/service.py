"""The Table service: a request in, a response out, errors spelled in exactly one place.

Invariants: `handle` raises nothing but cancellation and what is a defect; every response carries the request's id and
the time; it carries the version, too, unless it refuses credentials or the version is older than that header; nothing
of a request is acted on before its credentials were found good, but for a CORS preflight, which has none; nothing is
looked up, remembered or logged under the name of an account that does not exist.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from email.utils import formatdate
from random import Random, SystemRandom
from typing import TYPE_CHECKING, TypeAlias

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.authenticator import Authenticator
from lazulite.auth.grant import Grant
from lazulite.engine.contract import Clock, Engine, EngineUnavailableError, SpaceDroppedError
from lazulite.engine.remote.messages import Watcher
from lazulite.protocol.addressing import Address, Addressing
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock, unix_seconds, until_9999
from lazulite.protocol.content_md5 import check_content_md5
from lazulite.protocol.errors import CREDENTIAL_REFUSALS, MESSAGE_AS_REASON, ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.timeout import REQUEST_SECONDS_MAX, read_timeout
from lazulite.protocol.version import CORS_SINCE, NEWEST, VERSION_HEADER_SINCE, states_older, version_of
from lazulite.protocol.xml import document as xml
from lazulite.records.row_cache import Lifetime
from lazulite.records.spaces import SERVICE_PROPERTIES, TABLES
from lazulite.service import cors
from lazulite.service.properties_store import PropertiesStore
from lazulite.table.call import Call, Context, QueryLimits
from lazulite.table.catalog import Catalog
from lazulite.table.method_override import effective_method
from lazulite.table.payload.negotiation import format_for_error
from lazulite.table.query.filter import FilterSyntaxError
from lazulite.table.resource import parse_resource
from lazulite.table.responses import NO_CACHE, NO_SNIFF
from lazulite.table.routes import PREFLIGHT, answers_xml, dispatch

if TYPE_CHECKING:
    # It needs the extra lazulite[oidc].
    from lazulite.auth.bearer.authentication import BearerAuthentication

SERVER = "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"
"""Some SDKs look at it."""
FRONT_DOOR = "Microsoft-HTTPAPI/2.0"
"""What refuses credentials, as recorded (reference §3)."""
_SERVER_HEADER = ("Server", SERVER)
_FRONT_DOOR_HEADER = ("Server", FRONT_DOOR)
_CLIENT_ID_MAX = 1024
_BODY_METHODS = frozenset({"POST", "PUT", "MERGE", "PATCH"})
"""Of requests whose bodies mean something: no other body is accepted, but read and dropped."""

Operation: TypeAlias = Coroutine[object, None, Response]


class TableService:
    """The Table service on one engine.

    Args:
        engine: where everything is kept.
        accounts: who there is.
        clock: the time now, for signatures and errors.
        monotonic: seconds that never step back, for the time limits of queries and of memory.
        random: where the boundaries of multipart answers come from.
        limits: bounds of a page.
        addressing: how its accounts are addressed.
        bearer: checks bearer tokens; None to know no issuer of such.
        paced: makes what runs beside its request run at the same pace.
        remembered_seconds: how long tables and service properties are remembered; None: until they change, as nobody
            else changes them without telling the `watchers`.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        engine: Engine,
        accounts: AccountDirectory,
        *,
        clock: Clock = system_clock,
        monotonic: Callable[[], float] = time.monotonic,
        random: Random | None = None,
        limits: QueryLimits | None = None,
        addressing: Addressing | None = None,
        bearer: "BearerAuthentication | None" = None,
        paced: Callable[[Operation], Operation] = lambda operation: operation,
        remembered_seconds: float | None = None,
    ) -> None:
        clock = until_9999(clock)
        lifetime = None if remembered_seconds is None else Lifetime(remembered_seconds, monotonic)
        catalog = Catalog(engine, lifetime)
        properties = PropertiesStore(engine, "table", lifetime)
        self._context = Context(
            engine,
            catalog,
            properties,
            clock,
            monotonic,
            random or SystemRandom(),
            limits or QueryLimits(),
        )
        self._addressing = addressing or Addressing()
        self._authenticator = Authenticator(accounts, clock, catalog.policies, bearer=bearer)
        self._paced = paced
        self._overdue: set[asyncio.Task[Response]] = set()
        self._date_second = -1
        self._date = ("Date", "")

    @property
    def watchers(self) -> Mapping[int, Watcher]:
        """Who is to be told when other processes change rows of these spaces, because it remembers them."""
        return {TABLES: self._context.catalog.watcher, SERVICE_PROPERTIES: self._context.properties.watcher}

    async def start(self) -> None:
        """Finish what a crash interrupted."""
        await self._context.catalog.finish_drops()

    async def handle(self, request: Request) -> Response:
        """Answer a request."""
        parameters: Mapping[str, str] = {}
        try:
            parameters = parse_query_string(request.query)
            address = self._addressing.locate(request)
            account = self._authenticator.account(address)
            request.account = account.name
            if request.method == "OPTIONS":
                response = await self._preflight(request, address)
            else:
                grant = await self._authenticator.authenticate(account, request, address, parameters)
                request.authenticated = True
                if request.body_to_come is not None and request.method in _BODY_METHODS:
                    await request.receive_body()
                response = await self._operation(grant, request, address, parameters)
        except ServiceError as error:
            response = self._spell(request, parameters, error)
        except SpaceDroppedError:
            response = self._spell(request, parameters, ServiceError("TableNotFound"))
        except EngineUnavailableError:
            response = self._spell(request, parameters, ServiceError("ServerBusy"))
        self._finish(request, parameters, response)
        if request.account and request.method != "OPTIONS":
            properties = self._context.properties.known(request.account)
            if properties is None or properties.cors:
                await self._add_cors(request, parameters, response)
        return response

    def refuse(self, request: Request, error: ServiceError) -> Response:
        """Spell an error that was found before the service saw the request."""
        try:
            parameters = parse_query_string(request.query)
        except ServiceError:
            parameters = {}
        return self._finish(request, parameters, self._spell(request, parameters, error))

    def _operation(self, grant: Grant, request: Request, address: Address, parameters: Mapping[str, str]) -> Operation:
        """Return what answers an authenticated request, to be awaited."""
        if request.body_to_come is None:
            check_content_md5(request)
        context = self._context
        seconds = read_timeout(parameters)
        request.version = version_of(request.headers, parameters)
        call = Call(
            context,
            request,
            address,
            parameters,
            request.version,
            grant,
            parse_resource(address.resource),
            effective_method(request),
            context.monotonic() + min(seconds, context.limits.page_seconds),
        )
        if seconds == REQUEST_SECONDS_MAX:
            return dispatch(call)
        return self._within(seconds, dispatch(call))

    async def _within(self, seconds: float, operation: Operation) -> Response:
        """Answer in time; an operation that takes longer goes on, as half of one would leave what nobody expects.

        Raises:
            ServiceError: `OperationTimedOut`, or what the operation raised in time.
        """
        task = asyncio.create_task(self._paced(operation))
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            return task.result()
        self._overdue.add(task)
        task.add_done_callback(self._forget)
        raise ServiceError("OperationTimedOut")

    def _forget(self, task: asyncio.Task[Response]) -> None:
        self._overdue.discard(task)
        if not task.cancelled():
            task.exception()  # Nobody waits for it any more.

    async def _preflight(self, request: Request, address: Address) -> Response:
        request.operation = PREFLIGHT
        properties = await self._context.properties.get(address.account)
        headers = request.headers
        granted = cors.preflight(
            properties.cors,
            headers.get("origin"),
            headers.get("access-control-request-method"),
            headers.get("access-control-request-headers"),
        )
        return Response(200, granted)

    async def _add_cors(self, request: Request, parameters: Mapping[str, str], response: Response) -> None:
        try:
            properties = await self._context.properties.get(request.account)
        except EngineUnavailableError:
            return
        if properties.cors and not states_older(request.headers, parameters, CORS_SINCE):
            rules = properties.cors
            names = [name for name, _ in response.headers]
            response.headers += cors.response_headers(rules, request.headers.get("origin"), request.method, names)

    def _spell(self, request: Request, parameters: Mapping[str, str], error: ServiceError) -> Response:
        """Turn an error into bytes: XML for the operations that speak XML, else the negotiated format."""
        time_now = self._context.time()
        headers = [("x-ms-error-code", error.code), *error.headers]
        if error.status == 401:
            headers.append(("WWW-Authenticate", self._authenticator.challenge(request, parameters)))
        if answers_xml(parameters):
            text = f"{error.message}\nRequestId:{request.id}\nTime:{time_now}"
            body = xml.error_document(error.code, text, error.details)
            head = [("Content-Type", "application/xml"), NO_SNIFF, *headers]
            return Response(error.status, head, body, error.code, error.message)
        version = _version_known(request, parameters) or NEWEST
        wanted = format_for_error(version, request.headers, parameters.get("$format", ""))
        body = wanted.error(error, request.id, time_now)
        # As recorded, the refusal of a filter is the one that says nothing of caches.
        caching = [] if isinstance(error, FilterSyntaxError) else [NO_CACHE]
        content_type = wanted.error_type
        if error.code in CREDENTIAL_REFUSALS:
            content_type = content_type.partition(";")[0]
        head = [("Content-Type", content_type), NO_SNIFF, *caching, *headers]
        return Response(error.status, head, body, error.code, error.message if error.code in MESSAGE_AS_REASON else "")

    def _finish(self, request: Request, parameters: Mapping[str, str], response: Response) -> Response:
        headers = response.headers
        if response.error_code in CREDENTIAL_REFUSALS:
            headers += (_FRONT_DOOR_HEADER, ("x-ms-request-id", request.id))
        else:
            headers += (_SERVER_HEADER, ("x-ms-request-id", request.id))
            version = request.version or _version_known(request, parameters)
            if version >= VERSION_HEADER_SINCE:
                headers.append(("x-ms-version", version))
        client_id = request.headers.get("x-ms-client-request-id")
        if (
            client_id is not None
            and len(client_id) <= _CLIENT_ID_MAX
            and client_id.isascii()
            and client_id.isprintable()
        ):
            headers.append(("x-ms-client-request-id", client_id))
        headers.append(self._date_header())
        return response

    def _date_header(self) -> tuple[str, str]:
        ticks = self._context.clock()
        second = ticks // TICKS_PER_SECOND
        if second != self._date_second:
            self._date = ("Date", formatdate(unix_seconds(ticks), usegmt=True))
            self._date_second = second
        return self._date


def _version_known(request: Request, parameters: Mapping[str, str]) -> str:
    """Return a request's version, even if it was refused before that was read; "" if it names none that could be."""
    if not request.version:
        with suppress(ServiceError):
            return version_of(request.headers, parameters)
    return request.version
