"""The security model of the explorer, line by line, by sockets against one listener."""

import re
from base64 import b64encode
from collections.abc import Iterator
from socket import create_connection
from typing import NamedTuple

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.testing import Storage, server
from lazulite.ui.security import CONTENT_SECURITY_POLICY, KnownHosts, is_same_origin
from tests.ui.explorer import Client, another_link, explorer


class Explored(NamedTuple):
    storage: Storage
    client: Client


@pytest.fixture(scope="module")
def explored() -> Iterator[Explored]:
    with server() as storage, explorer(storage) as link:
        yield Explored(storage, Client(link))


def raw(explored: Explored, text: str) -> str:
    """Return what comes back for bytes that no client of this language sends."""
    host, _, port = explored.client.host.partition(":")
    with create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(text.encode("latin-1"))
        found = b""
        while part := connection.recv(65536):
            found += part
    return found.decode("latin-1")


def head(explored: Explored, line: str, *fields: str, host: str | None = None) -> str:
    host = explored.client.host if host is None else host
    return "\r\n".join([f"{line} HTTP/1.1", f"Host: {host}", "Connection: close", *fields, "", ""])


@pytest.mark.parametrize(
    "host", ["attacker.example", "127.0.0.1.attacker.example", "localhost.attacker.example", "0", ""]
)
def test_a_foreign_host_gets_nothing_whatever_it_knows(explored: Explored, host: str) -> None:
    token = another_link(explored.storage).partition("token=")[2]
    for line in ("GET /", "GET /static/app.css", f"GET /?token={token}", "POST /sign-in", "GET /sessions.json"):
        fields = (f"Cookie: {explored.client.cookie}", "Content-Length: 0")
        answer = raw(explored, head(explored, line, *fields, host=host))
        assert answer.startswith(("HTTP/1.1 421 ", "HTTP/1.1 400 ")), answer
        assert "Set-Cookie" not in answer
    assert Client(f"{explored.client.origin}/?token={token}").get("/").status == 200  # The token is still good.


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_names_of_this_machine_are_answered(explored: Explored, host: str) -> None:
    port = explored.client.host.partition(":")[2]
    answer = raw(explored, head(explored, "GET /", host=f"{host}:{port}"))
    assert answer.startswith("HTTP/1.1 401 ")


def test_a_request_without_a_host_gets_nothing(explored: Explored) -> None:
    answer = raw(explored, f"GET / HTTP/1.0\r\nCookie: {explored.client.cookie}\r\n\r\n")
    assert answer.startswith("HTTP/1.1 421 ")


def test_hosts_by_configured_names() -> None:
    hosts = KnownHosts(["Box.example"])
    assert all(host in hosts for host in ("box.example", "BOX.example:1", "127.0.0.1:80", "[::1]:80", "[::1]"))
    assert not any(host in hosts for host in ("box.example:1x", "[::2]", "::1", "127.0.0.1:80:80", "x.box.example"))


def test_without_a_session_there_is_the_sign_in_page_alone(explored: Explored) -> None:
    for path in ("/", "/jobs", "/nope", "/devstoreaccount1/tables"):
        answer = raw(explored, head(explored, f"GET {path}"))
        assert answer.startswith("HTTP/1.1 401 ")
        assert "devstoreaccount1" not in answer.partition("\r\n\r\n")[2]
    for line in ("GET /.json", "GET /sessions.json"):
        assert raw(explored, head(explored, line)).startswith("HTTP/1.1 401 ")
    wrong = explored.client.cookie.partition("=")[0] + "=" + "0" * 64
    assert raw(explored, head(explored, "GET /", f"Cookie: {wrong}")).startswith("HTTP/1.1 401 ")


def test_a_token_is_exchanged_for_a_strict_cookie_once(explored: Explored) -> None:
    path = "/?" + another_link(explored.storage).partition("?")[2]
    first = explored.client.send("GET", path)
    assert (first.status, first.headers["location"]) == (303, "/")
    name, _, rest = first.headers["set-cookie"].partition("=")
    assert name == f"lazulite-{explored.client.host.partition(':')[2]}"
    assert re.fullmatch(r"[0-9a-f]{64}; HttpOnly; SameSite=Strict; Path=/", rest)
    second = explored.client.send("GET", path)
    assert second.status == 403
    assert "set-cookie" not in second.headers


