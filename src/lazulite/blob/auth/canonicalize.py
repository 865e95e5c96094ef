"""The string that a client of the Blob service signs under Shared Key and Shared Key Lite.

Source: "Authorize with Shared Key" of the REST reference.
"""

from lazulite.auth.canonicalize import string_to_sign
from lazulite.blob.auth.versions import SHARED_KEY_SINCE
from lazulite.protocol.message import Request
from lazulite.protocol.version import UNSTATED


def blob_string_to_sign(scheme: str, request: Request, account: str, path: str, comp: str | None) -> str:
    """Return the string-to-sign of a request: `Canonicalize` for blobs. The arguments are those of `string_to_sign`."""
    version = request.headers.get("x-ms-version") or UNSTATED
    known = "SharedKeyLite" if version < SHARED_KEY_SINCE else scheme
    return string_to_sign(known, request, account, path, comp)
