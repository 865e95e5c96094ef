"""The usual mistakes in signatures by Shared Key and Shared Key Lite, as a table.

Each row makes of a request what a client that makes the mistake would have signed. The rows stand in the order in which
they are tried.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from lazulite.auth.explain.tries import Mistake
from lazulite.auth.shared_key import Canonicalize
from lazulite.protocol.message import Request

_LITE, _FULL = "SharedKeyLite", "SharedKey"
_FULL_LINES = 12
"""The lines of a string to sign that has the standard fields: the method and eleven of them."""
_LENGTH_LINE, _DATE_LINE = 3, 6
_SUSPECTS = ("content-type", "content-length", "content-md5", "x-ms-version", "x-ms-client-request-id", "range")
"""Fields that a library or a proxy adds behind the client's back, the usual ones first."""
_DROPPED = (
    ("content-type", "application/json"),
    ("content-type", "application/octet-stream"),
    ("content-type", "application/x-www-form-urlencoded"),
)
"""Fields that clients sign and do not send."""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request that no key of its account has signed."""

    request: Request
    scheme: str
    """As the Authorization header has it."""
    account: str
    comp: str | None
    in_path: bool
    """Whether the path begins with the account."""
    canonicalize: Canonicalize
    """The string-to-sign of the service."""
    formats: Sequence[Canonicalize] = ()
    """The strings-to-sign of other services."""

    def string(
        self,
        *,
        scheme: str | None = None,
        method: str | None = None,
        path: str | None = None,
        without: str = "",
        fields: Mapping[str, str] | None = None,
        canonicalize: Canonicalize | None = None,
    ) -> str:
        """Return the string to sign, changed.

        Args:
            scheme: in place of its own, as `method` and `path`.
            method: see above.
            path: see above.
            without: the name of a field that is left out.
            fields: more fields, or other values of fields.
            canonicalize: of another service.
        """
        request = self.request
        headers = {name: text for name, text in request.headers.items() if name != without} | dict(fields or {})
        changed = Request(method or request.method, request.path, request.query, headers)
        sign = canonicalize or self.canonicalize
        return sign(scheme or self.scheme, changed, self.account, request.path if path is None else path, self.comp)


def _other_scheme(case: RefusedRequest) -> Iterable[tuple[str, str]]:
    other = _FULL if case.scheme == _LITE else _LITE
    shown = {_FULL: "Shared Key", _LITE: "Shared Key Lite"}
    return [(case.string(scheme=other), f"{shown[other]}, and the header says {case.scheme}")]


def _decoded_path(case: RefusedRequest) -> Iterable[tuple[str, str]]:
    path = case.request.path
    return [(case.string(path=unquote_to_bytes(path.encode("latin-1", "replace")).decode("latin-1")), "")]


def _slashes(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    path = case.request.path
    for encoded in ("%2F", "%2f"):
        yield case.string(path=path.replace(encoded, "/")), "a slash that the request has as %2F"
    depth = 3 if case.in_path else 2  # The account and the first name below it.
    parts = path.split("/")
    if len(parts) > depth + 1:
        name = "/".join(parts[: depth + 1]) + "%2F" + "%2F".join(parts[depth + 1 :])
        yield case.string(path=name), "%2F for a slash that the request has as it is"


def _account(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    prefix, path = f"/{case.account}", case.request.path
    if case.in_path:
        yield case.string(path=path.removeprefix(prefix)), "once, and a path that begins with it has it twice"
    else:
        yield case.string(path=prefix + path), "twice, and the host names it, so the path does not"
        yield case.string().replace(f"\n{prefix}{path}", f"\n{path}", 1), "not at all, and it precedes the path"


def _dates(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    headers = case.request.headers
    moment, date = headers.get("x-ms-date"), headers.get("date")
    if moment is None:
        return
    if date is not None:
        yield case.string(without="x-ms-date"), "Date: where x-ms-date is sent, its line stays empty"
    else:
        yield case.string(without="x-ms-date", fields={"date": moment}), "x-ms-date as if it were Date"
    lines = case.string().split("\n")
    for at in (_DATE_LINE, 3):
        if len(lines) > at and not lines[at] and (at == 3) == (case.scheme == _LITE):
            yield "\n".join([*lines[:at], date or moment, *lines[at + 1 :]]), "the line of Date, which must be empty"
    if date is None:
        yield case.string(without="x-ms-date"), "no date: x-ms-date was added behind the signature"


def _length(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    lines = case.string().split("\n")
    if case.scheme == _FULL and len(lines) > _FULL_LINES and lines[_LENGTH_LINE] in ("", "0"):
        signed, right = ("0", "empty") if not lines[_LENGTH_LINE] else ("", "0")
        lines[_LENGTH_LINE] = signed
        yield "\n".join(lines), f"{signed or 'empty'}, and must be {right} by the version of the request"


def _media_type(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    sent, semicolon, _ = case.request.headers.get("content-type", "").partition(";")
    if semicolon:
        yield case.string(fields={"content-type": sent}), f"{sent} without what follows the semicolon"


def _query(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    """Yield strings with other query parameters, which stand at the end."""
    query, path = case.request.query, f"/{case.account}{case.request.path}"
    head, found, tail = case.string().rpartition(f"\n{path}")
    if not query or not found:
        return
    start = head + found
    yield start, "not at all"
    yield f"{start}?{query}", "behind the path, as they are sent"
    if not tail.startswith("\n"):
        return
    if case.comp is not None:
        yield f"{start}?comp={case.comp}", "as in Shared Key Lite: comp alone, behind the path"
    pairs = [each.partition("=")[::2] for each in query.split("&")]
    yield "\n".join((start, *(f"{name.lower()}:{value}" for name, value in sorted(pairs)))), "encoded"
    decoded = [(_decoded(name).lower(), _decoded(value)) for name, value in pairs]
    yield "\n".join((start, *(f"{name}:{value}" for name, value in decoded))), "in the order in which they are sent"


def _decoded(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ").encode("latin-1", "replace")).decode("latin-1")


def _missing(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    headers = case.request.headers
    others = [name for name in headers if name.startswith("x-ms-") and name not in (*_SUSPECTS, "x-ms-date")]
    for name in (*_SUSPECTS, *others):
        if name in headers:
            yield case.string(without=name), name


def _extra(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    for name, text in _DROPPED:
        if name not in case.request.headers:
            yield case.string(fields={name: text}), f"{name}: {text}"


def _method(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    request = case.request
    tunnelled = request.headers.get("x-http-method")
    for method in filter(None, (tunnelled, request.method.lower())):
        yield case.string(method=method), f"{method}, and the request has {request.method}"


def _order(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    lines = case.string().split("\n")
    own = [index for index, line in enumerate(lines) if line.startswith("x-ms-")]
    if own:
        names = list(case.request.headers)
        sent = sorted((lines[index] for index in own), key=lambda line: names.index(line.partition(":")[0]))
        yield "\n".join([*lines[: own[0]], *sent, *lines[own[-1] + 1 :]]), ""


def _line_end(case: RefusedRequest) -> Iterable[tuple[str, str]]:
    return [(f"{case.string()}\n", "")]


def _format(case: RefusedRequest) -> Iterator[tuple[str, str]]:
    for canonicalize in case.formats:
        yield case.string(canonicalize=canonicalize), ""


MISTAKES: Sequence[Mistake[RefusedRequest]] = (
    Mistake("other-scheme", "The client signed the string of {}.", _other_scheme),
    Mistake("encoded-slash", "The client signed {}.", _slashes),
    Mistake("decoded-path", "The client signed the path decoded: it must be signed as it is sent.", _decoded_path),
    Mistake("content-length-zero", "The client signed the Content-Length as {}.", _length),
    Mistake("date", "The client signed {}.", _dates),
    Mistake("account", "The client signed the name of the account {}.", _account),
    Mistake("media-type", "The client signed the Content-Type {}.", _media_type),
    Mistake("query", "The client signed the query parameters {}.", _query),
    Mistake("method", "The client signed the method {}.", _method),
    Mistake("line-end", "The client signed a line end behind the last line.", _line_end),
    Mistake("other-service", "The client signed the string of another service.", _format),
    Mistake("order", "The client signed the x-ms- headers as they are sent: they must be sorted.", _order),
    Mistake("missing-header", "The client did not sign {}, which a library or a proxy may have added.", _missing),
    Mistake("extra-header", "The client signed {}, which did not arrive.", _extra),
)
"""What is tried, in this order, until there are `TRIES_MAX` tries."""
