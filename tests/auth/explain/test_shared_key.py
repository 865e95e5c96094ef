"""Each usual mistake in a signature by Shared Key is told from the others."""

from base64 import b64decode
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.auth.accounts.document import PUBLIC_KEY
from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.explain.explainer import REFUSALS_PER_SECOND
from lazulite.auth.explain.shared_key import MISTAKES
from lazulite.auth.explain.tries import SPELLINGS, TRIES_MAX
from lazulite.blob.auth.credentials import BLOB_CREDENTIALS
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.refusal import Refusal
from lazulite.queue.credentials import QUEUE_CREDENTIALS
from lazulite.table.credentials import TABLE_CREDENTIALS

from .refused import DATE, KEY, OTHER, SECOND, Server, signature

VERSION = "2021-08-06"
JSON = "application/json"
X_MS = {"x-ms-date": DATE, "x-ms-version": VERSION}
LINES = f"x-ms-date:{DATE}\nx-ms-version:{VERSION}"
PATH = "/acct/box/a%20b"


def signed(request: Request, text: str, key: bytes = KEY, scheme: str = "SharedKey") -> Request:
    request.headers = {**request.headers, "authorization": f"{scheme} acct:{signature(text, key)}"}
    return request


def get(path: str = PATH, query: str = "", method: str = "GET", **fields: str) -> Request:
    headers = {name.replace("_", "-"): text for name, text in fields.items()}
    return Request(method, path, query, {"host": "127.0.0.1", **X_MS, **headers})


def full(*standard: str, lines: str = LINES, resource: str = f"/acct{PATH}", method: str = "GET") -> str:
    """Return a string to sign; `standard` are the eleven fields, as many as differ from "" at their beginning."""
    return "\n".join((method, *(*standard, *[""] * 11)[:11], lines, resource))


ENCODED_SLASH = get("/acct/box/a%2Fb")
CASES: list[tuple[str, ServiceCredentials, Request, str, str]] = [
    ("other-scheme", BLOB_CREDENTIALS, get(), f"GET\n\n\n\n{LINES}\n/acct{PATH}", "Shared Key Lite"),
    ("decoded-path", BLOB_CREDENTIALS, get(), full(resource="/acct/acct/box/a b"), "decoded"),
    ("encoded-slash", BLOB_CREDENTIALS, ENCODED_SLASH, full(resource="/acct/acct/box/a/b"), "has as %2F"),
    (
        "encoded-slash",
        BLOB_CREDENTIALS,
        get("/acct/box/a/b/c"),
        full(resource="/acct/acct/box/a%2Fb%2Fc"),
        "%2F for a slash",
    ),
    ("content-length-zero", BLOB_CREDENTIALS, get(content_length="0"), full("", "", "0"), "as 0, and must be empty"),
    (
        "content-length-zero",
        BLOB_CREDENTIALS,
        get(content_length="0", x_ms_version="2012-02-12"),
        full(lines=LINES.replace(VERSION, "2012-02-12")),
        "as empty, and must be 0",
    ),
    (
        "date",
        BLOB_CREDENTIALS,
        get(),
        full("", "", "", "", "", DATE, lines=f"x-ms-version:{VERSION}"),
        "as if it were Date",
    ),
    ("date", BLOB_CREDENTIALS, get(), full("", "", "", "", "", DATE), "the line of Date"),
    ("date", BLOB_CREDENTIALS, get(), full(lines=f"x-ms-version:{VERSION}"), "no date"),
    (
        "date",
        TABLE_CREDENTIALS,
        get("/acct/T", date="Mon, 31 Dec 2029 23:59:59 GMT"),
        "GET\n\n\nMon, 31 Dec 2029 23:59:59 GMT\n/acct/acct/T",
        "Date",
    ),
    ("account", BLOB_CREDENTIALS, get(), full(resource=PATH), "name of the account once"),
    (
        "account",
        BLOB_CREDENTIALS,
        get("/box/b", host="acct.blob.localhost"),
        full(resource="/acct/acct/box/b"),
        "name of the account twice",
    ),
    ("account", BLOB_CREDENTIALS, get("/box/b", host="acct.blob.localhost"), full(resource="/box/b"), "not at all"),
    (
        "media-type",
        TABLE_CREDENTIALS,
        get("/acct/T", method="POST", content_type=f"{JSON}; charset=utf-8"),
        f"POST\n\n{JSON}\n{DATE}\n/acct/acct/T",
        JSON,
    ),
    ("query", BLOB_CREDENTIALS, get(query="comp=list&prefix=a"), full(), "not at all"),
    (
        "query",
        BLOB_CREDENTIALS,
        get(query="restype=c&comp=l%20"),
        full(resource=f"/acct{PATH}\ncomp:l%20\nrestype:c"),
        "encoded",
    ),
    (
        "query",
        BLOB_CREDENTIALS,
        get(query="restype=c&comp=l"),
        full(resource=f"/acct{PATH}\nrestype:c\ncomp:l"),
        "in the order",
    ),
    ("query", BLOB_CREDENTIALS, get(query="comp=l"), full(resource=f"/acct{PATH}?comp=l"), "as they are sent"),
    ("query", TABLE_CREDENTIALS, get("/acct/T", "$top=1"), f"GET\n\n\n{DATE}\n/acct/acct/T?$top=1", "as they are sent"),
    ("query", BLOB_CREDENTIALS, get(query="comp=l&a=b"), full(resource=f"/acct{PATH}?comp=l"), "comp alone"),
    (
        "method",
        TABLE_CREDENTIALS,
        get("/acct/T", method="POST", x_http_method="MERGE"),
        f"MERGE\n\n\n{DATE}\n/acct/acct/T",
        "MERGE, and the request has POST",
    ),
    ("method", QUEUE_CREDENTIALS, get(), full(method="get"), "get"),
    ("line-end", BLOB_CREDENTIALS, get(), full() + "\n", "line end"),
    ("other-service", TABLE_CREDENTIALS, get("/acct/T"), full(resource="/acct/acct/T"), "another service"),
    ("other-service", BLOB_CREDENTIALS, get(), f"GET\n\n\n{DATE}\n/acct{PATH}", "another service"),
    ("missing-header", QUEUE_CREDENTIALS, get(content_type=JSON), full(), "content-type"),
    ("missing-header", BLOB_CREDENTIALS, get(x_ms_meta_a="b"), full(), "x-ms-meta-a"),
    (
        "extra-header",
        TABLE_CREDENTIALS,
        get("/acct/T"),
        f"GET\n\n{JSON}\n{DATE}\n/acct/acct/T",
        f"content-type: {JSON}",
    ),
    (
        "order",
        BLOB_CREDENTIALS,
        Request("GET", PATH, headers={"x-ms-version": VERSION, "host": "h", "x-ms-date": DATE}),
        full(lines=f"x-ms-version:{VERSION}\nx-ms-date:{DATE}"),
        "sorted",
    ),
]


