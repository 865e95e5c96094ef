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
    return base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()


def account_sas(expiry: str, service: str = "t", permissions: str = "rwdlacu") -> str:
    """Return the query string of an account SAS for every operation of a service, valid until `expiry` (ISO 8601)."""
    fields = {"sv": _SAS_VERSION, "ss": service, "srt": "soc", "sp": permissions, "se": expiry}
    # account, sp, ss, srt, st, se, sip, spr, sv, each ended by a line feed; three of them are empty here.
    text = f"{ACCOUNT}\n{fields['sp']}\n{fields['ss']}\n{fields['srt']}\n\n{expiry}\n\n\n{_SAS_VERSION}\n"
    return urlencode(fields | {"sig": _sign(text)})


def shared_key(method: str, path: str, date: str, content_type: str = "") -> str:
    """Return the value of an Authorization header.

    `path` is the request's as sent, with `comp` and no more of its query; `date` is the `x-ms-date` header.
    """
    return f"SharedKey {ACCOUNT}:" + _sign(f"{method}\n\n{content_type}\n{date}\n/{ACCOUNT}{path}")
