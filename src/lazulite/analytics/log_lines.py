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
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Final, cast
from urllib.parse import quote

from lazulite.analytics.operations import COPY_BLOB
from lazulite.analytics.requests import (
    PREFIXES,
    AnalyticsRequest,
    Authentication,
    LoggedRequest,
    RepeatedRequest,
    RequestForm,
    find_field,
    keys_of_location,
)
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.version import LOGGED_CODE_SINCE
from lazulite.server.observability.redaction import SIGNATURE, redact
from lazulite.table.model.edm import format_datetime7

TEXT_CHARACTERS_MAX: Final = 1024
"""What is kept of the user agent, the referrer, the client's request id, its checksum and each condition."""

_DANGEROUS: Final = re.compile('[&"<>\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_ENTITIES: Final = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;"}
_RAW: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[^!$%&'()*+,/:;=?@\w.~-]", re.ASCII)
"""What is not part of a path or of a query as it stands."""
_RAW_IN_HOST: Final = re.compile(r"[^\w.:\[\]-]", re.ASCII)
_CLIENT: Final = re.compile(r"[\w.:%\[\]-]{1,64}", re.ASCII)
_ETAG_TIME: Final = re.compile(
    r"W/\"datetime'(\d{4})-(\d\d)-(\d\d)T(\d\d)(?:%3A|:)(\d\d)(?:%3A|:)(\d\d)", re.IGNORECASE
)
_ETAG_SECOND: Final = len("W/\"datetime'2011-08-23T18%3A38%3A02")
"""The characters of the ETag of an entity up to the second."""
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


def texts_of(requests: Sequence[AnalyticsRequest], version: str) -> tuple[str, int]:
    """Return the lines of requests of one form, or of one request, each with its line feed; and their number."""
    first = requests[0]
    if isinstance(first, RepeatedRequest):
        alike = cast("Sequence[RepeatedRequest]", requests)
        return "".join(map(line_maker(first.form, version), alike)), len(requests)
    lines = lines_of(first, version)
    return "".join([f"{line}\n" for line in lines]), len(lines)


def lines_of(request: AnalyticsRequest, version: str) -> tuple[str, ...]:
    """Return the lines of a request, without line feeds.

    Args:
        request: the request.
        version: `1.0` or `2.0`.
    """
    if isinstance(request, RepeatedRequest):
        return (line_maker(request.form, version)(request)[:-1],)
    status, http_status = _status(request)
    total_ms = round(request.total_ms)
    server_ms = min(round(request.server_ms), total_ms)
    account, headers = request.account, request.headers
    fields = request.fields
    parties = _parties(request.authentication, account, request.service)
    before = f"{version};{format_datetime7(request.started)};"
    after = f";{status};{http_status};{total_ms};{server_ms};{parties};{_url(request)};"
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
    key, id_ = _key(request.key), request.id
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
            f"{before}{each.operation}{after}{_key('/'.join(('', account, *each.resource)))};{id_};{number}{sizes}"
            f"{quoted(each.etag)};{_modified('', each.etag)}{rest}"
            for number, each in enumerate(request.operations, 1)
        ),
    )


def line_maker(form: RequestForm, version: str) -> Callable[[RepeatedRequest], str]:
    """Return what makes the line, with its line feed, of each request that a template has answered.

    What such requests have in common is written now, once.

    Args:
        form: of the template.
        version: `1.0` or `2.0`.
    """
    known = form.lines.get(version)
    if known is None:
        known = form.lines[version] = _new_maker(form, version)
    return known


def _new_maker(form: RequestForm, version: str) -> Callable[[RepeatedRequest], str]:
    headers, indexes = form.headers, dict(form.varying)
    host = percent_encoded(headers.get("host", ""), _RAW_IN_HOST)
    parties = _parties(form.authentication, form.account, form.service)
    operation = f"Z;{form.operation};{PREFIXES[form.authentication]}Success;"
    whose = f';{parties};"{form.scheme}://{host}'
    target, result = _target_maker(form), _blob_result if form.service == "blob" else _entity_result
    used, asked = f";{form.version};", _asked_maker(form, version)
    length, length_at = headers.get("content-length", ""), indexes.get("content-length")

    def line(request: RepeatedRequest) -> str:
        exchange = request.exchange
        head_in, body_in, head_out, body_out = exchange.sizes
        ms, ticks = int(exchange.elapsed_ms + 0.5), str(request.started)
        stated = (length or body_in) if length_at is None else exchange.values[length_at].decode()
        md5, rest = asked(request)
        return (
            f"{version};{_second(ticks[:-_DECIMALS])}{ticks[-_DECIMALS:]}{operation}{exchange.status};{ms};{ms}{whose}"
            f"{target(request)};{exchange.request_id};0;{_client(exchange.client)}{used}"
            f"{head_in};{body_in};{head_out};{body_out};{stated};{md5}{result(exchange.opening)}{rest}"
        )

    return line


