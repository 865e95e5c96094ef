from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import EventualResponse, Request, Response
from lazulite.server.middleware.forwarded import HOPS_MAX, Proxied
from tests.server.wire import Echo

PROXIES = [ip_network("192.0.2.0/24"), ip_network("2001:db8::/32")]


def close(response: EventualResponse) -> None:
    assert not isinstance(response, Response)
    response.close()


def seen(sender: str = "192.0.2.1", **headers: str) -> tuple[str, str, str]:
    """Return scheme, host and client as the service behind sees them."""
    named = {f"x-forwarded-{name}": value for name, value in headers.items()}
    request = Request("GET", "/", headers={"host": "inside:1"} | named, client=sender)
    proxied = Proxied(Echo(), PROXIES)
    close(proxied.respond(request))
    first = (request.scheme, request.headers["host"], request.client)
    proxied.reject(request, ServiceError("InvalidInput"))
    assert (request.scheme, request.headers["host"], request.client) == first, "once more changes nothing"
    return first


def test_a_proxy_is_believed() -> None:
    forwarded = {"proto": "https", "host": "a.table.example.org", "for": "198.51.100.7"}
    assert seen(**forwarded) == ("https", "a.table.example.org", "198.51.100.7")
    assert seen("2001:db8::5", **forwarded) == ("https", "a.table.example.org", "198.51.100.7")


@pytest.mark.parametrize("client", ["", "127.0.0.1", "198.51.100.1", "::1", "2001:db9::1", "testclient"])
def test_nobody_else_is(client: str) -> None:
    assert seen(client, proto="https", host="evil.example", **{"for": "192.0.2.9"}) == ("http", "inside:1", client)


def test_without_the_headers_nothing_changes() -> None:
    assert seen() == ("http", "inside:1", "192.0.2.1")


@pytest.mark.parametrize(
    ("said", "scheme"),
    [
        ("https", "https"),
        ("HTTPS", "https"),
        ("http", "http"),
        ("http, https", "https"),
        ("https,http", "http"),
        ("", "http"),
        ("wss", "http"),
        ("https,", "http"),
    ],
)
def test_schemes(said: str, scheme: str) -> None:
    assert seen(proto=said)[0] == scheme


@pytest.mark.parametrize(
    ("said", "host"),
    [
        ("a.example:8443", "a.example:8443"),
        ("evil.example, a.example", "a.example"),
        ("[2001:db8::1]:1", "[2001:db8::1]:1"),
        ("", "inside:1"),
        ("a b", "inside:1"),
        ("a/b", "inside:1"),
        ("user@a", "inside:1"),
        ("a,", "inside:1"),
    ],
)
def test_hosts(said: str, host: str) -> None:
    assert seen(host=said)[1] == host


@pytest.mark.parametrize(
    ("said", "client"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7:5555", "198.51.100.7"),
        ("[2001:db9::7]:5555", "2001:db9::7"),
        ("2001:db9::7", "2001:db9::7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("198.51.100.7, 192.0.2.8", "198.51.100.7"),
        ("198.51.100.7, 192.0.2.8, 2001:db8::3", "198.51.100.7"),
        ("10.0.0.1, 198.51.100.7", "198.51.100.7"),
        ("192.0.2.9, 192.0.2.8", "192.0.2.9"),
        ("192.0.2.9, unknown, 192.0.2.8", "192.0.2.8"),
        ("unknown", "192.0.2.1"),
        ("198.51.100.7,", "192.0.2.1"),
        ("", "192.0.2.1"),
        ("10.0.0.9, " + "192.0.2.8, " * HOPS_MAX + "192.0.2.7", "192.0.2.8"),
    ],
)
def test_clients(said: str, client: str) -> None:
    assert seen(**{"for": said})[2] == client


def test_a_second_look_keeps_the_steady_lines() -> None:
    fields = Fields.of({"host": "inside:1", "x-forwarded-host": "a.example"})
    request = Request("GET", "/", headers=fields, client="192.0.2.1")
    proxied = Proxied(Echo(), PROXIES)
    close(proxied.respond(request))
    once = request.headers
    close(proxied.respond(request))
    assert isinstance(once, Fields)
    assert isinstance(request.headers, Fields)
    assert request.headers.steady == once.steady


def test_a_rejection_tells_the_client_too() -> None:
    request = Request("", "", headers={"x-forwarded-for": "198.51.100.7"}, client="192.0.2.1")
    response = Proxied(Echo(), PROXIES).reject(request, ServiceError("InvalidInput"))
    assert (response.status, request.client) == (400, "198.51.100.7")


@given(st.text(st.characters(max_codepoint=255)))
def test_any_value_is_read_or_passed_over(text: str) -> None:
    request = Request("GET", "/p", "q", {f"x-forwarded-{name}": text for name in ("for", "proto", "host")})
    request.client = "192.0.2.1"
    close(Proxied(Echo(), PROXIES).respond(request))
    assert request.scheme in ("http", "https")
    assert (request.path, request.query) == ("/p", "q")
