"""Responses that several operations share. Source: reference §3, §11.4 (order of headers in a batch part), §2.1.

The `DataServiceVersion` of an answer is never above what the client can read.
"""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.joined_content import ONE_PIECE_BYTES, JoinedContent
from lazulite.protocol.message import Response
from lazulite.protocol.query_cost import QueryCost
from lazulite.service.responses import NO_CACHE, NO_SNIFF
from lazulite.table.call import Call
from lazulite.table.payload.feed import FeedFrame
from lazulite.table.payload.formats import Format, Preference
from lazulite.table.query.page import Page
from lazulite.table.versions import ODATA_HEADER_BEFORE

_NO_SNIFF = "X-Content-Type-Options: nosniff\r\n"
_NO_CACHE = "Cache-Control: no-cache\r\n"
_WITH_CONTENT = 3
_WITHOUT_CONTENT = 1


def _odata_line(call: Call, number: int) -> str:
    """Return the field that says which OData an answer is: in a batch always, by itself only in old versions."""
    old = call.version < ODATA_HEADER_BEFORE
    if not old and not call.in_batch:
        return ""
    if old:
        number = min(number, call.odata)
    return f"DataServiceVersion: {number}.0{';' if call.in_batch else ';NetFx'}\r\n"


def entity_opening(call: Call, wanted: Format) -> str:
    """Return the first fields of a response with one entity or table in it."""
    return f"{_odata_line(call, wanted.odata_version)}Content-Type: {wanted.entity_type}\r\n{_NO_SNIFF}{_NO_CACHE}"


def entity_answer(call: Call, status: int, wanted: Format, body: bytes, headers: list[tuple[str, str]]) -> Response:
    """Return a response with one entity or table in it."""
    return Response(status, headers, body, opening=entity_opening(call, wanted))


def feed_answer(call: Call, wanted: Format, body: bytes, headers: list[tuple[str, str]]) -> Response:
    """Return a response with a page of tables in it."""
    return Response(200, headers, body, opening=_feed_opening(call, wanted))


def page_answer(call: Call, wanted: Format, frame: FeedFrame, page: Page, headers: list[tuple[str, str]]) -> Response:
    """Return a response with a page of entities in it; a long page is joined while it is sent."""
    opening = _feed_opening(call, wanted)
    if page.items_bytes > ONE_PIECE_BYTES:
        return Response(200, headers, content=JoinedContent(frame.parts(page.items)), opening=opening)
    return Response(200, headers, frame.whole(page.items), opening=opening)


def _feed_opening(call: Call, wanted: Format) -> str:
    return f"{_odata_line(call, wanted.odata_version)}Content-Type: {wanted.feed_type}\r\n{_NO_SNIFF}{_NO_CACHE}"


def no_content_opening(call: Call) -> str:
    """Return the first fields of the 204 of an update, a merge or a delete."""
    return f"{_NO_SNIFF}{_NO_CACHE}{_odata_line(call, _WITHOUT_CONTENT)}"


def created_opening(call: Call) -> str:
    """Return the first fields of the 204 of an insert whose client wanted no echo."""
    applied = f"Preference-Applied: {Preference.NO_CONTENT.value}\r\n"
    return f"{_NO_SNIFF}{_NO_CACHE}{applied}{_odata_line(call, _WITH_CONTENT)}"


LOCATION_LINES = "Location: {0}\r\nDataServiceId: {0}\r\n"
"""The fields that tell the address of what was created without an echo."""

POINT_TIMING = 'query;desc="point";dur=%.3f, scanned;desc="1", returned;desc="1"'
"""As `server_timing` of a point query that found its entity, but for the milliseconds."""


def server_timing(name: str, page: Page, seconds: float) -> str:
    """Return the value of the standard `Server-Timing` field, which tells the cost of a query of class `name`."""
    return QueryCost(name, page.scanned, len(page.items), seconds * 1000, page.indexes, page.entries).field


def preference_applied(preference: Preference | None) -> list[tuple[str, str]]:
    """Return the header that says which preference was followed; none if the client had none."""
    return [] if preference is None else [("Preference-Applied", preference.value)]


def batch_error(error: ServiceError, wanted: Format, body: bytes, preference: list[tuple[str, str]]) -> Response:
    """Return the rejection of one operation of a batch; that of a missing table says nothing of caches, as recorded."""
    caching = [] if error.code == "TableNotFound" else [NO_CACHE]
    odata = ("DataServiceVersion", f"{wanted.odata_version}.0;")
    content_type = ("Content-Type", wanted.batch_error_type)
    return Response(error.status, [NO_SNIFF, *caching, *preference, odata, content_type], body)