@pytest.mark.parametrize(("name", "service", "request_", "text", "about"), CASES)
def test_a_mistake_is_found(name: str, service: ServiceCredentials, request_: Request, text: str, about: str) -> None:
    found = Server(service).explain(signed(request_, text))
    assert (found.mistake, found.credentials) == (name, "Shared Key")
    assert about in found.reason
    assert 0 < found.tries <= TRIES_MAX


def test_full_for_lite() -> None:
    found = Server().explain(signed(get(), full(), scheme="SharedKeyLite"))
    assert (found.mistake, found.credentials) == ("other-scheme", "Shared Key Lite")


def test_each_row_has_a_test() -> None:
    assert {case[0] for case in CASES} == {row.name for row in MISTAKES}


@pytest.mark.parametrize("service", [TABLE_CREDENTIALS, QUEUE_CREDENTIALS, BLOB_CREDENTIALS])
def test_the_string_to_sign_is_the_servers(service: ServiceCredentials) -> None:
    request = signed(get(query="comp=list&sig=SECRET"), "other")
    request.headers = {**request.headers, "x-ms-encryption-key": "SECRET", "x-ms-copy-source": "http://a/?sig=SECRET"}
    found = Server(service).explain(request)
    text = service.canonicalize("SharedKey", request, "acct", PATH, "list")
    assert found.string_to_sign.split("\n")[0] == "GET"
    assert len(found.string_to_sign.split("\n")) == len(text.split("\n"))
    assert "SECRET" not in str(found)
    assert found.mistake == ""


@pytest.mark.parametrize(
    ("name", "key"),
    [("other-account", OTHER), ("public-key", PUBLIC_KEY), ("key-as-text", b"Zmlyc3Qga2V5"), ("replaced-key", SECOND)],
)
def test_other_keys(name: str, key: bytes) -> None:
    server = Server()
    server.replace(KEY, b"new")
    assert server.explain(signed(get(), full(), key)).mistake == name
    assert server.explain(signed(get(), full(), b"unknown")).mistake == ""


SPELT: list[tuple[str, Callable[[str], str]]] = [
    ("plus-decoded", lambda right: right.replace("+", " ")),
    ("encoded-twice", lambda right: right.replace("=", "%3D")),
    ("url-safe-base64", lambda right: right.replace("+", "-").replace("/", "_")),
    ("padding", lambda right: right.rstrip("=")),
]


