"""Authorization of prebuilt requests, with the standard library alone: account SAS and Shared Key."""

import base64
import hashlib
import hmac
from urllib.parse import urlencode

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The well-known development account, for a server that this harness started on the loopback address."""

_SAS_VERSION = "2019-02-02"


def _sign(text: str) -> str:
    digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    return base64.b64encode(digest).decode()


def account_sas(expiry: str) -> str:
    """Return the query string of an account SAS for every table operation, valid until `expiry` (ISO 8601, UTC)."""
    permissions, services, resource_types = "rwdlacu", "t", "soc"
    # account, sp, ss, srt, st, se, sip, spr, sv, each ended by a line feed; three of them are empty here.
    signature = _sign(f"{ACCOUNT}\n{permissions}\n{services}\n{resource_types}\n\n{expiry}\n\n\n{_SAS_VERSION}\n")
    fields = {"sv": _SAS_VERSION, "ss": services, "srt": resource_types, "sp": permissions, "se": expiry}
    return urlencode(fields | {"sig": signature})


def shared_key(method: str, path: str, date: str, content_type: str = "") -> str:
    """Return the value of an Authorization header.

    Args:
        method: of the request.
        path: of the request as sent, with `comp` and no more of its query.
        date: the `x-ms-date` header.
        content_type: the header, if there is one.
    """
    return f"SharedKey {ACCOUNT}:" + _sign(f"{method}\n\n{content_type}\n{date}\n/{ACCOUNT}{path}")
