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
from lazulite.analytics.requests import (
    PREFIXES,
    AnalyticsRequest,
    Authentication,
    LoggedRequest,
    RenderedForm,
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


def text_of(request: AnalyticsRequest, version: str) -> tuple[str, int]:
    """Return the lines of a request, each with its line feed, and their number. See `lines_of`."""
    if isinstance(request, RepeatedRequest):
        return _line_of_template(request, version), 1
    lines = lines_of(request, version)
    return "".join([f"{line}\n" for line in lines]), len(lines)


def lines_of(request: AnalyticsRequest, version: str) -> tuple[str, ...]:
    """Return the lines of a request, without line feeds.

    Args:
        request: the request.
        version: `1.0` or `2.0`.
    """
    if isinstance(request, RepeatedRequest):
        return (_line_of_template(request, version)[:-1],)
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


def _line_of_template(request: RepeatedRequest, version: str) -> str:
    """Return the line of a request that a template has answered, with its line feed; mostly of parts that are there."""
    form, exchange = request.form, request.exchange
    rendered = form.rendered.get(version)
    if rendered is None:
        rendered = form.rendered[version] = _render(form, version)
    before, facts, target, named, md5, conditions, texts, client_id_at, client_id, length_at, length, identity = (
        rendered
    )
    values, opening = exchange.values, exchange.opening
    head_in, body_in, head_out, body_out = exchange.sizes
    if md5 is None or conditions is None or identity is None:
        headers = form.headers_of(values)
        md5, conditions = _md5(headers), _conditions(headers)
        if identity is None:
            identity = _identity(request, headers.get("authorization", ""))
    if client_id_at is not None:
        client_id = _client_id(values[client_id_at].decode("ascii"))
    if length_at is not None:
        length = values[length_at].decode("ascii")
    milliseconds = int(exchange.elapsed_ms + 0.5)
    etag, server_md5, modified = find_field(opening, "ETag: "), "", ""
    if form.service == "blob":
        server_md5 = quoted(find_field(opening, "Content-MD5: "))
        modified = _modified(find_field(opening, "Last-Modified: "), "")
    elif etag:
        modified = _date_in(etag[:_ETAG_SECOND])
    keys = keys_of_location(opening) if named else None
    if keys is None or "=" in keys[0] or "=" in keys[1]:
        place = _target(request, form, target)
    else:
        place = f'{named}{keys[0]}/{keys[1]}"'
    return (
        f"{before}{_time(request.started)}{facts[0]}{exchange.status};{milliseconds};{milliseconds}{facts[1]}"
        f"{place};{exchange.request_id};0;{_client(exchange.client)}{facts[2]}"
        f"{head_in};{body_in};{head_out};{body_out};{length or body_in};{md5};{server_md5};"
        f"{_quoted_etag(etag)};{modified};{conditions};{texts};{client_id}{identity}\n"
    )


def _target(request: RepeatedRequest, form: RequestForm, target: tuple[str, ...] | None) -> str:
    """Return the fields 12 and 13 of a request behind the host, given what `_target_of` returned."""
    values = request.exchange.values
    names = b"/".join(values[: form.keys])
    if target is None or b"%" in names or b"&" in names or b"=" in names:  # It differs in quotes, or is a signature.
        return f"{_in_url(form.path_of(values))}{_query_of(form.query_of(values))}{_key(request.key)}"
    if form.keys == len(_TWO_KEYS):
        start, middle, end = target
        first, second = values[0].decode("ascii"), values[1].decode("ascii")
        return f'{start}{first}{middle}{second}{end}{first}/{second}"'
    if form.keys:
        start, end = target
        name = names.decode("ascii")
        return f'{start}{name}{end}{name}"'
    return f"{target[0]}{_key(request.key)}"


def _target_of(form: RequestForm) -> tuple[str, ...] | None:
    """Return the fields 12 and 13 behind the host: what stands before each key of the path, and before all keys.

    None: the fields differ in more than keys.
    """
    if form.query_form is not None or isinstance(form.path, str) != (not form.keys):
        return None
    query = _query_of(form.query)
    if isinstance(form.path, str):
        return (f"{_in_url(form.path)}{query}",)
    marks = tuple(f"\1{number}\1".encode() for number in range(form.keys))
    starts = re.split("\1\\d\1", f'{form.path_of(marks)}{query}"')
    return (*starts[:-1], f"{starts[-1]}{quoted(form.key)[1:-1]}/")


def _time(ticks: int) -> str:
    """Return a time as `format_datetime7`, after 1602. Requests of one moment name few seconds."""
    return f"{_second(ticks // TICKS_PER_SECOND)}{str(ticks)[-_DECIMALS:]}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    return f"{format_datetime7(seconds * TICKS_PER_SECOND)[:20]}"


_DECIMALS: Final = len(str(TICKS_PER_SECOND)) - 1
_TWO_KEYS: Final = ("PartitionKey", "RowKey")


def _render(form: RequestForm, version: str) -> RenderedForm:
    indexes = dict(form.varying)
    headers = form.headers
    is_plain = _VARYING.isdisjoint(indexes)
    host = percent_encoded(headers.get("host", ""), _RAW_IN_HOST)
    parties = _parties(form.authentication, form.account, form.service)
    target = _target_of(form)
    return RenderedForm(
        f"{version};",
        (
            f";{form.operation};{PREFIXES[form.authentication]}Success;",
            f';{parties};"{form.scheme}://{host}',
            f";{form.version};",
        ),
        target,
        f"{target[0]}{quoted(f'{form.key}/')[:-1]}" if target is not None and form.is_named_by_response else "",
        _md5(headers) if is_plain else None,
        _conditions(headers) if is_plain else None,
        _agents(headers),
        indexes.get("x-ms-client-request-id"),
        _client_id(headers.get("x-ms-client-request-id", "")),
        indexes.get("content-length"),
        headers.get("content-length", ""),
        "" if version == "1.0" else None if form.authentication == "bearer" else _NO_IDENTITY,
    )


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
