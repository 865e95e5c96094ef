"""The method of a request, as the service understands it. Source: reference §9."""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request

_TUNNELLED = frozenset({"MERGE", "PATCH", "PUT", "DELETE", "GET"})


def effective_method(request: Request) -> str:
    """Return the method, a verb tunnelled through POST by `X-HTTP-Method` undone.

    Raises:
        ServiceError: `XMethodNotUsingPost`, `XMethodIncorrectCount`, `XMethodIncorrectValue`.
    """
    tunnelled = request.headers.get("x-http-method")
    if tunnelled is None:
        return request.method
    if request.method != "POST":
        raise ServiceError("XMethodNotUsingPost")
    if "," in tunnelled:
        raise ServiceError("XMethodIncorrectCount")
    method = tunnelled.strip().upper()
    if method not in _TUNNELLED:
        raise ServiceError("XMethodIncorrectValue")
    return method
