"""A recorded request as people see it, and the filter by which they look for some.

Invariant: what is shown of a head is what `redaction` shows.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS
from lazulite.protocol.message import RequestRecord, Response
from lazulite.protocol.query_cost import FIELD, QueryCost
from lazulite.protocol.refusal import Refusal
from lazulite.protocol.template import KEY, TextTemplate, as_sent
from lazulite.server.inspector.recorder import SCHEMES, Held, HeldAnswer, HeldRequest
from lazulite.server.observability.access_log import timestamp
from lazulite.server.observability.redaction import SIGNATURE, redact, shown_field, shown_query

_STATUS = re.compile(r"[1-5]xx|[1-5][0-9][0-9]|failed|refused|", re.ASCII)
_REFUSED = (401, 403)
_FAILED_FROM = 400
_TOKENS = {"skoid": "user delegation SAS", "ss": "account SAS", "sig": "service SAS"}
"""Query parameter -> the kind of the SAS that has it."""

Fields: TypeAlias = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request, without secrets."""

    id: str
    service: str
    ended: int
    """In ticks."""
    account: str
    operation: str
    method: str
    path: str
    query: str
    """With its question mark; "" for none."""
    scheme: str
    version: str
    authorization: str
    """The kind of the credentials: a scheme, `account SAS`, `service SAS`, `user delegation SAS` or `none`."""
    client: str
    client_request_id: str
    status: int
    error_code: str
    ms: float
    """From the arrival of the whole request to the writing of the response."""
    total_ms: float
    """From the arrival of the head to the end of the response."""
    bytes_in: int
    """The bytes of the body."""
    bytes_out: int
    """The bytes of head and body."""
    is_whole: bool
    """Whether the whole response was written while the client was there."""
    timing: str
    """The `Server-Timing` of the response."""
    cost: QueryCost | None
    """The cost of a query of entities."""
    scanned: int
    returned: int
    gate: str
    fault: str
    """The rule that injected a fault, and what that did; "" for none."""
    request_fields: Fields
    response_fields: Fields
    refusal: Refusal | None

    @property
    def time(self) -> str:
        """When it ended, as `2026-11-20T14:18:49.123Z`."""
        return timestamp(lambda: self.ended)

    @property
    def unix_seconds(self) -> float:
        """When it ended."""
        return (self.ended - UNIX_EPOCH_TICKS) / TICKS_PER_SECOND


@dataclass(frozen=True, slots=True)
class RequestFilter:
    """Which recorded requests are looked for. Raises `ValueError` for a status that there is not."""

    service: str = ""
    account: str = ""
    status: str = ""
    """`4xx`, `404`, `failed` for 400 and above, `refused` for 401 and 403; "": any."""
    text: str = ""
    """Is in the path, the operation, the code of an error or an id, whatever its case."""
    since: float = 0.0
    """The Unix time from which on they ended."""
    without_agent: str = ""
    """The beginning of the User-Agent of requests that are left out."""
    id: str = ""
    """The id of the one request."""

    def __post_init__(self) -> None:
        """Check the status."""
        if _STATUS.fullmatch(self.status) is None:
            raise ValueError("status is such as 404, 4xx, failed or refused")

    def may_be(self, held: Held) -> bool:
        """Return whether a request that is held may be one of them, by what is quickly told."""
        record = record_of(held)
        if self.since and (held.ended - UNIX_EPOCH_TICKS) / TICKS_PER_SECOND < self.since:
            return False
        if self.without_agent and _agent_of(held).startswith(self.without_agent):
            return False
        if (self.account and record.account != self.account) or (self.id and held.id != self.id):
            return False
        return self._has_status(held.status)

    def is_in(self, request: RecordedRequest) -> bool:
        """Return whether the text is in a request."""
        wanted = self.text.lower()
        texts = (request.path, request.operation, request.error_code, request.id, request.client_request_id)
        return not wanted or any(wanted in text.lower() for text in texts)

    def _has_status(self, status: int) -> bool:
        wanted = self.status
        if wanted == "failed":
            return status >= _FAILED_FROM
        if wanted == "refused":
            return status in _REFUSED
        return not wanted or (str(status)[0] == wanted[0] if wanted.endswith("xx") else str(status) == wanted)


def _agent_of(held: Held) -> str:
    headers = held.template.marked.headers if isinstance(held, HeldAnswer) else held.headers
    return headers.get("user-agent", "")


def record_of(held: Held) -> RequestRecord:
    """Return the facts of a request that is held."""
    return held.template.record if isinstance(held, HeldAnswer) else held.record


def read(service: str, held: Held) -> RecordedRequest:
    """Return a request of a service that is held, as it is shown."""
    return _of(service, _restored(held) if isinstance(held, HeldAnswer) else held)


def _restored(held: HeldAnswer) -> HeldRequest:
    """Return what a template answered as other requests are held."""
    template, values = held.template, held.values
    marked, record, names = template.marked, template.record, template.names
    headers = {name: text for name, text in marked.headers.items() if name not in names}
    headers |= {name: value.decode("latin-1") for name, value in zip(names, values, strict=True) if name != KEY}
    scheme = headers.pop("authorization", "").lower()
    if held.rows is not None:
        record = replace(record, rows_scanned=held.rows, rows_returned=held.rows)
    return HeldRequest(
        held.size,
        held.ended,
        record,
        held.id,
        held.client,
        marked.scheme,
        template.method,
        _text(marked.path, values),
        SIGNATURE.sub(r"\1REDACTED", _text(as_sent(marked.query), values)),
        headers,
        scheme,
        held.status,
        "",
        held.opening,
        (),
        held.elapsed_ms,
        held.elapsed_ms,
        held.sizes[1],
        held.sizes[2] + held.sizes[3],
        is_whole=True,
    )


def _text(marked: str, values: Sequence[bytes]) -> str:
    text = TextTemplate(marked).of(values)
    return "" if text is None else text.decode("latin-1")


def _of(service: str, held: HeldRequest) -> RecordedRequest:
    """Return a request without what is not shown."""
    record = held.record
    fields = Response(held.status, list(held.fields), opening=held.opening).fields()
    timing = next((text for name, text in fields if name == FIELD), "")
    fault = record.fault
    return RecordedRequest(
        held.id,
        service,
        held.ended,
        record.account,
        record.operation,
        held.method,
        redact(held.path),
        shown_query(held.query),
        held.scheme,
        record.version,
        _credentials(held),
        held.client,
        held.headers.get("x-ms-client-request-id", ""),
        held.status,
        held.error_code,
        held.elapsed_ms,
        held.total_ms,
        held.bytes_in,
        held.bytes_out,
        held.is_whole,
        timing,
        QueryCost.of(timing),
        record.rows_scanned,
        record.rows_returned,
        record.gate,
        "" if fault is None else f"{fault.rule}: {fault.effect}",
        _shown(held.headers.items()),
        _shown(fields),
        record.refusal,
    )


def _shown(fields: Iterable[tuple[str, str]]) -> Fields:
    return [(name, shown_field(name.lower(), text)) for name, text in fields]


def _credentials(held: HeldRequest) -> str:
    """Return the kind of the credentials of a request, by what it shows."""
    if held.authorization:
        return SCHEMES[held.authorization]
    names = {pair.partition("=")[0].lower() for pair in held.query.split("&")}
    return next((kind for name, kind in _TOKENS.items() if name in names), "none")
