"""Responses that several operations share. Source: reference §3, §11.4 (order of headers in a batch part)."""

from lazulite.protocol.message import Response
from lazulite.table.call import Call
from lazulite.table.payload.formats import Format
from lazulite.table.payload.media import Preference

NO_CACHE = ("Cache-Control", "no-cache")
NO_SNIFF = ("X-Content-Type-Options", "nosniff")
_WITH_CONTENT = ("DataServiceVersion", "3.0;")
_WITHOUT_CONTENT = ("DataServiceVersion", "1.0;")


def content_answer(call: Call, status: int, wanted: Format, body: bytes, headers: list[tuple[str, str]]) -> Response:
    """Return a response with a body."""
    head = [("Content-Type", wanted.content_type), NO_SNIFF, NO_CACHE, *headers]
    if call.in_batch:
        head.insert(0, _WITH_CONTENT)
    return Response(status, head, body)


def no_content(call: Call, *headers: tuple[str, str]) -> Response:
    """Return the 204 of an update, a merge or a delete."""
    head = [NO_SNIFF, NO_CACHE]
    if call.in_batch:
        head.append(_WITHOUT_CONTENT)
    return Response(204, [*head, *headers])


def created_without_content(call: Call, location: str, *headers: tuple[str, str]) -> Response:
    """Return the 204 of an insert whose client wanted no echo."""
    head = [NO_SNIFF, NO_CACHE, ("Preference-Applied", Preference.NO_CONTENT.value)]
    if call.in_batch:
        head.append(_WITH_CONTENT)
    return Response(204, [*head, ("Location", location), ("DataServiceId", location), *headers])


def preference_applied(preference: Preference | None) -> list[tuple[str, str]]:
    """Return the header that says which preference was followed; none if the client had none."""
    return [] if preference is None else [("Preference-Applied", preference.value)]


def batch_error(status: int, wanted: Format, body: bytes, preference: list[tuple[str, str]]) -> Response:
    """Return the refusal of one operation of a batch."""
    content_type = ("Content-Type", wanted.content_type)
    return Response(status, [NO_SNIFF, NO_CACHE, *preference, _WITH_CONTENT, content_type], body)
