"""Responses that several operations share. Source: reference §3, §11.4 (order of headers in a batch part), §2.1.

The `DataServiceVersion` of an answer is never above what the client can read.
"""

from lazulite.protocol.message import Response
from lazulite.protocol.odata_version import odata_version
from lazulite.protocol.version import ODATA_HEADER_BEFORE
from lazulite.table.call import Call
from lazulite.table.payload.media import CONTENT_TYPES, MetadataLevel, Preference

NO_CACHE = ("Cache-Control", "no-cache")
NO_SNIFF = ("X-Content-Type-Options", "nosniff")
_WITH_CONTENT = 3
_WITHOUT_CONTENT = 1
_OF_ERRORS = ("DataServiceVersion", "3.0;")


def _says_odata(call: Call) -> bool:
    """Tell whether the answer names its OData version: in a batch always, by itself only in old versions."""
    return call.in_batch or call.version < ODATA_HEADER_BEFORE


def _odata_header(call: Call, number: int) -> tuple[str, str]:
    if call.version < ODATA_HEADER_BEFORE:
        number = min(number, odata_version(call.version, call.request.headers))
    return ("DataServiceVersion", f"{number}.0;" if call.in_batch else f"{number}.0;NetFx")


def json_answer(call: Call, status: int, level: MetadataLevel, body: bytes, headers: list[tuple[str, str]]) -> Response:
    """Return a response with a JSON body."""
    head = [("Content-Type", CONTENT_TYPES[level]), NO_SNIFF, NO_CACHE, *headers]
    if _says_odata(call):
        head.insert(0, _odata_header(call, _WITH_CONTENT))
    return Response(status, head, body)


def no_content(call: Call, *headers: tuple[str, str]) -> Response:
    """Return the 204 of an update, a merge or a delete."""
    head = [NO_SNIFF, NO_CACHE]
    if _says_odata(call):
        head.append(_odata_header(call, _WITHOUT_CONTENT))
    return Response(204, [*head, *headers])


def created_without_content(call: Call, location: str, *headers: tuple[str, str]) -> Response:
    """Return the 204 of an insert whose client wanted no echo."""
    head = [NO_SNIFF, NO_CACHE, ("Preference-Applied", Preference.NO_CONTENT.value)]
    if _says_odata(call):
        head.append(_odata_header(call, _WITH_CONTENT))
    return Response(204, [*head, ("Location", location), ("DataServiceId", location), *headers])


def preference_applied(preference: Preference | None) -> list[tuple[str, str]]:
    """Return the header that says which preference was followed; none if the client had none."""
    return [] if preference is None else [("Preference-Applied", preference.value)]


def batch_error(status: int, level: MetadataLevel, body: bytes, preference: list[tuple[str, str]]) -> Response:
    """Return the refusal of one operation of a batch."""
    content_type = ("Content-Type", CONTENT_TYPES[level])
    return Response(status, [NO_SNIFF, NO_CACHE, *preference, _OF_ERRORS, content_type], body)
