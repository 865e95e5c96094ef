"""Responses that several operations share. Source: reference §3, §11.4 (order of headers in a batch part), §2.1.

The `DataServiceVersion` of an answer is never above what the client can read.
"""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.service.responses import NO_CACHE, NO_SNIFF
from lazulite.table.call import Call
from lazulite.table.odata_version import odata_version
from lazulite.table.payload.formats import Format
from lazulite.table.payload.negotiation import Preference
from lazulite.table.versions import ODATA_HEADER_BEFORE

_NO_CONTENT_PREFERRED = ("Preference-Applied", Preference.NO_CONTENT.value)
_WITH_CONTENT = 3
_WITHOUT_CONTENT = 1


def _odata_header(call: Call, number: int) -> list[tuple[str, str]]:
    """Return the header that says which OData an answer is: in a batch always, by itself only in old versions."""
    old = call.version < ODATA_HEADER_BEFORE
    if not old and not call.in_batch:
        return []
    if old:
        number = min(number, odata_version(call.version, call.request.headers))
    return [("DataServiceVersion", f"{number}.0;" if call.in_batch else f"{number}.0;NetFx")]


def entity_answer(call: Call, status: int, wanted: Format, body: bytes, headers: list[tuple[str, str]]) -> Response:
    """Return a response with one entity or table in it."""
    head = _odata_header(call, wanted.odata_version)
    return Response(status, [*head, ("Content-Type", wanted.entity_type), NO_SNIFF, NO_CACHE, *headers], body)


def feed_answer(call: Call, wanted: Format, body: bytes, headers: list[tuple[str, str]]) -> Response:
    """Return a response with a page of them in it."""
    head = _odata_header(call, wanted.odata_version)
    return Response(200, [*head, ("Content-Type", wanted.feed_type), NO_SNIFF, NO_CACHE, *headers], body)


def no_content(call: Call, *headers: tuple[str, str]) -> Response:
    """Return the 204 of an update, a merge or a delete."""
    return Response(204, [NO_SNIFF, NO_CACHE, *_odata_header(call, _WITHOUT_CONTENT), *headers])


def created_without_content(call: Call, location: str, *headers: tuple[str, str]) -> Response:
    """Return the 204 of an insert whose client wanted no echo."""
    head = [NO_SNIFF, NO_CACHE, _NO_CONTENT_PREFERRED]
    head += _odata_header(call, _WITH_CONTENT)
    return Response(204, [*head, ("Location", location), ("DataServiceId", location), *headers])


def preference_applied(preference: Preference | None) -> list[tuple[str, str]]:
    """Return the header that says which preference was followed; none if the client had none."""
    return [] if preference is None else [("Preference-Applied", preference.value)]


def batch_error(error: ServiceError, wanted: Format, body: bytes, preference: list[tuple[str, str]]) -> Response:
    """Return the refusal of one operation of a batch; that of a missing table says nothing of caches, as recorded."""
    caching = [] if error.code == "TableNotFound" else [NO_CACHE]
    odata = ("DataServiceVersion", f"{wanted.odata_version}.0;")
    content_type = ("Content-Type", wanted.batch_error_type)
    return Response(error.status, [NO_SNIFF, *caching, *preference, odata, content_type], body)
