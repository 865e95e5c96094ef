"""The rejections of a method, and of a header that is missing or malformed, with the details that services state."""

from collections.abc import Iterable

from lazulite.protocol.errors import ServiceError

SHOWN_CHARACTERS_MAX = 64


def invalid_header(name: str, text: str, shown_max: int = SHOWN_CHARACTERS_MAX) -> ServiceError:
    """Return the rejection of a header's value, of which at most `shown_max` characters are shown."""
    return ServiceError("InvalidHeaderValue", details=[("HeaderName", name), ("HeaderValue", text[:shown_max])])


def missing_length() -> ServiceError:
    """Return the rejection of a body whose length the request does not state."""
    return ServiceError("MissingContentLengthHeader", details=[("HeaderName", "Content-Length")])


def unsupported_verb(methods: Iterable[str], code: str = "UnsupportedHttpVerb") -> ServiceError:
    """Return the rejection of a method that is not one of the resource's `methods`, with the code of the service."""
    error = ServiceError(code)
    error.headers = [("Allow", ", ".join(methods))]
    return error


def missing_header(name: str) -> ServiceError:
    """Return the rejection of a request without a header."""
    return ServiceError("MissingRequiredHeader", details=[("HeaderName", name)])