def _target_maker(form: RequestForm) -> Callable[[RepeatedRequest], str]:
    """Return what makes the fields 12 and 13 behind the host."""
    if form.query_form is not None or isinstance(form.path, str) != (not form.keys):
        return _target
    query = _query_of(form.query)
    if not isinstance(form.path, str):
        return _target_of_keys(form, query)
    place = f"{_in_url(form.path)}{query}"
    if form.is_named_by_response:
        return _target_of_location(form, place)
    whole = f"{place}{_key(form.key)}"
    return lambda _: whole


def _target(request: RepeatedRequest) -> str:
    """Return the fields 12 and 13 behind the host."""
    form, values = request.form, request.exchange.values
    return f"{_in_url(form.path_of(values))}{_query_of(form.query_of(values))}{_key(request.key)}"


def _target_of_keys(form: RequestForm, query: str) -> Callable[[RepeatedRequest], str]:
    """Return what makes them if the path ends with one key or two, given the end of field 12."""
    marks = tuple(f"\1{number}\1".encode() for number in range(form.keys))
    *starts, end = re.split("\1\\d\1", f"{form.path_of(marks)}{query}{quoted(form.key)[:-1]}/")
    start, middle = (*starts, "")[:2]

    def of_two(request: RepeatedRequest) -> str:
        values = request.exchange.values
        first, second = values[0].decode(), values[1].decode()
        if _is_unusual(first) or _is_unusual(second):
            return _target(request)
        return f'{start}{first}{middle}{second}{end}{first}/{second}"'

    def of_one(request: RepeatedRequest) -> str:
        name = request.exchange.values[0].decode()
        return _target(request) if _is_unusual(name) else f'{start}{name}{end}{name}"'

    return of_two if form.keys == len(_TWO_KEYS) else of_one


def _target_of_location(form: RequestForm, place: str) -> Callable[[RepeatedRequest], str]:
    """Return what makes them if the Location of the response has the keys, given all before field 13."""
    named = f"{place}{quoted(f'{form.key}/')[:-1]}"

    def of_location(request: RepeatedRequest) -> str:
        keys = keys_of_location(request.exchange.opening)
        if keys is None or "=" in keys[0] or "=" in keys[1]:
            return f"{place}{_key(request.key)}"
        return f'{named}{keys[0]}/{keys[1]}"'

    return of_location


def _is_unusual(name: str) -> bool:
    """Tell whether a name in a URL differs in quotes, or has a signature."""
    return "%" in name or "&" in name or "=" in name


def _asked_maker(form: RequestForm, version: str) -> Callable[[RepeatedRequest], tuple[str, str]]:
    """Return what makes the field 23, and what follows field 26: what the client has said of a request."""
    headers, indexes = form.headers, dict(form.varying)
    is_bearer = version != "1.0" and form.authentication == "bearer"
    identity = "" if version == "1.0" else _NO_IDENTITY
    id_at = indexes.get("x-ms-client-request-id")

    def of_all(request: RepeatedRequest) -> tuple[str, str]:
        sent = form.headers_of(request.exchange.values)
        identities = _identity(request, sent.get("authorization", "")) if is_bearer else identity
        return _md5(sent), f";{_conditions(sent)};{_texts(sent)}{identities}\n"

    if is_bearer or not _VARYING.isdisjoint(indexes):
        return of_all
    md5, said = _md5(headers), f";{_conditions(headers)};{_agents(headers)};"
    if id_at is None:
        constant = md5, f"{said}{_client_id(headers.get('x-ms-client-request-id', ''))}{identity}\n"
        return lambda _: constant
    return lambda request: (md5, f"{said}{_client_id(request.exchange.values[id_at].decode())}{identity}\n")


