"""The rejections of a header that is missing or malformed, with the details that the services state."""

from lazulite.protocol.errors import ServiceError

SHOWN_CHARACTERS_MAX = 64


def invalid_header(name: str, text: str, shown_max: int = SHOWN_CHARACTERS_MAX) -> ServiceError:
    """Return the rejection of a header's value, of which at most `shown_max` characters are shown."""
    return ServiceError("InvalidHeaderValue", details=[("HeaderName", name), ("HeaderValue", text[:shown_max])])


def missing_header(name: str) -> ServiceError:
    """Return the rejection of a request without a header."""
    return ServiceError("MissingRequiredHeader", details=[("HeaderName", name)])
