"""Each field of a SAS that fails is named, and each usual mistake in its signature is told from the others."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.auth.accounts.account import Account
from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.explain.sas import CODES, MEANINGS, MISTAKES
from lazulite.auth.explain.tries import TRIES_MAX
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.blob.auth.credentials import BLOB_CREDENTIALS
from lazulite.blob.auth.sas import BlobSas, sign_blob_sas
from lazulite.protocol.errors import ServiceError, authentication_failed
from lazulite.protocol.message import Request
from lazulite.queue.credentials import QUEUE_CREDENTIALS
from lazulite.table.credentials import TABLE_CREDENTIALS, TableSas, sign_table_sas

from .refused import ACCOUNT, KEY, OTHER, Server, signature

END = "2030-01-02T00:00:00Z"
TABLE = TableSas(table="Orders", permission="ra", expiry=END)
BLOB = BlobSas(kind="b", container="box", blob="a/b", permission="rwd", expiry=END, version="2021-08-06")
WHOLE = AccountSas(services="t", resource_types="o", permission="r", expiry=END, version="2021-08-06")
TABLE_QUERY = f"sv=2019-02-02&tn=Orders&sp=ra&se={quote(END)}"
BLOB_QUERY = f"sv=2021-08-06&sr=b&sp=rwd&se={quote(END)}"
WHOLE_QUERY = f"sv=2021-08-06&ss=t&srt=o&sp=r&se={quote(END)}"
TEXT = BLOB.string_to_sign("acct")


def sent(query: str, text: str, path: str = "/acct/box/a/b", key: bytes = KEY) -> Request:
    return Request("GET", path, f"{query}&sig={quote(signature(text, key, 'utf-8'), safe='')}")


CASES: list[tuple[str, ServiceCredentials, Request, str]] = [
    ("line-end", TABLE_CREDENTIALS, sent(WHOLE_QUERY, WHOLE.string_to_sign("acct")[:-1]), "without the last line end"),
    ("line-end", BLOB_CREDENTIALS, sent(BLOB_QUERY, f"{TEXT}\n"), "with a line end"),
    ("resource", BLOB_CREDENTIALS, sent(BLOB_QUERY, TEXT.replace("/blob/", "/")), "/acct/…, and it begins with /blob"),
    ("resource", BLOB_CREDENTIALS, sent(BLOB_QUERY, TEXT.replace("/acct/", "/acct/acct/")), "the account twice"),
    ("resource", BLOB_CREDENTIALS, sent(BLOB_QUERY, TEXT.replace("/blob/", "blob/")), "without the slash"),
    ("kind", BLOB_CREDENTIALS, sent(BLOB_QUERY, TEXT.replace("/box/a/b", "/box")), "the container, and sr=b"),
    ("kind", BLOB_CREDENTIALS, sent(BLOB_QUERY, TEXT.replace("\nb\n", "\nc\n")), "sr=c, and sent sr=b"),
    (
        "table-case",
        TABLE_CREDENTIALS,
        sent(TABLE_QUERY, TABLE.string_to_sign("acct").replace("orders", "Orders"), "/acct/Orders"),
        "lower case",
    ),
    ("encoded-values", BLOB_CREDENTIALS, sent(BLOB_QUERY, TEXT.replace(":", "%3A")), "percent-encoded"),
    (
        "older-form",
        BLOB_CREDENTIALS,
        sent(BLOB_QUERY, "\n".join([*TEXT.split("\n")[:10], *TEXT.split("\n")[11:]])),
        "without ses",
    ),
    (
        "permissions",
        BLOB_CREDENTIALS,
        sent(BLOB_QUERY.replace("rwd", "dwr"), TEXT),
        "sp=rwd, and sent sp=dwr",
    ),
    ("times", BLOB_CREDENTIALS, sent(BLOB_QUERY, TEXT.replace("00Z", "00")), "without the Z"),
    ("empty-lines", BLOB_CREDENTIALS, sent(BLOB_QUERY, "\n".join(filter(None, TEXT.split("\n")))), "empty lines"),
]


@pytest.mark.parametrize(("name", "service", "request_", "about"), CASES)
def test_a_mistake_is_found(name: str, service: ServiceCredentials, request_: Request, about: str) -> None:
    found = Server(service).explain(request_)
    assert found.mistake == name
    assert about in found.reason
    assert 0 < found.tries <= TRIES_MAX
    assert [field.name for field in found.fields if field.failed] == ["sig"]
    assert request_.query.rpartition("=")[2] not in str(found)


def test_each_row_has_a_test() -> None:
    assert {case[0] for case in CASES} == {row.name for row in MISTAKES}


@pytest.mark.parametrize(("name", "key"), [("other-account", OTHER), ("replaced-key", b"gone")])
def test_other_keys(name: str, key: bytes) -> None:
    server = Server()
    server.replace(KEY, b"gone")
    server.explain(sent(BLOB_QUERY, "any"))
    server.replace(KEY, b"new")
    assert server.explain(sent(BLOB_QUERY, TEXT, key=key)).mistake == name


def test_a_signature_whose_plus_was_not_encoded() -> None:
    texts = (replace(BLOB, blob=str(number)) for number in range(1000))
    sas = next(each for each in texts if "+" in signature(each.string_to_sign("acct"), encoding="utf-8"))
    query = f"{BLOB_QUERY}&sig={signature(sas.string_to_sign('acct'), encoding='utf-8')}"
    found = Server().explain(Request("GET", f"/acct/box/{sas.blob}", query))
    assert found.mistake == "plus-decoded"


FAILED: list[tuple[str, str, ServiceCredentials, ServiceError, str]] = [
    (WHOLE_QUERY.replace("se=2030", "se=x"), "se", TABLE_CREDENTIALS, ServiceError("AuthenticationFailed"), "date"),
    (f"{WHOLE_QUERY}&spr=ftp", "spr", TABLE_CREDENTIALS, ServiceError("AuthenticationFailed"), "https"),
    (f"{WHOLE_QUERY}&sip=::1", "sip", TABLE_CREDENTIALS, ServiceError("AuthenticationFailed"), "IPv4"),
    (WHOLE_QUERY.replace("srt=o&", ""), "srt", TABLE_CREDENTIALS, ServiceError("AuthenticationFailed"), "needs"),
    (WHOLE_QUERY.replace("sv=2021", "sv=1999"), "sv", TABLE_CREDENTIALS, ServiceError("AuthenticationFailed"), "later"),
    (f"{WHOLE_QUERY}&sp=r", "sp", TABLE_CREDENTIALS, ServiceError("AuthenticationFailed"), "comes twice"),
    (BLOB_QUERY.replace("sr=b", "sr=z"), "sr", BLOB_CREDENTIALS, ServiceError("AuthenticationFailed"), "one of"),
    *((WHOLE_QUERY, field, TABLE_CREDENTIALS, ServiceError(code), why) for code, (field, why) in CODES.items()),
]


@pytest.mark.parametrize(("query", "name", "service", "error", "why"), FAILED)
def test_the_field_that_failed(
    query: str, name: str, service: ServiceCredentials, error: ServiceError, why: str
) -> None:
    found = Server(service).explain(sent(query, WHOLE.string_to_sign("acct")), error)
    failed = {field.name: field.failed for field in found.fields if field.failed}
    assert list(failed) == [name]
    assert why in failed[name]
    assert f"{name}: " in found.reason
    assert "=" not in next((field.value for field in found.fields if field.name == "sig"), "")


@pytest.mark.parametrize(
    ("sas", "name", "why"),
    [
        (replace(WHOLE, start="2030-01-01T01:00Z"), "st", "not valid yet: the server has 2030-01-01T00:00:00Z"),
        (replace(WHOLE, expiry="2029-12-31"), "se", "expired: the server has 2030-01-01T00:00:00Z"),
    ],
)
def test_times(sas: AccountSas, name: str, why: str) -> None:
    found = Server(TABLE_CREDENTIALS).explain(Request("GET", "/acct/T", sign_account_sas(ACCOUNT, sas)))
    assert [(field.name, why in field.failed) for field in found.fields if field.failed] == [(name, True)]


def test_a_stored_policy_and_another_table() -> None:
    query = sign_table_sas(ACCOUNT, replace(TABLE, permission="", expiry="", policy_id="gone"))
    server = Server(TABLE_CREDENTIALS)
    found = server.explain(Request("GET", "/acct/Orders", query), authentication_failed("si names no policy."))
    assert found.reason == "si: si names no policy."
    query = sign_table_sas(ACCOUNT, TABLE)
    found = server.explain(Request("GET", "/acct/Other", query))
    assert found.reason.startswith("tn: the request is for another table")
    fields = {field.name: field for field in found.fields}
    assert fields["sp"].meaning == "permissions: read, add"
    assert fields["se"].meaning == "valid until: 1 day from now"
    assert fields["sig"].value == "…"


def test_a_user_delegation_sas_has_its_fields() -> None:
    query = f"{BLOB_QUERY}&skoid=a&sktid=b&skt=2029-12-31T23:30:00Z&ske={END}&sks=b&skv=2021-08-06&sig=SECRET"
    found = Server().explain(Request("GET", "/acct/box/a/b", query))
    assert found.credentials == "user delegation SAS"
    assert "SECRET" not in str(found)
    assert {field.name: field.meaning for field in found.fields}["skt"].endswith("30 minutes ago")


def signed_queries() -> list[str]:
    signs: list[Callable[[Account], str]] = [
        lambda account: sign_account_sas(account, WHOLE),
        lambda account: sign_table_sas(account, TABLE),
        lambda account: sign_blob_sas(account, BLOB),
    ]
    return [sign(ACCOUNT) for sign in signs]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([TABLE_CREDENTIALS, QUEUE_CREDENTIALS, BLOB_CREDENTIALS]),
    st.sampled_from(signed_queries()),
    st.dictionaries(st.sampled_from(sorted(MEANINGS)), st.text(max_size=12), max_size=4),
    st.sampled_from(["/acct/box/a/b", "/acct/Orders", "/acct/%FF", "/acct/", "/acct"]),
    st.sampled_from(["AuthenticationFailed", *CODES]),
)
def test_it_explains_whatever_comes(
    service: ServiceCredentials, query: str, changes: dict[str, str], path: str, code: str
) -> None:
    more = "".join(f"&{name}={quote(value, safe='')}" for name, value in changes.items())
    pairs = [pair for pair in query.split("&") if pair.partition("=")[0] not in changes]
    found = Server(service).explainer.explain(Request("GET", path, "&".join(pairs) + more), ServiceError(code))
    if found is not None:
        assert found.tries <= TRIES_MAX
        assert query.rpartition("sig=")[2] not in str(found)
