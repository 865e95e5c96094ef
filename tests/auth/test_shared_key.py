"""Shared Key and Shared Key Lite of the Table service: the vectors of reference §13.4, spellings, dates."""

import hmac
import logging
from base64 import b64encode
from datetime import UTC, datetime
from email.utils import format_datetime
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account, Signer
from lazulite.auth.canonicalize import string_to_sign
from lazulite.auth.shared_key import (
    Canonicalize,
    SharedKey,
    check_date,
    parse_authorization,
    parse_http_date,
)
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS
from lazulite.protocol.errors import DETAIL_CHARACTERS_MAX, ServiceError
from lazulite.protocol.message import Request
from lazulite.table.credentials import table_string_to_sign

DATE = "Mon, 27 Jun 2016 15:25:14 GMT"
NOW = parse_http_date(DATE)
NAME = DEVELOPMENT_ACCOUNT.name
JSON = "application/json;odata=nometadata"


def sign(text: str, key: bytes = DEVELOPMENT_ACCOUNT.keys[0]) -> str:
    return b64encode(hmac.digest(key, text.encode(), "sha256")).decode()


def request(path: str, method: str = "GET", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, headers={"x-ms-date": DATE} | named)


def check(
    sent: Request,
    authorization: str,
    *,
    account: Account = DEVELOPMENT_ACCOUNT,
    comp: str | None = None,
    canonicalize: Canonicalize = table_string_to_sign,
) -> None:
    sent.headers = {**sent.headers, "authorization": authorization}
    SharedKey(account, authorization, Addressing().locate(sent), comp, canonicalize).check(sent, NOW)


def accepts(
    request: Request,
    signature: str,
    *,
    scheme: str = "SharedKey",
    comp: str | None = None,
    keys: tuple[bytes, ...] = (),
) -> bool:
    account = Account(NAME, keys) if keys else DEVELOPMENT_ACCOUNT
    try:
        check(request, f"{scheme} {NAME}:{signature}", account=account, comp=comp)
    except ServiceError as error:
        if error.code != ("AuthenticationFailed" if signature else "InvalidAuthenticationInfo"):
            raise
        return False
    return True


@pytest.mark.parametrize(
    ("scheme", "method", "path", "media_type", "comp", "signature"),
    [
        ("SharedKey", "GET", "/mytable()", "", None, "1DhLhPlS6kK4tXK63UkZZePMBXDxPNmjwMN1KfX+EiM="),
        ("SharedKey", "GET", f"/{NAME}/Tables", "", None, "6x3Y/FLgh8/ozJ8YPcIAguM4et4HbaViJozb+kRb6aI="),
        ("SharedKey", "POST", f"/{NAME}/Tables", JSON, None, "kYNOWqTZJxJMqehyo5QQwZMBoZWcuyEBFjrznWLlX90="),
        ("SharedKeyLite", "GET", f"/{NAME}/Tables", "", None, "0t5frBDAHUb3TEbAMT7v9wwgj+L4V00scNDQC6plt2w="),
        ("SharedKey", "GET", f"/{NAME}/mytable", "", "acl", "1va20X1TzUg2DOJJi740thS1CJgVqys2hHethbNVFWA="),
    ],
)
def test_the_references_vectors(
    scheme: str, method: str, path: str, media_type: str, comp: str | None, signature: str
) -> None:
    message = request(path, method, **({"content_type": media_type} if media_type else {}))
    assert sign(table_string_to_sign(scheme, message, NAME, path, comp)) == signature
    assert accepts(message, signature, scheme=scheme, comp=comp)
    assert not accepts(message, signature, scheme=scheme, comp="other")
    assert not accepts(message, signature[:-4] + "AAA=", scheme=scheme, comp=comp)


def test_the_string_to_sign_is_the_services_own() -> None:
    def canonicalize(scheme: str, message: Request, account: str, path: str, comp: str | None) -> str:
        return f"{scheme} {message.method} {account} {path} {comp}"

    message = request(f"/{NAME}/q")
    given = f"SharedKey {NAME}:" + sign(f"SharedKey GET {NAME} /{NAME}/q list")
    check(message, given, comp="list", canonicalize=canonicalize)
    with pytest.raises(ServiceError, match="AuthenticationFailed"):
        check(message, given, comp="list")


@pytest.mark.parametrize("changed", ["method", "content-md5", "content-type", "x-ms-date", "path"])
def test_a_change_of_any_signed_part_is_noticed(changed: str) -> None:
    signature = sign(f"GET\nm\nt\n{DATE}\n/{NAME}/{NAME}/T")
    message = request(f"/{NAME}/T", content_md5="m", content_type="t")
    assert accepts(message, signature)
    if changed in ("method", "path"):
        setattr(message, changed, {"method": "POST", "path": f"/{NAME}/U"}[changed])
    else:
        message.headers = {**message.headers, changed: "other"}
    assert not accepts(message, signature)


