"""Reference §12.3: preflight requests, the headers of actual requests, and `Vary`."""

from collections.abc import Callable, Iterator

import pytest

from .answers import Answer
from .client import Client
from .service_properties import DEFAULTS, cors, document, put, rule
from .signing import anonymous
from .tables import Table

A, B = "http://a.example", "http://b.example"
FAILURE = (403, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request.")
MISSING = (400, "InvalidHeaderValue", "A required CORS header is not present.")
RULES = [
    rule(A, "GET,PUT", "accept,x-ms-*", "x-ms-*,etag", "500"),
    rule(B, "GET", "*", "", "7"),
    rule("http://*.wild.example", "DELETE", "", "", "1"),
    rule(A, "POST,MERGE", "content-type", "", "9"),
]
Setter = Callable[..., None]


@pytest.fixture
def set_rules(client: Client) -> Iterator[Setter]:
    """Sets the CORS rules; they are cleared in the end."""

    def set_rules(*rules: str) -> None:
        put(client, document(cors(*rules))).expect(202)

    yield set_rules
    put(client, DEFAULTS).expect(202)


def preflight(
    client: Client, origin: str | None, method: str | None, headers: str | None = None, path: str = "/x"
) -> Answer:
    """Send OPTIONS."""
    return client.send(
        "OPTIONS",
        path,
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": headers,
            "x-ms-version": None,
            "x-ms-date": None,
        },
        signer=anonymous,
    )


MATCHES: list[tuple[str, str, str | None, str, str]] = [
    (A, "GET", None, A, "500"),
    (A, "PUT", "accept", A, "500"),
    (A, "PUT", "Accept,X-MS-Version", A, "500"),
    (A, "GET", "x-ms-date, x-ms-version", A, "500"),
    (A, "MERGE", "content-type", A, "9"),
    (B, "GET", "anything,at-all", B, "7"),
    ("http://one.wild.example", "DELETE", None, "http://one.wild.example", "1"),
]


@pytest.mark.parametrize(("origin", "method", "headers", "allowed", "age"), MATCHES)
def test_a_preflight_that_matches(
    client: Client, set_rules: Setter, origin: str, method: str, headers: str | None, allowed: str, age: str
) -> None:
    set_rules(*RULES)
    answer = preflight(client, origin, method, headers).expect(200)
    assert answer.body == b""
    assert answer.header("Access-Control-Allow-Origin") == allowed
    assert answer.header("Access-Control-Allow-Methods") == method
    assert answer.header("Access-Control-Max-Age") == age
    assert answer.header("Access-Control-Allow-Credentials") == "true"
    came = answer.header("Access-Control-Allow-Headers")
    assert came == headers or headers is None


REJECTED = [
    ("http://c.example", "GET", None),
    ("http://A.example", "GET", None),
    ("https://a.example", "GET", None),
    (A + ":8080", "GET", None),
    (A, "DELETE", None),
    (A, "GET", "authorization"),
    (A, "GET", "accept,authorization"),
    (A, "GET", "content-type"),
    (A, "POST", "accept"),
    ("http://wild.example", "GET", None),
    ("http://one.wild.example", "GET", None),
    ("http://one.wild.example", "DELETE", "accept"),
]


@pytest.mark.parametrize(("origin", "method", "headers"), REJECTED)
def test_a_preflight_that_matches_nothing(
    client: Client, set_rules: Setter, origin: str, method: str, headers: str | None
) -> None:
    set_rules(*RULES)
    assert preflight(client, origin, method, headers).rejection == FAILURE


def test_the_first_rule_by_origin_and_method_decides(client: Client, set_rules: Setter) -> None:
    """Its headers must cover all that is asked for: later rules are not tried."""
    set_rules(rule(A, "GET", "one"), rule(A, "GET", "*"))
    preflight(client, A, "GET", "one").expect(200)
    assert preflight(client, A, "GET", "two").rejection == FAILURE


def test_any_origin_is_allowed_by_an_asterisk(client: Client, set_rules: Setter) -> None:
    set_rules(rule("*", "GET", "*", "*", "60"))
    answer = preflight(client, "http://whoever.example", "GET", "what,ever").expect(200)
    assert answer.header("Access-Control-Allow-Origin") in {"*", "http://whoever.example"}
    if answer.header("Access-Control-Allow-Origin") == "*":
        assert answer.header("Access-Control-Allow-Credentials") is None


