"""Headers that ask for a protection which Lazulite does not give. Source: reference §48.

A request with one of them is rejected. To ignore it would be a false promise: content that its client takes for
encrypted with its own key, or for safe from deletion.
"""

from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError

HEADERS = frozenset(
    {
        "x-ms-encryption-key",
        "x-ms-encryption-key-sha256",
        "x-ms-encryption-algorithm",
        "x-ms-encryption-scope",
        "x-ms-default-encryption-scope",
        "x-ms-immutability-policy-until-date",
        "x-ms-immutability-policy-mode",
        "x-ms-legal-hold",
        "x-ms-source-encryption-key",
        "x-ms-expiry-option",
    }
)
_ACCOUNT_KEY = "$account-encryption-key"
"""The scope that every account has: to name it asks for nothing."""


_OPERATIONS = frozenset({"expiry", "immutabilitypolicies", "legalhold"})
"""The components whose operations set such a header's property. They are rejected as operations that are not built."""


def reject_unsupported(headers: Mapping[str, str], component: str) -> None:
    """Reject a request with such a header.

    Args:
        headers: of the request.
        component: that the request addresses, as `component_of` returns it.

    Raises:
        ServiceError: `UnsupportedHeader`.
    """
    if HEADERS.isdisjoint(headers) or component in _OPERATIONS:
        return
    for name in sorted(HEADERS.intersection(headers)):
        if headers[name] != _ACCOUNT_KEY:
            raise ServiceError("UnsupportedHeader", details=[("HeaderName", name)])