@pytest.mark.parametrize("which", [0, 1])
def test_either_key_signs(which: int) -> None:
    keys = (b"first", b"second")
    signature = sign(f"GET\n\n\n{DATE}\n/{NAME}/{NAME}/T", keys[which])
    assert accepts(request(f"/{NAME}/T"), signature, keys=keys)
    assert not accepts(request(f"/{NAME}/T"), signature, keys=(keys[1 - which], b"third"))


@pytest.mark.parametrize("signed", [NAME, f"{NAME}-secondary"])
def test_both_spellings_of_the_secondary(signed: str) -> None:
    signature = sign(f"GET\n\n\n{DATE}\n/{NAME}/{signed}/T(x='%20')")
    assert accepts(request(f"/{NAME}-secondary/T(x='%20')"), signature)
    assert accepts(request(f"/{NAME}/T(x='%20')"), signature) == (signed == NAME)


@pytest.mark.parametrize("marker", ["", "-secondary"])
def test_in_host_style_the_path_is_signed_without_an_account(marker: str) -> None:
    hosted = request("/T(x='%20')", host=f"{NAME}{marker}.table.localhost:10002")
    assert accepts(hosted, sign(f"GET\n\n\n{DATE}\n/{NAME}/T(x='%20')"))
    assert accepts(hosted, sign(f"GET\n\n\n{DATE}\n/{NAME}/T(x=%27%20%27)"))
    assert not accepts(hosted, sign(f"GET\n\n\n{DATE}\n/{NAME}/{NAME}/T(x='%20')"))


@pytest.mark.parametrize(
    ("sent", "signed"),
    [
        ("T(k='a%20b')", "T(k=%27a%20b%27)"),
        ("T(k=%27a%20b%27)", "T(k='a%20b')"),
        ("T%28k%3D%27%c3%b4%25%27%29", "T(k='%C3%B4%25')"),
        ("T(k='ô')", "T(k='%C3%B4')"),
        ("T(k='a%2Bb')", "T(k='a+b')"),
    ],
)
@pytest.mark.parametrize("secondary", ["", "-secondary"])
def test_paths_that_were_encoded_anew_on_the_way(sent: str, signed: str, secondary: str) -> None:
    # The wire's bytes, one character each.
    path = f"/{NAME}{secondary}/{sent}".encode().decode("latin-1")
    assert accepts(request(path), sign(f"GET\n\n\n{DATE}\n/{NAME}/{NAME}/{signed}"))


def test_a_raw_non_ascii_path_is_signed_as_its_bytes() -> None:
    path = f"/{NAME}/T(k='ôü')".encode().decode("latin-1")
    assert accepts(request(path), sign(f"GET\n\n\n{DATE}\n/{NAME}/{NAME}/T(k='ôü')"))


def test_the_number_of_tries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[bytes] = []

    def sign_wrongly(_: Signer, message: bytes) -> bytes:
        tried.append(message)
        return b""

    monkeypatch.setattr(Signer, "sign", sign_wrongly)
    path = f"/{NAME}-secondary/" + "T(k=%27'%20+%2B%c3)" * 400
    assert not accepts(request(path), sign("wrong"), keys=(b"1", b"2"))
    assert 12 <= len(tried) <= 24


def test_comparison_is_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = Mock(wraps=hmac.compare_digest)
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert accepts(request(f"/{NAME}/Tables"), "6x3Y/FLgh8/ozJ8YPcIAguM4et4HbaViJozb+kRb6aI=")
    assert compare.call_count == 1


@pytest.mark.parametrize("odd", ["", "é", "\u20ac", "====", "x" * 10_000])
def test_odd_signatures_are_just_wrong(odd: str) -> None:
    assert not accepts(request(f"/{NAME}/Tables"), odd)
    assert not accepts(request(f"/{NAME}/Tables", content_type="\u20ac"), odd)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("SharedKey acct:c2ln+/==", ("SharedKey", "acct", "c2ln+/==")),
        ("SharedKeyLite my-acct:c2ln", ("SharedKeyLite", "my-acct", "c2ln")),
        ("sharedkey acct:c2ln", ("SharedKey", "acct", "c2ln")),
    ],
)
def test_authorization_headers(header: str, expected: tuple[str, str, str]) -> None:
    assert tuple(parse_authorization(header)) == expected


@pytest.mark.parametrize(
    "header",
    [
        *("", "SharedKey", "SharedKey ", "SharedKey acct", "SharedKey acct:", "SharedKey :c2ln", "Basic YTpi"),
        *("SharedKeyacct:c2ln", "SharedKey acct:a b", "NTLM acct:c2ln", "SharedKey a b:c2ln", "x" * 10_000),
    ],
)
def test_malformed_authorization_headers(header: str) -> None:
    with pytest.raises(ServiceError, match="400 InvalidAuthenticationInfo") as caught:
        parse_authorization(header)
    assert "c2ln" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_authorization_header_parses_or_is_rejected(header: str) -> None:
    try:
        parse_authorization(header)
    except ServiceError as error:
        if error.code != "InvalidAuthenticationInfo":
            raise


