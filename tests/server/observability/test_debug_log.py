"""Heads in full, secrets out."""

import io

import pytest

from lazulite.protocol.clock import UNIX_EPOCH_TICKS
from lazulite.protocol.message import Request, Response
from lazulite.server.observability.debug_log import DebugLog, redact
from lazulite.server.observability.exchange import Exchange


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
    response = Response(403, [("X", "1\r\nforged"), ("Location", "http://a/?sig=SECRET")], b"SECRET", "Code")
    assert logged(request, response) == (
        "1970-01-01T00:00:00.000Z i 192.0.2.1 1.500 ms\n"
        "> GET /t?sv=2019-02-02&sig=REDACTED&x=y (2 bytes)\n"
        "> host: a\n"
        "> authorization: REDACTED\n"
        "> referer: http://a/?SIG=REDACTED&b\n"
        "< 403 Code (3 bytes)\n"
        "< X: 1\\x0d\\x0aforged\n"
        "< Location: http://a/?sig=REDACTED\n"
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


@pytest.mark.parametrize("name", ["Authorization", "X-Original-Authorization", "X-MS-Token", "X-Api-Key", "Cookie"])
def test_fields_that_hold_secrets_by_their_name(name: str) -> None:
    output = io.BytesIO()
    log = DebugLog(output)
    request = Request("GET", "/t", headers={name.lower(): "abc SECRET"}, id="id")
    log.record(Exchange(request, Response(200), 1.0, 0, 0))
    log.close()
    assert b"SECRET" not in output.getvalue()