def _entity_result(opening: str) -> str:
    """Return the fields 24 to 26 of an operation on tables or queues, with the semicolon before each."""
    etag = find_field(opening, "ETag: ")
    if not etag:
        return ";;;"
    begun, modified = _begun_etag(etag[:_ETAG_SECOND])
    return f'{begun}{etag[_ETAG_SECOND:].replace(_QUOTE, _QUOTED)}";{modified}'


@lru_cache(maxsize=1024)
def _begun_etag(etag: str) -> tuple[str, str]:
    """Return the field 25 up to where an ETag is cut, with what stands before it, and the date in it."""
    return f';;"{etag.replace(_QUOTE, _QUOTED)}', _date_in(etag)


def _blob_result(opening: str) -> str:
    """Return the fields 24 to 26 of an operation on blobs, likewise."""
    md5, etag = quoted(find_field(opening, "Content-MD5: ")), _quoted_etag(find_field(opening, "ETag: "))
    return f";{md5};{etag};{_modified(find_field(opening, 'Last-Modified: '), '')}"


@lru_cache(maxsize=8)
def _second(seconds: str) -> str:
    """Return a time up to the point. Requests of one moment name few seconds."""
    return format_datetime7(int(seconds) * TICKS_PER_SECOND)[:20]


_DECIMALS: Final = len(str(TICKS_PER_SECOND)) - 1
_TWO_KEYS: Final = ("PartitionKey", "RowKey")


def _quoted_etag(etag: str) -> str:
    """Return an ETag that the service has made, quoted."""
    return f'"{etag.replace(_QUOTE, _QUOTED)}"' if etag else ""


_QUOTE: Final = '"'
_QUOTED: Final = "&quot;"


def _client_id(text: str) -> str:
    """Return field 30, which mostly has a GUID."""
    return f'"{text}"' if _GUID.fullmatch(text) else _text(text[:TEXT_CHARACTERS_MAX])


_GUID: Final = re.compile(r"[0-9A-Fa-f-]{1,40}", re.ASCII)
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


def _key(text: str) -> str:
    """Return field 13. A client may have encoded the query of its URL, with the signature, as a part of its path."""
    return quoted(masked(text))


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
    if request.status == "ClientOtherError" and request.error_code and request.version >= LOGGED_CODE_SINCE:
        return request.error_code, str(request.http_status)
    return f"{request.prefix}{request.status}", str(request.http_status)


def _parties(authentication: Authentication, account: str, service: str) -> str:
    """Return the fields 8 to 11."""
    requester = account if authentication in ("authenticated", "bearer") else ""
    return f"{authentication};{requester};{account};{service}"


def _url(request: LoggedRequest) -> str:
    host = percent_encoded(request.headers.get("host", ""), _RAW_IN_HOST)
    query = f"?{_in_url(request.query)}" if request.query else ""
    return f'"{request.scheme}://{host}{_in_url(request.path)}{query}"'


@lru_cache(maxsize=256)
def _client(address: str) -> str:
    """Return field 16. A proxy may pass on any text, which counts only if it has the form of an address."""
    return address if _CLIENT.fullmatch(address) else ""


def _md5(headers: Mapping[str, str]) -> str:
    return _text((headers.get("content-md5") or headers.get("x-ms-content-md5", ""))[:TEXT_CHARACTERS_MAX])


def _content_length(request: LoggedRequest) -> str:
    text = request.headers.get("content-length", "")
    return text if text.isascii() and text.isdigit() and len(text) < 19 else str(request.request_body_bytes)


def _conditions(headers: Mapping[str, str]) -> str:
    found = [
        f"{name}={_long_date(headers[field][:TEXT_CHARACTERS_MAX])}"
        if name.endswith("Since")
        else f"{name}={headers[field][:TEXT_CHARACTERS_MAX]}"
        for field, name in _CONDITIONS
        if field in headers
    ]
    return _text(";".join(found))


def _texts(headers: Mapping[str, str]) -> str:
    """Return the fields 28 to 30."""
    return f"{_agents(headers)};{_client_id(headers.get('x-ms-client-request-id', ''))}"


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


def _identity(request: AnalyticsRequest, authorization: str) -> str:
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
    return _date_in(etag[:_ETAG_SECOND]) if etag.startswith("W/") else ""


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