def test_spellings_of_the_signature() -> None:
    assert [name for name, _ in SPELT] == [row.name for row in SPELLINGS if row.name != "hexadecimal"]
    paths = (f"/acct/box/{number}" for number in range(1000))
    path, right = next(
        (path, text) for path in paths if "+" in (text := signature(full(resource=f"/acct{path}"))) and "/" in text
    )
    for name, spell in SPELT:
        request = get(path)
        request.headers = {**request.headers, "authorization": f"SharedKey acct:{spell(right)}"}
        if name != "plus-decoded":  # Of Shared Key, a blank makes the header malformed.
            assert Server().explain(request).mistake == name
    request = get(path)
    request.headers = {**request.headers, "authorization": f"SharedKey acct:{b64decode(right).hex()}"}
    assert Server().explain(request).mistake == "hexadecimal"


@pytest.mark.parametrize(
    ("authorization", "mistake", "about"),
    [
        ("Basic abc", "header-form", "SharedKey ACCOUNT:SIGNATURE"),
        ("SharedKey acct", "header-form", "SharedKey ACCOUNT:SIGNATURE"),
        ("SharedKey b:c", "account-name", "'b', and the address 'acct'"),
        ("SharedKey acct:c", "not-a-signature", "base64 of 32 bytes"),
        ("Bearer abc", "", "Server failed"),
    ],
)
def test_headers_without_a_usual_signature(authorization: str, mistake: str, about: str) -> None:
    request = get()
    request.headers = {**request.headers, "authorization": authorization}
    found = Server().explain(request)
    assert found.mistake == mistake
    assert about in found.reason


@pytest.mark.parametrize(
    ("headers", "about"),
    [
        ({}, "neither x-ms-date nor Date"),
        ({"date": "2030-01-01"}, "not of the form"),
        ({"x-ms-date": "Mon, 31 Dec 2029 22:00:00 GMT"}, "120 minutes behind that of the server, Tue, 01 Jan 2030"),
        ({"x-ms-date": "Tue, 01 Jan 2030 00:20:00 GMT"}, "20 minutes ahead of"),
    ],
)
def test_dates(headers: Mapping[str, str], about: str) -> None:
    found = Server().explain(signed(Request("GET", PATH, headers=headers), "any"))
    assert found.mistake == "date-window"
    assert about in found.reason


def test_requests_without_credentials_and_accounts() -> None:
    assert "neither" in Server().explain(get(), ServiceError("NoAuthenticationInformation")).reason
    found = Server().explain(get("/nobody/box"), ServiceError("ResourceNotFound"))
    assert found.reason == "There is no account 'nobody', which the path names."
    found = Server().explain(get("/box", host="nobody.blob.localhost"), ServiceError("ResourceNotFound"))
    assert found.reason == "There is no account 'nobody', which the host names."
    assert Server().explainer.explain(get(), ServiceError("InvalidInput")) is None


def test_few_refusals_a_second_are_explained() -> None:
    server, error, request = Server(), ServiceError("AuthenticationFailed"), signed(get(), "any")
    found = [server.explainer.explain(request, error) for _ in range(REFUSALS_PER_SECOND + 1)]
    assert [each is None for each in found] == [False] * REFUSALS_PER_SECOND + [True]
    server.seconds = 1.5
    assert server.explainer.explain(request, error) is not None


HEADERS = st.sampled_from(
    ["x-ms-date", "x-ms-version", "date", "content-type", "content-length", "host", "x-http-method", "x-ms-meta-a"]
)
TEXTS = st.text(st.characters(max_codepoint=255), max_size=20)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([TABLE_CREDENTIALS, QUEUE_CREDENTIALS, BLOB_CREDENTIALS]),
    st.one_of(TEXTS, st.just(PATH)),
    TEXTS,
    st.dictionaries(HEADERS, TEXTS, max_size=5),
    st.one_of(TEXTS, st.text("abcxyz+/=-_% ", min_size=1, max_size=50).map("SharedKey acct:{}".format)),
)
def test_it_explains_whatever_comes(
    service: ServiceCredentials, path: str, query: str, headers: dict[str, str], authorization: str
) -> None:
    request = Request("GET", f"/{path}", query, {"x-ms-date": DATE, **headers, "authorization": authorization})
    found = Server(service).explainer.explain(request, ServiceError("AuthenticationFailed"))
    assert found is None or (isinstance(found, Refusal) and found.tries <= TRIES_MAX)
    assert "first key" not in str(found)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(CASES), st.binary(min_size=1, max_size=40))
def test_no_mistake_is_found_where_an_unknown_key_signs(
    case: tuple[str, ServiceCredentials, Request, str, str], key: bytes
) -> None:
    _, service, request, text, _ = case
    sent = Request(request.method, request.path, request.query, dict(request.headers))
    assert Server(service).explain(signed(sent, text, b"unknown" + key)).mistake == ""
