"""The string that a client of the Table service signs under Shared Key and Shared Key Lite (reference §13)."""

from lazulite.auth.shared_key import request_date
from lazulite.protocol.message import Request


def table_string_to_sign(scheme: str, request: Request, account: str, path: str, comp: str | None) -> str:
    """Return the string-to-sign of a request: `Canonicalize` for tables.

    Args:
        scheme: `SharedKey` or `SharedKeyLite`.
        request: for its method and headers.
        account: name without `-secondary`.
        path: of the URL, as the client spelled it when signing.
        comp: value of the query parameter, the only one that is signed.
    """
    headers = request.headers
    resource = f"/{account}{path}" if comp is None else f"/{account}{path}?comp={comp}"
    moment = request_date(request)
    if scheme == "SharedKeyLite":
        return f"{moment}\n{resource}"
    md5, media_type = headers.get("content-md5", ""), headers.get("content-type", "")
    return f"{request.method}\n{md5}\n{media_type}\n{moment}\n{resource}"