def test_a_link_on_another_page_leads_on_by_a_page_of_this_origin(explored: Explored) -> None:
    path = "/?" + another_link(explored.storage).partition("?")[2]
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    found = explored.client.send("GET", path, headers)
    assert found.status == 200
    assert 'http-equiv="refresh" content="0; url=/"' in found.text
    assert "set-cookie" in found.headers


FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("fields", "is_right"),
    [
        (("Origin: {origin}",), True),
        (("Sec-Fetch-Site: same-origin",), True),
        (("Origin: {origin}", "Sec-Fetch-Site: same-origin"), True),
        ((), False),
        (("Origin: http://127.0.0.1:1",), False),
        (("Origin: null",), False),
        (("Origin: null", "Sec-Fetch-Site: same-origin"), True),
        (("Origin: null", "Sec-Fetch-Site: cross-site"), False),
        (("Origin: http://attacker.example", "Sec-Fetch-Site: same-origin"), False),
        (("Origin: {origin}", "Sec-Fetch-Site: same-site"), False),
        (("Sec-Fetch-Site: cross-site",), False),
        (("Sec-Fetch-Site: none",), False),
    ],
)
def test_a_change_needs_this_origin(explored: Explored, fields: tuple[str, ...], is_right: bool) -> None:
    body = f"csrf={explored.client.csrf}&number=999999"
    own = [each.format(origin=explored.client.origin) for each in fields]
    lines = [FORM, f"Cookie: {explored.client.cookie}", f"Content-Length: {len(body)}", *own]
    answer = raw(explored, head(explored, "POST /sessions?do=end", *lines) + body)
    assert answer.startswith("HTTP/1.1 404 " if is_right else "HTTP/1.1 403 "), answer


def test_a_change_needs_the_token_of_the_session(explored: Explored) -> None:
    other = Client(another_link(explored.storage))
    for csrf in ("", "0" * 64, other.csrf, "\u00e9"):
        found = explored.client.post("/sessions?do=end", {"number": "999999"}, csrf=csrf)
        assert found.status == 403
        assert "another session" in found.text
    assert explored.client.post("/sessions?do=end", {"number": "999999"}).status == 404


def test_a_get_changes_nothing(explored: Explored) -> None:
    other = Client(another_link(explored.storage))
    number = next(each["number"] for each in other.json("/sessions")["sessions"] if each["is_own"])
    for path in (f"/sessions?do=end&number={number}", f"/sessions?do=end&number={number}&csrf={explored.client.csrf}"):
        assert explored.client.get(path).status == 200
    assert other.get("/").status == 200
    assert explored.client.send("DELETE", "/sessions").status == 405
    assert explored.client.post("/sessions?do=end", {"number": str(number)}).location == "/sessions"
    assert other.get("/").status == 401


def test_a_page_of_another_origin_cannot_load_a_page_as_a_part(explored: Explored) -> None:
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert explored.client.send("GET", "/sessions.json", headers).status == 403


@pytest.mark.parametrize("path", ["/", "/jobs", "/.json", "/nope", "/sign-in", "/static/app.js", "/static/nope"])
def test_every_response_has_the_headers(explored: Explored, path: str) -> None:
    headers = explored.client.get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == ("no-cache" if path == "/static/app.js" else "no-store")


def test_a_malformed_request_gets_the_headers_too(explored: Explored) -> None:
    answer = raw(explored, "GET / HTTP/1.1\r\nHost: x\r\nBad header\r\n\r\n")
    assert answer.startswith("HTTP/1.1 400 ")
    assert f"Content-Security-Policy: {CONTENT_SECURITY_POLICY}" in answer


def test_text_of_a_client_is_text(explored: Explored) -> None:
    agent = "<script>alert(1)</script>\"'&"
    client = Client(another_link(explored.storage))
    link = another_link(explored.storage)
    client.send("GET", f"/?{link.partition('?')[2]}", {"User-Agent": agent})
    page = client.get("/sessions").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>" not in client.get("/%3Cscript%3Ealert(1)%3C/script%3E").text
    assert not re.search(r"<script(?![^>]* src=)|\sstyle=|\son\w+=", page)


