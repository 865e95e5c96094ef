"""What the rejection of credentials tells their sender: the element `AuthenticationErrorDetail`."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import parse_qsl

from .answers import Answer, xml_text
from .sas import account_sas
from .signing import Endpoint, Signer, Unsigned, full_shared_key

WRONG_KEY = "bm90IHRoZSBrZXkgb2YgdGhlIGFjY291bnQ="
_INSTANT = r"\[\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\]"
NO_START = re.compile(f"Signed expiry time {_INSTANT} must be after signed start time {_INSTANT}")
FRAME = re.compile(
    f"Signature not valid in the specified time frame: Start {_INSTANT} - Expiry {_INSTANT} - Current {_INSTANT}"
)
FRAMES = {
    "expired": ({"se": "2020-01-01T00:00:00Z"}, NO_START),
    "expired, with a start": ({"st": "2019-12-31T00:00:00Z", "se": "2020-01-01T00:00:00Z"}, FRAME),
    "not yet valid": ({"st": "2100-01-01T00:00:00Z", "se": "2100-01-02T00:00:00Z"}, FRAME),
}
"""The times of a token, and what its rejection tells."""

Send = Callable[..., Answer]
"""Sends a GET, given a query, headers and a signer."""


def detail_of(answer: Answer) -> str:
    """The detail of a 403."""
    assert answer.code == (403, "AuthenticationFailed")
    [text] = re.findall(
        "<AuthenticationErrorDetail>(.*?)</AuthenticationErrorDetail>", xml_text(answer.body), re.DOTALL
    )
    return unescape(text)


def forged(signer: Signer = full_shared_key) -> Signer:
    """Sign with another key."""
    return lambda endpoint, request: signer(endpoint._replace(key=WRONG_KEY), request)


def check_shared_key(send: Send, endpoint: Endpoint) -> None:
    """The rejection shows the string that the server signed, and not the right signature."""
    headers = {"x-ms-client-request-id": "find-me"}
    signed: list[str] = []

    def wrong(endpoint: Endpoint, request: Unsigned) -> str | None:
        right, header = full_shared_key(endpoint, request), forged()(endpoint, request)
        assert header is not None
        signed.extend(text.partition(":")[2] for text in (right, header))
        return header

    detail = detail_of(send("comp=list&prefix=zz", headers, wrong))
    right, sent = signed
    assert detail.startswith(
        f"The MAC signature found in the HTTP request '{sent}' is not the same as any computed signature. "
        "Server used following string to sign: 'GET\n"
    )
    assert "\nx-ms-client-request-id:find-me\n" in detail
    assert detail.endswith(f"\n/{endpoint.account}/{endpoint.account}/\ncomp:list\nprefix:zz'.")
    assert right not in detail


def check_old_date(send: Send) -> None:
    """The rejection of a date that is too far away shows it."""
    date = "Mon, 27 Jun 2016 15:25:14 GMT"
    assert (
        detail_of(send("comp=list", {"x-ms-date": date}, full_shared_key)) == f"Request date header too old: '{date}'"
    )


def check_account_sas(send: Send, endpoint: Endpoint, letter: str) -> None:
    """The rejection shows the string that the server signed, or the time frame."""

    def ask(token: str) -> str:
        return detail_of(send(f"comp=list&{token}", {}, lambda *_: None))

    token = account_sas(endpoint, {"ss": letter})
    values = dict(parse_qsl(token))
    lines = [
        endpoint.account,
        *(values.get(name, "") for name in ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")),
        "",
    ]
    detail = ask(token.replace("&sig=", "&sig=A"))
    assert detail == "Signature did not match. String to sign used was " + "\n".join(lines)
    for fields, pattern in FRAMES.values():
        assert pattern.fullmatch(ask(account_sas(endpoint, {"ss": letter, **fields})))
