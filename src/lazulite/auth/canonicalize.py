"""The string that a client of the Queue or the Blob service signs under Shared Key and Shared Key Lite.

Source: "Authorize with Shared Key" of the REST reference.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from lazulite.protocol.fields import METADATA_PREFIX
from lazulite.protocol.message import Request
from lazulite.protocol.version import EMPTY_HEADERS_SIGNED_SINCE, EMPTY_LENGTH_SINCE, assumed_version

_STANDARD = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
_SIGNS = "!#$%&*.^_`|~+"
_ORDER = str.maketrans({"-": None, "'": None} | {sign: chr(ord("!") + index) for index, sign in enumerate(_SIGNS)})
"""What the service compares of a header name: no hyphens, no apostrophes, other signs before digits and letters."""


def string_to_sign(scheme: str, request: Request, account: str, path: str, comp: str | None) -> str:
    """Return the string-to-sign of a request: `Canonicalize` for queues and blobs.

    Args:
        scheme: `SharedKey` or `SharedKeyLite`.
        request: for its method, query and headers.
        account: name without `-secondary`.
        path: of the URL, as the client spelled it when signing.
        comp: value of the query parameter, of which alone Shared Key Lite knows.
    """
    headers = dict(request.headers)
    version = headers.get("x-ms-version") or assumed_version(headers, {})
    if "x-ms-date" in headers:
        headers["date"] = ""
    resource = f"/{account}{path}"
    if scheme == "SharedKeyLite":
        lines = [request.method, *(headers.get(name, "") for name in ("content-md5", "content-type", "date"))]
        return "\n".join((*lines, *_extensions(headers, version), resource + (f"?comp={comp}" if comp else "")))
    if headers.get("content-length") == "0" and version >= EMPTY_LENGTH_SINCE:
        headers["content-length"] = ""
    lines = [request.method, *(headers.get(name, "") for name in _STANDARD)]
    return "\n".join((*lines, *_extensions(headers, version), resource, *_parameters(request.query)))


def _extensions(headers: dict[str, str], version: str) -> Iterator[str]:
    """Yield the lines of the headers that begin with `x-ms-`, in the order of the service.

    *Unverified*: the order of two names that differ in hyphens alone; and values with several blanks in a row. By the
    documentation these become one blank, and no SDK does that.
    """
    names = sorted([name for name in headers if name.startswith("x-ms-")])
    # Without metadata, the names that come together have one order by either comparison.
    if METADATA_PREFIX in "\n".join(names):
        names.sort(key=_weight)
    for name in names:
        text = headers[name].strip()
        if text or version >= EMPTY_HEADERS_SIGNED_SINCE:
            yield f"{name}:{text}"


def _weight(name: str) -> str:
    return name.translate(_ORDER)


@lru_cache(maxsize=64)
def _parameters(query: str) -> tuple[str, ...]:
    """Return the lines of the query parameters, their bytes as characters.

    Cached, as several spellings of one path may be tried for a signature.
    """
    values: defaultdict[str, list[str]] = defaultdict(list)
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        values[_decoded(name).lower()].append(_decoded(value))
    return tuple(f"{name}:{','.join(sorted(values[name]))}" for name in sorted(values))


def _decoded(text: str) -> str:
    """Return the bytes of a percent-encoded text as characters, which is the form of a head."""
    return unquote_to_bytes(text.replace("+", " ").encode("latin-1", "replace")).decode("latin-1")