def test_keys_are_on_no_page(explored: Explored) -> None:
    key = b64encode(DEVELOPMENT_ACCOUNT.keys[0]).decode()
    for path in ("/", "/sessions", "/jobs", "/nope"):
        found = explored.client.get(path).text + explored.client.get(f"{path}.json").text
        assert key not in found
        assert DEVELOPMENT_ACCOUNT.keys[0].hex() not in found


def test_forms_are_bounded(explored: Explored) -> None:
    fields = [FORM, f"Cookie: {explored.client.cookie}", f"Origin: {explored.client.origin}"]
    answer = raw(explored, head(explored, "POST /sessions?do=end", *fields, "Content-Length: 3000000"))
    assert answer.startswith("HTTP/1.1 413 ")
    many = "&".join(f"f{number}=1" for number in range(2500))
    answer = raw(explored, head(explored, "POST /sessions?do=end", *fields, f"Content-Length: {len(many)}") + many)
    assert answer.startswith("HTTP/1.1 400 ")
    kind = {"Origin": explored.client.origin, "Content-Type": "multipart/form-data; boundary=x"}
    assert explored.client.send("POST", "/sessions?do=end", kind, b"x").status == 415


def test_an_unknown_action_is_refused(explored: Explored) -> None:
    assert explored.client.post("/sessions?do=nothing").status == 404
    assert explored.client.post("/").status == 404


def test_origin_under_tls() -> None:
    assert is_same_origin("https", {"host": "box:1", "origin": "https://box:1"})
    assert not is_same_origin("https", {"host": "box:1", "origin": "http://box:1"})


def test_another_cookie_of_the_same_name_signs_nobody_out(explored: Explored) -> None:
    name = explored.client.cookie.partition("=")[0]
    answer = raw(explored, head(explored, "GET /sessions", f"Cookie: {name}=tossed; {explored.client.cookie}"))
    assert answer.startswith("HTTP/1.1 200 ")


def test_no_link_of_a_page_leads_to_a_host_that_its_address_names(explored: Explored) -> None:
    found = explored.client.get("//evil.example/x")
    assert found.status == 404
    assert 'href="/evil.example/x"' in found.text
    assert '"//' not in found.text


@pytest.mark.parametrize(
    "page",
    [
        "/heat?last=" + "1" * 5000,
        "/tables/people?next=5",
        "/tables/people?next=" + "[" * 20_000,
        "/tables/%E8%A1%A8",
        "/tables/%E8%A1%A8/entity?pk=a&rk=b",
        "/tables/people%28%29%3F%24top%3D1/entity?pk=a&rk=b",
    ],
)
def test_a_hostile_address_is_no_unexpected_error(explored: Explored, page: str) -> None:
    found = explored.client.get(f"/{DEVELOPMENT_ACCOUNT.name}{page}")
    assert found.status in (200, 400, 404)
    assert "InternalError" not in found.text


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("/tables/people?do=delete-rows", {"row": "5"}),
        ("/tables/people?do=delete-rows", {"row": "[" * 50_000}),
        ("/tables/people?do=build", {"property": "x"}),
        ("/tables/people?do=build&account=other&table=other", {}),
        (
            "/tables/people?do=set",
            {"confirm": "people", "property": "p", "type": "String as JSON", "text": "[" * 50_000},
        ),
        ("/blobs/ccc?do=delete-blobs", {"blob": "5"}),
        ("/queues/qqq?do=put&account=other&queue=other", {"text": "x"}),
    ],
)
def test_a_hostile_form_is_no_unexpected_error(explored: Explored, action: str, fields: dict[str, str]) -> None:
    account = f"/{DEVELOPMENT_ACCOUNT.name}"
    explored.client.post(f"{account}/queues?do=create", {"name": "qqq"})
    found = explored.client.post(f"{account}{action}", fields)
    assert found.status in (303, 400)
    if found.status == 303:
        assert found.location.startswith(account)
        assert "other" not in found.location


def test_a_number_without_end_is_no_session(explored: Explored) -> None:
    assert explored.client.post("/sessions?do=end", {"number": "1" * 5000}).status == 404
