"""The explorer as a service: from a request to the page, the action or the rejection.

The order of the checks: host, then static files and sign-in, then session, then where the request comes from, then the
route, then read-only. A GET changes nothing but the session's time and the lines that it shows once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl

from lazulite.control.command import ControlError
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.server.limits import KIB, MIB
from lazulite.ui.backend import BackendError
from lazulite.ui.calls import Action, Context, PageCall, PageError, PageServices, PageView, Redirect, Route, link
from lazulite.ui.jobs import JobError
from lazulite.ui.rendering import Templates, as_json
from lazulite.ui.routing import Routes
from lazulite.ui.security import (
    CSRF_FIELD,
    CSRF_HEADER,
    HEADERS,
    KnownHosts,
    is_embedded_elsewhere,
    is_same_origin,
    is_token,
)
from lazulite.ui.sessions import Session, TooManyAttemptsError

STATIC = Path(__file__).parent / "static"
SIGN_IN = "/sign-in"
FORM_BYTES_MAX = 2 * MIB
"""A form: an entity has at most 1 MiB."""
_SIGN_IN_BYTES_MAX = 4 * KIB
_FIELDS_MAX = 2000
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_JSON = ".json"
_DO = "do"
"""The query parameter that names the action of a POST."""


class Explorer:
    """The pages of a server. Implements `Service`.

    Args:
        services: what pages share.
        routes: the pages.
        hosts: are answered.
    """

    def __init__(self, services: PageServices, routes: Routes, hosts: KnownHosts) -> None:
        self._services = services
        self._routes = routes
        self._hosts = hosts
        self._templates = Templates()
        self._static = _static_files()

    async def respond(self, request: Request) -> Response:
        """See `Service`."""
        refused = self._refused(request)
        if refused is not None:
            return refused
        if request.path in self._static:
            return self._file(request)
        try:
            query = _fields(request.query)
            if request.path == SIGN_IN or (request.path == "/" and "token" in query):
                return await self._sign_in(request, query)
            return await self._in_session(request, query)
        except PageError as error:
            return _plain(error.status, str(error))

    def _refused(self, request: Request) -> Response | None:
        """Return the response to a request that no page of this origin has sent, or that no page has; else None."""
        if request.headers.get("host", "") not in self._hosts:
            return _plain(HTTPStatus.MISDIRECTED_REQUEST, "this host is not served here")
        if request.method not in ("GET", "HEAD", "POST"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED, "GET and POST alone", [("Allow", "GET, HEAD, POST")])
        if request.method == "POST" and not is_same_origin(request.scheme, request.headers):
            return _plain(HTTPStatus.FORBIDDEN, "the request does not come from a page of the explorer")
        if is_embedded_elsewhere(request.headers):
            return _plain(HTTPStatus.FORBIDDEN, "a page of another origin cannot load this")
        return None

    def reject(self, request: Request, error: ServiceError) -> Response:
        """See `Service`."""
        text = f"{error.code} (request {request.id})" if request.id else error.code
        return _plain(error.status, text)

    async def _in_session(self, request: Request, query: Mapping[str, Sequence[str]]) -> Response:
        session = self._session(request)
        if session is None:
            return await self._unknown(request)
        request.authenticated = True
        call = PageCall(
            services=self._services,
            request=request,
            session=session,
            parameters={},
            query={name: values[-1] for name, values in query.items()},
        )
        try:
            return await self._routed(call)
        except BackendError as error:
            status = error.status if 400 <= error.status < 500 else HTTPStatus.BAD_GATEWAY
            return await self._failed(call, status, str(error), error.code, error.request_id)
        except (ControlError, JobError) as error:
            return await self._failed(call, HTTPStatus.CONFLICT, str(error))
        except PageError as error:
            return await self._failed(call, error.status, str(error))

    async def _routed(self, call: PageCall) -> Response:
        """Return the page or the outcome of the action at the path of a call."""
        path = call.request.path
        is_json = call.request.method != "POST" and path.endswith(_JSON)
        route, parameters = self._routes.find(path.removesuffix(_JSON) if is_json else path)
        account = parameters.get("account")
        if account is not None and self._services.directory.get(account) is None:
            raise PageError(404, f"there is no account {account}")
        call = replace(call, parameters=parameters)
        return await (self._act(call, route) if call.request.method == "POST" else self._show(call, route, is_json))

    async def _show(self, call: PageCall, route: Route, is_json: bool) -> Response:
        context = await route.show(call)
        if isinstance(context, Response):
            return _with_headers(context)
        if is_json:
            return _response(200, "application/json; charset=utf-8", as_json(context))
        return await self._page(call, route, context, 200)

    async def _page(self, call: PageCall, route: Route, context: Context, status: int) -> Response:
        frame = self._frame(call, route.title.format_map(call.parameters))
        frame["notices"] = [call.session.notices.popleft() for _ in range(len(call.session.notices))]
        page = await self._templates.render(route.template, {**frame, **context})
        return _response(status, "text/html; charset=utf-8", page)

    async def _act(self, call: PageCall, route: Route) -> Response:
        name = call.query.get(_DO, "")
        action = route.actions.get(name)
        if action is None:
            raise PageError(HTTPStatus.NOT_FOUND, f"this page has no action {name[:64]!r}")
        if action.changes and self._services.read_only:
            raise PageError(HTTPStatus.FORBIDDEN, "the explorer is read-only: it was started with --ui-read-only")
        call = await self._checked(call, action)
        outcome = await action.act(call)
        if isinstance(outcome, Response):
            return _with_headers(outcome)
        if isinstance(outcome, PageView):
            return await self._page(call, route, outcome.context, outcome.status)
        if outcome.notice:
            call.session.notices.append(outcome.notice)
        return _redirect(outcome)

    async def _checked(self, call: PageCall, action: Action) -> PageCall:
        """Return a call with its form.

        Raises:
            PageError: it does not have the token of the session.
        """
        given = call.request.headers.get(CSRF_HEADER, "")
        fields: Mapping[str, Sequence[str]] = {}
        if not action.reads_body:
            fields = await _form(call.request, FORM_BYTES_MAX)
            given = given or fields.get(CSRF_FIELD, [""])[-1]
        if not is_token(call.session.csrf, given):
            raise PageError(HTTPStatus.FORBIDDEN, "the form is of another session: load the page again")
        return replace(call, form={name: values[-1] for name, values in fields.items()}, fields=fields)

    async def _sign_in(self, request: Request, query: Mapping[str, Sequence[str]]) -> Response:
        token = query.get("token", [""])[-1]
        if request.method == "POST":
            token = (await _form(request, _SIGN_IN_BYTES_MAX)).get("token", [""])[-1]
        elif request.path == SIGN_IN:
            return await self._sign_in_page(200, "")
        agent = request.headers.get("user-agent", "")
        try:
            session_id = await self._services.sessions.exchange(token.strip(), agent=agent, client=request.client)
        except TooManyAttemptsError:
            return await self._sign_in_page(HTTPStatus.TOO_MANY_REQUESTS, "Too many wrong tokens came. Wait a second.")
        if session_id is None:
            return await self._sign_in_page(HTTPStatus.FORBIDDEN, "This token is wrong, or was used before.")
        secure = "; Secure" if request.scheme == "https" else ""
        cookie = f"{_cookie(request)}={session_id}; HttpOnly; SameSite=Strict; Path=/{secure}"
        if request.headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return _redirect(Redirect("/"), [("Set-Cookie", cookie)])
        # A redirect that another site began would not carry the cookie; a step from this page does.
        page = _response(200, "text/html; charset=utf-8", await self._templates.render("signed_in.html", {}))
        page.headers.append(("Set-Cookie", cookie))
        return page

    async def _sign_in_page(self, status: int, problem: str) -> Response:
        page = await self._templates.render("sign_in.html", {"problem": problem})
        return _response(status, "text/html; charset=utf-8", page)

    async def _unknown(self, request: Request) -> Response:
        """Return the response to a request without a session."""
        if request.path.endswith(_JSON) or request.method == "POST":
            return _plain(HTTPStatus.UNAUTHORIZED, "sign in first")
        return await self._sign_in_page(HTTPStatus.UNAUTHORIZED, "")

    async def _failed(self, call: PageCall, status: int, text: str, code: str = "", rejected_id: str = "") -> Response:
        """Return the page of an error: what the server said, with the ids by which a log has it."""
        request = call.request
        context = {"status": int(status), "text": text, "code": code, "rejected_id": rejected_id, "id": request.id}
        if request.path.endswith(_JSON) or CSRF_HEADER in request.headers:  # Of a script.
            return _response(status, "application/json; charset=utf-8", as_json(context))
        frame = self._frame(call, HTTPStatus(status).phrase)
        page = await self._templates.render("error.html", {**frame, **context, "notices": ()})
        return _response(status, "text/html; charset=utf-8", page)

    def _frame(self, call: PageCall, title: str) -> dict[str, object]:
        """Return what every page shows."""
        services, parameters = self._services, call.parameters
        names = services.directory.names()
        asked = parameters.get("account") or call.query.get("account", "")
        account = asked if asked in names else next(iter(names), "")
        # A path that begins with two slashes would lead to the host that it names.
        settings, path = services.settings, "/" + call.request.path.lstrip("/").removesuffix(_JSON)

        def post_to(action: str, **others: object) -> str:
            return link(path, **{**call.query, **others, _DO: action})

        def here(**others: object) -> str:
            return link(path, **{**call.query, **others})

        return {
            "title": title,
            "path": path,
            "query": call.query,
            "account": account,
            "accounts": names,
            "crumbs": self._routes.crumbs(path),
            "navigation": self._routes.navigation(account, len(names) > 1),
            "location": services.store_name if settings.location is None else str(settings.location),
            "csrf": call.session.csrf,
            "read_only": services.read_only,
            "post_to": post_to,
            "here": here,
            "running_jobs": sum(not job.has_ended for job in services.jobs.all()),
        }

    def _session(self, request: Request) -> Session | None:
        for part in request.headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            found = self._services.sessions.find(value) if name == _cookie(request) else None
            if found is not None:  # Other servers of this host can set a cookie of this name, too.
                return found
        return None

    def _file(self, request: Request) -> Response:
        content, media_type, etag = self._static[request.path]
        headers = [("ETag", etag), ("Cache-Control", "no-cache")]
        if request.headers.get("if-none-match") == etag:
            return _with_headers(Response(304, headers))
        return _with_headers(Response(200, [("Content-Type", media_type), *headers], content))


def _cookie(request: Request) -> str:
    """Return the name of the session's cookie. Browsers share cookies among the ports of a host, so it has the port."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{'__Host-' if request.scheme == 'https' else ''}lazulite-{port if port.isdigit() else 'ui'}"


