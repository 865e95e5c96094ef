import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.service import cors
from lazulite.service.properties import CorsRule

A = "http://a.example"
ALL = CorsRule(("GET", "PUT"), ("*",), ("*",), ("x-ms-meta-*", "Date"), 60)
EXACT = CorsRule(("GET", "PUT"), (A, "http://b.example"), ("x-ms-*", "Accept"), ("ETag",), 5)
PATCH_EXACT = CorsRule(("PATCH",), (A,), (), (), 0)


def test_preflight_echoes_what_was_asked() -> None:
    assert cors.preflight([EXACT], A, "GET", "X-MS-version,accept") == [
        ("Access-Control-Allow-Origin", A),
        ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Allow-Methods", "GET"),
        ("Access-Control-Allow-Headers", "X-MS-version,accept"),
        ("Access-Control-Max-Age", "5"),
    ]


def test_preflight_for_everybody_allows_no_credentials() -> None:
    assert cors.preflight([ALL], A, "PUT", None) == [
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Allow-Methods", "PUT"),
        ("Access-Control-Max-Age", "60"),
    ]


@pytest.mark.parametrize(
    ("rules", "method", "headers", "allowed"),
    [
        ([], "GET", None, False),
        ([EXACT], "POST", None, False),
        ([EXACT], "get", None, False),
        ([EXACT], "GET", "", True),
        ([EXACT], "GET", "accept", True),
        ([EXACT], "GET", "accept, x-ms-version", True),
        ([EXACT], "GET", "accept, other", False),
        ([EXACT], "GET", "accept-language", False),
        ([EXACT], "GET", "x-msversion", False),
        ([PATCH_EXACT], "PATCH", None, True),
        ([PATCH_EXACT], "PATCH", "accept", False),
        # The second rule would allow it, but the first that matches origin and method decides.
        ([EXACT, ALL], "GET", "other", False),
        ([PATCH_EXACT, ALL], "GET", "other", True),
    ],
)
def test_preflight_takes_the_first_rule_that_matches(
    rules: list[CorsRule], method: str, headers: str | None, allowed: bool
) -> None:
    if allowed:
        assert cors.preflight(rules, A, method, headers)
        return
    with pytest.raises(ServiceError) as caught:
        cors.preflight(rules, A, method, headers)
    assert (caught.value.status, caught.value.code) == (403, "CorsPreflightFailure")


@pytest.mark.parametrize(("origin", "method"), [(None, "GET"), ("", "GET"), (A, None), (A, "")])
def test_preflight_needs_its_headers(origin: str | None, method: str | None) -> None:
    with pytest.raises(ServiceError) as caught:
        cors.preflight([ALL], origin, method, None)
    assert (caught.value.status, caught.value.code) == (400, "InvalidHeaderValue")
    assert caught.value.message == "A required CORS header is not present."


@pytest.mark.parametrize(
    ("pattern", "origin", "matches"),
    [
        ("*", "anything", True),
        (A, A, True),
        (A, "http://A.example", False),
        (A, "https://a.example", False),
        (A, "http://a.example:80", False),
        ("https://*.x.example", "https://a.x.example", True),
        ("https://*.x.example", "https://a.b.x.example", True),
        ("https://*.x.example", "https://x.example", False),
        ("https://*.x.example", "https://.x.example", False),
        ("https://*.x.example", "http://a.x.example", False),
        ("https://*.x.example", "https://evil.example/.x.example", False),
        ("https://*.x.example", "https://a.x.example.evil", False),
        ("https://*.x.example", "https://ax.example", False),
        ("https://*.x.example:8080", "https://a.x.example:8080", True),
    ],
)
def test_origins(pattern: str, origin: str, matches: bool) -> None:
    headers = cors.response_headers([CorsRule(("PUT",), (pattern,))], origin, "PUT")
    assert bool(headers) is matches


ACAO_ALL = ("Access-Control-Allow-Origin", "*")
ACAO_A = ("Access-Control-Allow-Origin", A)
CREDENTIALS = ("Access-Control-Allow-Credentials", "true")
DATE = ("Access-Control-Expose-Headers", "Date")
ETAG = ("Access-Control-Expose-Headers", "ETag")
VARY = ("Vary", "Origin")


@pytest.mark.parametrize(
    ("origin", "rules", "expected"),
    [
        (None, [], []),
        (A, [], []),
        (None, [ALL], [ACAO_ALL, DATE]),
        (A, [ALL], [ACAO_ALL, DATE]),
        (None, [EXACT], [VARY]),
        (A, [EXACT], [ACAO_A, CREDENTIALS, ETAG, VARY]),
        ("http://c.example", [EXACT], [VARY]),
        (A, [PATCH_EXACT], [VARY]),
        (A, [EXACT, ALL], [ACAO_A, CREDENTIALS, ETAG, VARY]),
        (A, [ALL, EXACT], [ACAO_ALL, DATE]),
        (None, [EXACT, ALL], [ACAO_ALL, DATE]),
    ],
)
def test_answers_to_get(origin: str | None, rules: list[CorsRule], expected: list[tuple[str, str]]) -> None:
    assert cors.response_headers(rules, origin, "GET") == expected


@pytest.mark.parametrize(
    ("origin", "rules", "expected"),
    [
        (None, [ALL], []),
        (A, [ALL], [ACAO_ALL, DATE]),
        (A, [EXACT], [ACAO_A, CREDENTIALS, ETAG]),
        ("http://c.example", [EXACT], []),
    ],
)
def test_answers_to_a_write_never_vary(
    origin: str | None, rules: list[CorsRule], expected: list[tuple[str, str]]
) -> None:
    assert cors.response_headers(rules, origin, "PUT") == expected


def test_exposed_prefixes_stand_for_what_is_present() -> None:
    headers = cors.response_headers([ALL], A, "PUT", ["date", "X-Ms-Meta-A", "Server"])
    assert headers[1] == ("Access-Control-Expose-Headers", "Date,X-Ms-Meta-A")
