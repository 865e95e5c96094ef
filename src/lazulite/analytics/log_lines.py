"""The lines of `$logs`: version 1.0 with 30 fields, version 2.0 with 38. `log_reader` has their grammar.

Invariants:
- no text of a client ends a field or a line: in quotes, what has a meaning in HTML and every control character is
  written as a character reference; fields without quotes have the server's own texts only, or such of a known form;
- no line has a signature, whatever spelling it came in;
- URLs are valid URIs: what clients sent raw is percent-encoded;
- all lines of a request have its id, and numbers from 0.

Source: reference §18.1.
"""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from lazulite.analytics.operations import COPY_BLOB
from lazulite.analytics.requests import LoggedRequest, RenderedForm, RequestForm
from lazulite.server.observability.debug_log import SIGNATURE, redact
from lazulite.table.model.edm import format_datetime7

REST_CODES_SINCE: Final = "2017-04-17"
"""The first version whose requests have the code of their error in place of `ClientOtherError`."""
TEXT_CHARACTERS_MAX: Final = 1024
"""What is kept of the user agent, the referrer and the client's request id."""

_DANGEROUS: Final = re.compile('[&"<>\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_ENTITIES: Final = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;"}
_RAW: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[^!$%&'()*+,/:;=?@\w.~-]", re.ASCII)
"""What is not part of a path or of a query as it stands."""
_RAW_IN_HOST: Final = re.compile(r"[^\w.:\[\]-]", re.ASCII)
_CLIENT: Final = re.compile(r"[\w.:%\[\]-]{1,64}", re.ASCII)
_ETAG_TIME: Final = re.compile(
    r"W/\"datetime'(\d{4})-(\d\d)-(\d\d)T(\d\d)(?:%3A|:)(\d\d)(?:%3A|:)(\d\d)", re.IGNORECASE
)
_ETAG_SECOND: Final = "W/\"datetime'2011-08-23T18%3A38%3A02"
_HTTP_DATE: Final = re.compile(r"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d\d)(\d\d) (\d\d:\d\d:\d\d) GMT")
_WEEKDAYS: Final = {
    "Mon": "Monday",
    "Tue": "Tuesday",
    "Wed": "Wednesday",
    "Thu": "Thursday",
    "Fri": "Friday",
    "Sat": "Saturday",
    "Sun": "Sunday",
}
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CONDITIONS: Final = (
    ("if-modified-since", "If-Modified-Since"),
    ("if-unmodified-since", "If-Unmodified-Since"),
    ("if-match", "If-Match"),
    ("if-none-match", "If-None-Match"),
)
_CLAIMS: Final = (("oid",), ("tid",), ("appid", "azp"), ("aud",), ("iss",), ("upn", "preferred_username"))
"""The claims of the fields 31 to 36."""
_NO_IDENTITY: Final = ";;;;;;;;"


def lines_of(request: LoggedRequest, version: str) -> tuple[str, ...]:
    """Return the lines of a request, without line feeds.

    Args:
        request: the request.
        version: `1.0` or `2.0`.
    """
    if request.form is not None:
        return (_line_of_template(request, request.form, version),)
    status, http_status = _status(request)
    total_ms = round(request.total_ms)
    server_ms = min(round(request.server_ms), total_ms)
    account, headers = request.account, request.headers
    fields = request.fields
    before = f"{version};{format_datetime7(request.started)};"
    after = f";{status};{http_status};{total_ms};{server_ms};{_parties(request)};{_url(request)};"
    sizes = (
        f";{_client(request.client)};{request.version};{request.request_head_bytes};{request.request_body_bytes};"
        f"{request.response_head_bytes};{request.response_body_bytes};{_content_length(request)};"
        f"{_md5(headers)};"
        f"{quoted(fields.get('content-md5', ''))};"
    )
    rest = f";{_conditions(headers)};{_texts(headers)}"
    if version != "1.0":
        rest += _identity(request, headers.get("authorization", ""))
    etag = fields.get("etag", "")
    modified = _modified(fields.get("last-modified", ""), etag)
    key, id_ = quoted(request.key), request.id
    first = f"{before}{request.operation}{after}{key};{id_};0{sizes}{quoted(etag)};{modified}{rest}"
    if request.operation == COPY_BLOB:
        source = quoted(masked(headers.get("x-ms-copy-source", "")))
        return (
            first,
            f"{before}CopyBlobSource{after}{source};{id_};1{sizes};{rest}",
            f"{before}CopyBlobDestination{after}{key};{id_};2{sizes};{rest}",
        )
    if not request.operations:
        return (first,)
    return (
        first,
        *(
            f"{before}{each.operation}{after}{quoted('/'.join(('', account, *each.resource)))};{id_};{number}{sizes}"
            f"{quoted(each.etag)};{_modified('', each.etag)}{rest}"
            for number, each in enumerate(request.operations, 1)
        ),
    )


def _line_of_template(request: LoggedRequest, form: RequestForm, version: str) -> str:
    """Return the line of a request that a template has answered, mostly of parts that are there."""
    rendered = form.rendered.get(version)
    if rendered is None:
        rendered = form.rendered[version] = _render(request, form, version)
    facts, query, md5, conditions, texts, client_id_at, client_id, length_at, length, identity = rendered
    values, fields = request.values, request.fields
    if md5 is None or conditions is None or identity is None:
        headers = form.headers_of(values)
        md5, conditions = _md5(headers), _conditions(headers)
        identity = "" if version == "1.0" else _identity(request, headers.get("authorization", ""))
    if query is None:
        query = _query_of(request.query)
    if client_id_at is not None:
        client_id = _text(values[client_id_at].decode("ascii")[:TEXT_CHARACTERS_MAX])
    if length_at is not None:
        length = values[length_at].decode("ascii")
    total_ms = round(request.total_ms)
    server_ms = min(round(request.server_ms), total_ms)
    etag = fields.get("etag", "")
    modified = _modified(fields.get("last-modified", ""), etag)
    return (
        f"{version};{format_datetime7(request.started)};{request.operation};{request.prefix}Success;"
        f"{request.http_status};{total_ms};{server_ms};{facts}{request.path}{query}{quoted(request.key)};{request.id};0;"
        f"{_client(request.client)};{request.version};{request.request_head_bytes};{request.request_body_bytes};"
        f"{request.response_head_bytes};{request.response_body_bytes};{length or request.request_body_bytes};{md5};"
        f"{quoted(fields.get('content-md5', ''))};{quoted(etag)};{modified};{conditions};{texts};{client_id}{identity}"
    )


def _render(request: LoggedRequest, form: RequestForm, version: str) -> RenderedForm:
    indexes = dict(form.varying)
    headers, length_at = form.headers, indexes.get("content-length")
    is_plain = _VARYING.isdisjoint(indexes)
    host = percent_encoded(headers.get("host", ""), _RAW_IN_HOST)
    return RenderedForm(
        f'{_parties(request)};"{form.scheme}://{host}',
        _query_of(form.query) if form.query_form is None else None,
        _md5(headers) if is_plain else None,
        _conditions(headers) if is_plain else None,
        _agents(headers),
        indexes.get("x-ms-client-request-id"),
        _text(headers.get("x-ms-client-request-id", "")[:TEXT_CHARACTERS_MAX]),
        length_at,
        headers.get("content-length", ""),
        "" if version == "1.0" else None if request.authentication == "bearer" else _NO_IDENTITY,
    )


_VARYING: Final = frozenset({"content-md5", "x-ms-content-md5", *(name for name, _ in _CONDITIONS)})


def _query_of(query: str) -> str:
    return f'?{_in_url(query)}";' if query else '";'


def _in_url(text: str) -> str:
    return percent_encoded(masked(text)).replace("&", "&amp;")


def quoted(text: str) -> str:
    """Return a text in quotes, encoded; nothing for none."""
    if not text:
        return ""
    if not (text.isascii() and text.isprintable()):
        text = _DANGEROUS.sub(lambda found: _ENTITIES.get(found[0]) or f"&#{ord(found[0])};", text)
    elif "&" in text or '"' in text or "<" in text or ">" in text:
        text = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return f'"{text}"'


def masked(text: str) -> str:
    """Return a URL, or the query of one, with `XXXXX` in place of each signature."""
    return SIGNATURE.sub(r"\1XXXXX", text) if "%" in text or "sig" in text.lower() else text


def percent_encoded(text: str, raw: re.Pattern[str] = _RAW) -> str:
    """Return a part of a URL with what `raw` finds percent-encoded."""
    if raw.search(text) is None:
        return text
    return raw.sub(lambda found: quote(found[0].encode("utf-8", "surrogatepass"), safe=""), text)


def _status(request: LoggedRequest) -> tuple[str, str]:
    """Return the fields 4 and 5."""
    if request.status == "NetworkError":
        return f"{request.prefix}{request.status}", "Unknown"
    if request.status == "ClientOtherError" and request.error_code and request.version >= REST_CODES_SINCE:
        return request.error_code, str(request.http_status)
    return f"{request.prefix}{request.status}", str(request.http_status)


def _parties(request: LoggedRequest) -> str:
    """Return the fields 8 to 11."""
    requester = request.account if request.authentication in ("authenticated", "bearer") else ""
    return f"{request.authentication};{requester};{request.account};{request.service}"


def _url(request: LoggedRequest) -> str:
    host = percent_encoded(request.headers.get("host", ""), _RAW_IN_HOST)
    query = f"?{_in_url(request.query)}" if request.query else ""
    return f'"{request.scheme}://{host}{_in_url(request.path)}{query}"'


@lru_cache(maxsize=256)
def _client(address: str) -> str:
    """Return field 16. A proxy may pass on any text, which counts only if it has the form of an address."""
    return address if _CLIENT.fullmatch(address) else ""


def _md5(headers: Mapping[str, str]) -> str:
    return quoted(headers.get("content-md5") or headers.get("x-ms-content-md5", ""))


def _content_length(request: LoggedRequest) -> str:
    text = request.headers.get("content-length", "")
    return text if text.isascii() and text.isdigit() and len(text) < 19 else str(request.request_body_bytes)


def _conditions(headers: Mapping[str, str]) -> str:
    found = [
        f"{name}={_long_date(headers[field])}" if name.endswith("Since") else f"{name}={headers[field]}"
        for field, name in _CONDITIONS
        if field in headers
    ]
    return quoted(";".join(found))


def _texts(headers: Mapping[str, str]) -> str:
    """Return the fields 28 to 30."""
    return f"{_agents(headers)};{_text(headers.get('x-ms-client-request-id', '')[:TEXT_CHARACTERS_MAX])}"


def _agents(headers: Mapping[str, str]) -> str:
    """Return the fields 28 and 29."""
    return (
        f"{_known_text(headers.get('user-agent', '')[:TEXT_CHARACTERS_MAX])};"
        f"{_known_text(headers.get('referer', '')[:TEXT_CHARACTERS_MAX])}"
    )


def _text(text: str) -> str:
    return quoted(redact(text) if "=" in text or "%" in text or " " in text else text)


_known_text = lru_cache(maxsize=256)(_text)
"""Clients repeat what they are and where they come from."""


def _identity(request: LoggedRequest, authorization: str) -> str:
    """Return the fields 31 to 38 of a request, with the semicolon before each."""
    if request.authentication != "bearer" or not request.is_verified:
        return _NO_IDENTITY
    claims = _claims_of(authorization)
    texts = [next((str(claims[name]) for name in names if name in claims), "") for names in _CLAIMS]
    return ";".join(["", *(quoted(text[:TEXT_CHARACTERS_MAX]) for text in texts), "", ""])


def _claims_of(authorization: str) -> Mapping[str, object]:
    """Return the claims of a token whose signature was found good."""
    _, *parts = authorization.rpartition(" ")[2].split(".")
    try:
        claims = json.loads(urlsafe_b64decode(f"{parts[0]}==="))
    except (ValueError, IndexError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _modified(last_modified: str, etag: str) -> str:
    """Return field 26: the time of what was returned; that of an entity is in its ETag."""
    if last_modified:
        text = _long_date(last_modified)
        return text if text != last_modified else ""
    return _date_in(etag[: len(_ETAG_SECOND)]) if etag.startswith("W/") else ""


@lru_cache(maxsize=1024)
def _long_date(text: str) -> str:
    """Return a date of HTTP in the form of Storage Analytics: `Tuesday, 25-Jun-19 14:56:54 GMT`; others as they are."""
    found = _HTTP_DATE.fullmatch(text)
    weekday = _WEEKDAYS.get(text[:3])
    if found is None or weekday is None:
        return text
    day, month, _, year, time = found.groups()
    return f"{weekday}, {day}-{month}-{year} {time} GMT"


@lru_cache(maxsize=1024)
def _date_in(text: str) -> str:
    """Return the date of an ETag that is cut behind its second; nothing for another one."""
    found = _ETAG_TIME.match(text)
    if found is None:
        return ""
    year, month, day, hour, minute, second = found.groups()
    weekday = tuple(_WEEKDAYS.values())[date(int(year), int(month), int(day)).weekday()]
    return f"{weekday}, {day}-{_MONTHS[int(month) - 1]}-{year[2:]} {hour}:{minute}:{second} GMT"
