"""The header in which a request carries a bearer token for the source of a copy. Source: reference §17."""

from collections.abc import Mapping

from lazulite.protocol.errors import invalid_header

AUTHORIZATION = "x-ms-copy-source-authorization"


def source_authorization(headers: Mapping[str, str]) -> str | None:
    """Return the credentials for the source; None: there are none. Raises `InvalidHeaderValue`, no bearer token."""
    text = headers.get(AUTHORIZATION)
    if text is not None and not text.lower().startswith("bearer "):
        raise invalid_header(AUTHORIZATION, "")
    return text
