"""The method of a request, as the service understands it. Source: reference §9, §11.1."""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request

_TUNNELLED = frozenset({"MERGE", "PATCH", "PUT", "DELETE", "GET"})


def effective_method(request: Request, *, in_batch: bool = False) -> str:
    """Return the method, a verb tunnelled through POST by `X-HTTP-Method` undone.

    A part of a batch may name its own method in that header: the Java SDK 8 sends it with each merge (recorded for
    `MERGE`; *unverified* for other methods).

    Args:
        request: for its method and headers.
        in_batch: whether the request is a part of a batch.

    Raises:
        ServiceError: `XMethodNotUsingPost`, `XMethodIncorrectCount`, `XMethodIncorrectValue`.
    """
    tunnelled = request.headers.get("x-http-method")
    if tunnelled is None:
        return request.method
    if request.method != "POST":
        if in_batch and tunnelled.strip().upper() == request.method:
            return request.method
        raise ServiceError("XMethodNotUsingPost")
    if "," in tunnelled:
        raise ServiceError("XMethodIncorrectCount")
    method = tunnelled.strip().upper()
    if method not in _TUNNELLED:
        raise ServiceError("XMethodIncorrectValue")
    return method