def _static_files() -> Mapping[str, tuple[bytes, str, str]]:
    """Return path -> content, media type and ETag of each static file."""
    found = {}
    for file in sorted(STATIC.rglob("*")):
        if file.suffix in _TYPES:
            content = file.read_bytes()
            etag = f'"{sha256(content).hexdigest()[:32]}"'
            found[f"/static/{file.relative_to(STATIC).as_posix()}"] = (content, _TYPES[file.suffix], etag)
    return found


async def _form(request: Request, bytes_max: int) -> Mapping[str, Sequence[str]]:
    """Return the fields of a form. Raises `PageError`."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise PageError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is not a form")
    try:
        await request.receive_body(bytes_max)
        return _fields(request.body.decode("ascii"))
    except ServiceError as error:
        raise PageError(error.status, f"the form is too long, or too slow: {error.code}") from None
    except UnicodeDecodeError:
        raise PageError(HTTPStatus.BAD_REQUEST, "the body is not a form") from None


def _fields(text: str) -> Mapping[str, Sequence[str]]:
    """Return the values of each field of a query or a form. Raises `PageError`."""
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise PageError(HTTPStatus.BAD_REQUEST, "the query or the form is malformed") from None
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _response(status: int, media_type: str, body: bytes) -> Response:
    return _with_headers(Response(int(status), [("Content-Type", media_type)], body))


def _plain(status: int, text: str, headers: Sequence[tuple[str, str]] = ()) -> Response:
    body = f"{text}\n".encode("utf-8", "replace")
    return _with_headers(Response(int(status), [("Content-Type", "text/plain; charset=utf-8"), *headers], body))


def _redirect(redirect: Redirect, headers: Sequence[tuple[str, str]] = ()) -> Response:
    return _with_headers(Response(HTTPStatus.SEE_OTHER, [("Location", redirect.where), *headers]))


def _with_headers(response: Response) -> Response:
    """Add the fields of every response that this one does not have itself."""
    own = {name.lower() for name, _ in response.headers}
    response.headers.extend((name, value) for name, value in HEADERS if name.lower() not in own)
    return response
