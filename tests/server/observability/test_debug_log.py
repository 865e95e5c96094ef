"""Heads in full, secrets out."""

import io

import pytest

from lazulite.protocol.clock import UNIX_EPOCH_TICKS
from lazulite.protocol.fault import Effect, Fault
from lazulite.protocol.message import Request, RequestRecord, Response
from lazulite.protocol.secret_headers import SECRET_HEADERS
from lazulite.server.observability.debug_log import DebugLog
from lazulite.server.observability.exchange import Exchange
from lazulite.server.observability.redaction import redact, shown_field


def logged(request: Request, response: Response) -> str:
    output = io.BytesIO()
    log = DebugLog(output, lambda: UNIX_EPOCH_TICKS)
    log.record(Exchange(request, response, 1.5, 2, 3))
    log.close()
    return output.getvalue().decode()


def test_an_exchange() -> None:
    request = Request(
        "GET",
        "/t",
        "sv=2019-02-02&sig=SECRET%3D&x=y",
        {"host": "a", "authorization": "SharedKey a:SECRET", "referer": "http://a/?SIG=SECRET&b"},
        b"SECRET",
        client="192.0.2.1",
        id="i",
    )
    response = Response(
        403, [("Server", "1\r\nforged"), ("X", "SECRET"), ("Location", "http://a/?sig=SECRET")], b"SECRET", "Code"
    )
    assert logged(request, response) == (
        "1970-01-01T00:00:00.000Z i 192.0.2.1 1.500 ms\n"
        "> GET /t?sv=2019-02-02&sig=REDACTED&REDACTED (2 bytes)\n"
        "> host: a\n"
        "> authorization: REDACTED\n"
        "> referer: http://a/?REDACTED\n"
        "< 403 Code (3 bytes)\n"
        "< Server: 1\\x0d\\x0aforged\n"
        "< X: REDACTED\n"
        "< Location: http://a/?REDACTED\n"
    )


@pytest.mark.parametrize("name", ["sig", "SIG", "%73ig", "s%49g", "si%67", "%53%69%47", "sig%3D", "sig%3d"])
def test_every_spelling_of_the_signature(name: str) -> None:
    text = redact(f"/t?a=b&{name}=SECRET%2B%2f&c=d")
    assert "SECRET" not in text
    assert text.endswith("&c=d")


def test_failures_say_where_but_not_what() -> None:
    output = io.BytesIO()
    log = DebugLog(output, lambda: UNIX_EPOCH_TICKS)
    try:
        int("SECRET")
    except ValueError as failure:
        log.failed("i", failure)
    log.close()
    assert b"i ValueError\n! test_debug_log.py:" in output.getvalue()
    assert b"SECRET" not in output.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "/t?sig=SECRET&x=y",
        '/t?sig="SECRET"&x=y',
        "/t?sig='SECRET'",
        "/t?sig+=SECRET",
        "/t?sig%20=SECRET",
        "/t%3Fsig%3DSECRET%26x",
        "/t?next=%252Ft%253Fsig%253DSECRET",
        "/t?%2573%2569%2567=SECRET",
        "/t?SIG=SECRET",
        "SharedKey acct:SECRET",
        "sharedkeylite  acct:SECRET",
        "Bearer SECRET",
    ],
)
def test_a_secret_in_any_spelling_is_taken_out(text: str) -> None:
    assert "SECRET" not in redact(text)


SECRET_FIELDS = (
    *("authorization", "x-original-authorization", "x-ms-token", "x-api-key", "cookie", "proxy-authorization"),
    *("x-ms-encryption-key", "x-ms-encryption-key-sha256", "x-ms-source-encryption-key", "x-ms-lease-id"),
    *("x-ms-proposed-lease-id", "x-ms-meta-note", "x-ms-tags", "x-ms-if-tags", "x-ms-source-if-tags"),
    *("x-ms-copy-source-authorization", "x-ms-popreceipt", "x-ms-unknown", "set-cookie"),
)


@pytest.mark.parametrize("name", SECRET_FIELDS)
def test_fields_that_are_not_named_are_written_without_values(name: str) -> None:
    request = Request("GET", "/t", headers={name: "abc SECRET"}, id="id")
    text = logged(request, Response(200, [(name, "SECRET")]))
    assert "SECRET" not in text
    assert f"> {name}: REDACTED\n" in text
    assert f"< {name}: REDACTED\n" in text


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("popreceipt=SECRET&visibilitytimeout=1", "popreceipt=REDACTED&visibilitytimeout=1"),
        ("PopReceipt=SECRET", "popreceipt=REDACTED"),
        ("pop%72eceipt=SECRET", "REDACTED"),
        ("comp=list&X-Amz-Signature=SECRET", "comp=list&REDACTED"),
        ("SECRET", "REDACTED"),
        ("SECRET=", "REDACTED"),
        ("sig%3DSECRET", "REDACTED"),
        ("$filter=a eq 1&skoid=SECRET&ske=2", "$filter=a eq 1&skoid=REDACTED&ske=2"),
        ("marker=Bearer SECRET", "marker=Bearer REDACTED"),
    ],
)
def test_parameters_that_are_not_named_are_not_written(query: str, shown: str) -> None:
    assert f"> GET /t?{shown} (2 bytes)\n" in logged(Request("GET", "/t", query), Response(200))


@pytest.mark.parametrize("name", ["x-ms-copy-source", "location", "referer"])
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://s3.example/b/k?X-Amz-Signature=SECRET", "https://s3.example/b/k?REDACTED"),
        ("https://user:SECRET@a.example/b", "https://REDACTED@a.example/b"),
        ("https://a.example/b#SECRET", "https://a.example/b"),
        ("/acct/c/b?sig=SECRET", "/acct/c/b?REDACTED"),
        ("https://a.example/sig=SECRET", "https://a.example/sig=REDACTED"),
    ],
)
def test_what_is_written_of_a_url(name: str, url: str, shown: str) -> None:
    text = logged(Request("PUT", "/t", headers={name: url}), Response(200, [(name, url)]))
    assert f"> {name}: {shown}\n" in text
    assert f"< {name}: {shown}\n" in text


def test_an_injected_fault_is_marked() -> None:
    request = Request("GET", "/a", record=RequestRecord(fault=Fault("busy", Effect.ERROR, "ServerBusy")))
    assert "! fault busy: error" in logged(request, Response(503)).splitlines()


@pytest.mark.parametrize("name", sorted(SECRET_HEADERS))
def test_no_secret_header_is_shown(name: str) -> None:
    assert "SECRET" not in shown_field(name, "https://a.b/c?sv=1&sig=SECRET")