def detail_of(sent: Request, signature: str, canonicalize: Canonicalize = table_string_to_sign) -> str:
    with pytest.raises(ServiceError, match="403 AuthenticationFailed") as caught:
        check(sent, f"SharedKey {NAME}:{signature}", canonicalize=canonicalize)
    [(name, detail)] = caught.value.details
    assert name == "AuthenticationErrorDetail"
    return detail


def test_the_rejection_of_a_signature_shows_the_string_to_sign() -> None:
    sent = request(f"/{NAME}/Tables")
    text = table_string_to_sign("SharedKey", sent, NAME, sent.path, None)
    assert detail_of(sent, "c2ln") == (
        "The MAC signature found in the HTTP request 'c2ln' is not the same as any computed signature. Server used "
        f"following string to sign: '{text}'."
    )
    assert sign(text) not in detail_of(sent, "c2ln")


def test_secrets_of_other_requests_are_not_shown() -> None:
    sent = request(
        f"/{NAME}/c/b",
        "PUT",
        x_ms_copy_source="https://other/c/b?sv=2020&sig=SECRET1%2B&se=2030",
        x_ms_copy_source_authorization="Bearer SECRET2",
        x_ms_encryption_key="SECRET3",
        x_ms_source_encryption_key="SECRET4",
        x_ms_encryption_key_sha256="digest",
    )
    sent.query = "sv=2020&SIG=SECRET5&comp=list&prefix=%C3%A4"
    detail = detail_of(sent, "c2ln", string_to_sign)
    assert "SECRET" not in detail
    for shown in ("&sig=REDACTED&se=2030", "\nsig:REDACTED\n", "-sha256:digest\n", "comp:list", "prefix:\u00e4"):
        assert shown in detail


def test_a_detail_has_a_bound() -> None:
    sent = request(f"/{NAME}/c", x_ms_meta_a="x" * 60_000)
    assert len(detail_of(sent, "c2ln", string_to_sign)) == DETAIL_CHARACTERS_MAX


def test_no_signature_in_a_repr(caplog: pytest.LogCaptureFixture) -> None:
    credentials = parse_authorization("SharedKey acct:c2lnbmF0dXJl")
    logging.getLogger().warning("%s %r", credentials, credentials)
    assert "acct" in caplog.text
    assert "c2lnbmF0dXJl" not in caplog.text


@given(st.datetimes(datetime(1970, 1, 1), datetime(2500, 1, 1)))
def test_http_dates(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    expected = int(moment.timestamp()) * TICKS_PER_SECOND + UNIX_EPOCH_TICKS
    assert parse_http_date(format_datetime(moment, usegmt=True)) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "Mon, 27 Jun 2016 15:25:14", "Mon, 27 Jun 2016 15:25:14 CET", "Mon, 31 Jun 2016 15:25:14 GMT"),
        *("Mon, 27 Jux 2016 15:25:14 GMT", "Mon, 27 Jun 2016 25:25:14 GMT", "Mon, 27 Jun 2016 15:25:60 GMT"),
        *("2016-06-27T15:25:14Z", "Mon, 27 Jun 0000 15:25:14 GMT", "Mon, ٢٧ Jun 2016 15:25:14 GMT", "x" * 10_000),
    ],
)
def test_a_missing_or_malformed_date_is_rejected(text: str) -> None:
    with pytest.raises(ServiceError, match="403 AuthenticationFailed"):
        check_date(Request("GET", "/", headers={"x-ms-date": text} if text else {}), NOW)


@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("window_seconds", [900, 60])
def test_the_windows_edges(direction: int, window_seconds: int) -> None:
    edge = NOW + direction * window_seconds * TICKS_PER_SECOND
    check_date(request("/"), edge, window_seconds)
    with pytest.raises(ServiceError, match="403 AuthenticationFailed") as caught:
        check_date(request("/"), edge + direction, window_seconds)
    assert caught.value.details == (("AuthenticationErrorDetail", f"Request date header too old: '{DATE}'"),)


def test_the_default_window_is_fifteen_minutes() -> None:
    check_date(request("/"), NOW + 900 * TICKS_PER_SECOND)
    with pytest.raises(ServiceError):
        check_date(request("/"), NOW + 900 * TICKS_PER_SECOND + 1)


@pytest.mark.parametrize(
    ("sent", "signed"), [("T(k='a%20b')", "T(k='a+b')"), ("T(k='a+b')", "T(k='a%20b')"), ("T(k='a')", "T(k='b')")]
)
def test_a_signature_is_for_one_resource(sent: str, signed: str) -> None:
    """In a path a plus is a plus: those two are different entities."""
    assert not accepts(request(f"/{NAME}/{sent}"), sign(f"GET\n\n\n{DATE}\n/{NAME}/{NAME}/{signed}"))
