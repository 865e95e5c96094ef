"""Signed requests: a `Call` becomes a `Request`, by Shared Key, or with a token that was given.

An account SAS would not do: it permits no access policies.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode

from lazulite.auth.accounts.account import Account
from lazulite.auth.canonicalize import string_to_sign
from lazulite.protocol.clock import format_http_date
from lazulite.protocol.message import Request
from lazulite.resources.sender import TABLE_SAFE, Call, Reply, RequestError, xml_of
from lazulite.table.credentials import table_string_to_sign

VERSION = "2021-12-02"
"""The protocol version of the requests."""
_SAFE = {"table": TABLE_SAFE}
"""Service -> the characters of a path that stand for themselves, besides letters and digits."""
_MESSAGE_CHARACTERS_MAX = 500


class AccountSigner(NamedTuple):
    """An account as requests name it."""

    account: Account
    token: str = ""
    """A SAS for all requests, in place of a key; "" for none."""

    def request(self, call: Call, base: str, host: str, now: int) -> Request:
        """Return the signed request.

        Args:
            call: the request.
            base: the path of the account's endpoint: "", or a slash and the name of the account.
            host: the `Host` field.
            now: the time, in ticks.
        """
        path = f"{base}/{quote(call.path, safe=_SAFE.get(call.service, '/$'))}"
        query = urlencode({name: text for name, text in call.parameters.items() if text}, quote_via=quote)
        headers = {name.lower(): text for name, text in call.headers.items()}
        headers |= {"host": host, "content-length": str(len(call.body))}
        headers |= {"x-ms-version": VERSION, "x-ms-date": format_http_date(now)}
        if self.token:
            return Request(call.method, path, f"{query}{'&' if query else ''}{self.token}", headers, call.body)
        request = Request(call.method, path, query, headers, call.body)
        canonicalize = table_string_to_sign if call.service == "table" else string_to_sign
        text = canonicalize("SharedKey", request, self.account.name, path, call.parameters.get("comp") or None)
        signature = self.account.signers[0].sign(text.encode("latin-1")).decode()
        headers["authorization"] = f"SharedKey {self.account.name}:{signature}"
        return request


def reply_of(status: int, headers: Mapping[str, str], body: bytes) -> Reply:
    """Return a response, with the error code and the message of a rejection.

    Args:
        status: of the response.
        headers: by name in lower case.
        body: whole.
    """
    if status < 400:
        return Reply(status, headers, body)
    return Reply(status, headers, body, headers.get("x-ms-error-code", f"HTTP status {status}"), _reason(body))


def _reason(body: bytes) -> str:
    """Return the message of an error, without the id of the request; "" if there is none."""
    if body.lstrip().startswith(b"{"):
        found = _json_message(body)
    else:
        try:
            element = xml_of(body).find("{*}Message") if body else None
        except RequestError:
            element = None
        found = "" if element is None else element.text or ""
    return found.partition("\n")[0].strip()[:_MESSAGE_CHARACTERS_MAX]


def _json_message(body: bytes) -> str:
    try:
        return str(json.loads(body)["odata.error"]["message"]["value"])
    except (ValueError, LookupError, TypeError):
        return ""