def test_preflight_without_rules_is_rejected(client: Client, set_rules: Setter) -> None:
    set_rules()
    assert preflight(client, A, "GET").rejection == FAILURE


@pytest.mark.parametrize(("origin", "method"), [(None, "GET"), (A, None), (None, None)])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_header_is_missing(
    client: Client, set_rules: Setter, origin: str | None, method: str | None, enabled: bool
) -> None:
    set_rules(*(RULES if enabled else []))
    assert preflight(client, origin, method).rejection == MISSING


@pytest.mark.parametrize(
    "path", ["/", "/Tables", "/$batch", "/t(PartitionKey='p',RowKey='r')", "/t()", "/no/such/thing"]
)
def test_preflight_of_any_path(client: Client, set_rules: Setter, path: str) -> None:
    set_rules(*RULES)
    preflight(client, A, "GET", path=path).expect(200)


Case = tuple[str | None, list[str], str | None, bool, bool]
ANY = rule("*", "GET,POST", "*", "x-ms-*,etag")
EXACT = rule(A, "GET,POST", "*", "x-ms-*,etag")
CASES: dict[str, Case] = {
    "no rules": (A, [], None, False, False),
    "no rules, no origin": (None, [], None, False, False),
    "any": (A, [ANY], "*", True, False),
    "exact": (A, [EXACT], A, True, True),
    "no match": (B, [EXACT], None, False, True),
    "no origin": (None, [EXACT], None, False, True),
    "other method": (A, [rule(A, "PUT")], None, False, True),
    "any and exact": (A, [EXACT, ANY], A, True, True),
}
"""Origin, rules, then Access-Control-Allow-Origin, whether headers are exposed, whether the answer varies."""


@pytest.mark.parametrize(("origin", "rules", "allowed", "exposed", "varies"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("suffix", ["", "nosuch"])
def test_cors_headers_of_reads(
    table: Table,
    set_rules: Setter,
    origin: str | None,
    rules: list[str],
    allowed: str | None,
    exposed: bool,
    varies: bool,
    suffix: str,
) -> None:
    """Errors carry the same headers as successes."""
    set_rules(*rules)
    answer = table.client.send("GET", f"/{table.name}{suffix}", headers={"Origin": origin})
    assert answer.status == (404 if suffix else 200)
    assert answer.header("Access-Control-Allow-Origin") == allowed
    if exposed:
        assert answer.header("Access-Control-Expose-Headers") is not None
    else:
        assert answer.header("Access-Control-Expose-Headers") is None
    if rules != [EXACT, ANY]:
        assert answer.header("Vary") == ("Origin" if varies else None)
    assert answer.header("Access-Control-Allow-Credentials") == ("true" if allowed == A else None)


@pytest.mark.parametrize("suffix", ["", "nosuch"])
def test_a_prefix_exposes_each_header_that_it_covers(table: Table, set_rules: Setter, suffix: str) -> None:
    """A browser takes no prefix in Access-Control-Expose-Headers: the names have to stand there."""
    set_rules(EXACT)
    answer = table.client.send("GET", f"/{table.name}{suffix}", headers={"Origin": A, "x-ms-client-request-id": "me"})
    exposed = {name.lower() for name in answer.required("Access-Control-Expose-Headers").split(",")}
    assert exposed == {"etag"} | {name.lower() for name, _ in answer.headers if name.lower().startswith("x-ms-")}
    assert exposed >= {"x-ms-request-id", "x-ms-version", "x-ms-client-request-id"}


def test_cors_headers_of_writes(table: Table, set_rules: Setter) -> None:
    set_rules(EXACT)
    text = '{"PartitionKey":"p","RowKey":"r"}'
    answer = table.client.send("POST", table.path, headers={"Origin": A}, body=text).expect(201)
    assert answer.header("Access-Control-Allow-Origin") == A
    assert answer.header("Vary") in {None, "Origin"}
    update = table.client.send("PUT", table.at("p", "r"), headers={"Origin": A}, body="{}").expect(204)
    assert update.header("Access-Control-Allow-Origin") is None


@pytest.mark.unverified
def test_any_origin_is_reported_without_being_asked(table: Table, set_rules: Setter) -> None:
    set_rules(ANY)
    answer = table.client.send("GET", table.path).expect(200)
    assert answer.header("Access-Control-Allow-Origin") in {"*", None}
    assert answer.header("Vary") is None
