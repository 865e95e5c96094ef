"""The account SAS against the reference's vectors and the SDK's own generator."""

import hmac
from unittest.mock import Mock

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account
from lazulite.auth.sas import AccountSas, MalformedSasError, parse_account_sas, sign_account_sas
from lazulite.protocol.query_string import parse_query_string

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
EXPIRY = "2030-01-01T00:00:00Z"
TOKEN = {"sv": "2019-02-02", "ss": "t", "srt": "soc", "sp": "rwdlacu", "se": EXPIRY}
SIGNED = TOKEN | {"sig": "2/d58i4+JROW5cOSI9tFJNZYQKyAwfsgJowJg6WzqHQ="}


@pytest.mark.parametrize(
    "parameters",
    [
        SIGNED,
        {
            "sv": "2026-10-06",
            "ss": "b",
            "srt": "o",
            "sp": "r",
            "se": EXPIRY,
            "sig": "q5agt3x9rUhjwFh+R2u+RRyIRLhgxqhP/p90vniL+lI=",
        },
    ],
)
def test_the_references_vectors(parameters: dict[str, str]) -> None:
    sas = parse_account_sas(parameters)
    sas.terms()
    assert sas.is_signed_by(DEVELOPMENT_ACCOUNT)
    assert not parse_account_sas(parameters | {"sig": "A" + parameters["sig"][1:]}).is_signed_by(DEVELOPMENT_ACCOUNT)


def test_the_sdk_signs_the_same() -> None:
    query = generate_account_sas(
        AzureNamedKeyCredential("devstoreaccount1", KEY),
        ResourceTypes(service=True, object=True),
        AccountSasPermissions(read=True, add=True, update=True),
        "2030-01-01T00:00:00Z",
        start="2020-01-01",
        ip_address_or_range="10.0.0.1-10.0.0.9",
        protocol="https,http",
    )
    sas = parse_account_sas(parse_query_string(query))
    assert sas.is_signed_by(DEVELOPMENT_ACCOUNT)
    again = parse_query_string(sign_account_sas(DEVELOPMENT_ACCOUNT, sas))
    assert again == parse_query_string(query)


def test_the_lines_of_each_version() -> None:
    sas = parse_account_sas({**TOKEN, "st": "2020-01-01", "sip": "1.2.3.4", "spr": "https,http", "ses": "scope"})
    lines = "acct\nrwdlacu\nt\nsoc\n2020-01-01\n2030-01-01T00:00:00Z\n1.2.3.4\nhttps,http\n2019-02-02\n"
    assert sas.string_to_sign("acct") == lines
    newer = parse_account_sas({**TOKEN, "sv": "2020-12-06", "ses": "scope"})
    assert newer.string_to_sign("acct").endswith("\n2020-12-06\nscope\n")
    newer = parse_account_sas({**TOKEN, "sv": "2020-12-06"})
    assert newer.string_to_sign("acct").endswith("\n2020-12-06\n\n")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(name, "") for name in TOKEN],
        *[("sv", "2015-02-21"), ("sv", "newest"), ("se", "soon"), ("st", "now"), ("spr", "http"), ("sip", "here")],
        *[("sp", "r\n"), ("ses", "a\nb")],
    ],
)
def test_malformed_tokens(name: str, value: str) -> None:
    with pytest.raises(MalformedSasError):
        parse_account_sas(SIGNED | {name: value}).terms()
    with pytest.raises(MalformedSasError):
        parse_account_sas({key: text for key, text in (SIGNED | {name: value}).items() if text}).terms()


@pytest.mark.parametrize("name", ["ss", "srt", "sp", "se", "sv", "st", "sip", "spr"])
def test_a_change_of_any_value_is_noticed(name: str) -> None:
    changed = {"se": "2031-01-01", "sv": "2019-07-07", "st": "2020-01-01", "sip": "1.2.3.4", "spr": "https"}
    sas = parse_account_sas(SIGNED | {name: changed.get(name, "q")})
    assert not sas.is_signed_by(DEVELOPMENT_ACCOUNT)
    assert not parse_account_sas(SIGNED).is_signed_by(Account("other", DEVELOPMENT_ACCOUNT.keys))


@pytest.mark.parametrize("key", [1, 2])
def test_signing_by_either_key(key: int) -> None:
    account = Account("acct", (b"first", b"second"))
    sas = AccountSas(services="bt", resource_types="o", permission="r", expiry=EXPIRY)
    signed = parse_account_sas(parse_query_string(sign_account_sas(account, sas, key)))
    assert signed.is_signed_by(account)
    assert signed.is_signed_by(Account("acct", (account.keys[key - 1],)))
    assert not signed.is_signed_by(Account("acct", (account.keys[2 - key],)))
    with pytest.raises(IndexError):
        sign_account_sas(Account("acct", (b"first",)), sas, 2)


def test_nonsense_is_not_signed() -> None:
    for sas in (
        AccountSas(services="t", resource_types="o", permission="r", expiry="soon"),
        AccountSas(services="t", resource_types="o", permission="r\n", expiry=EXPIRY),
    ):
        with pytest.raises(MalformedSasError):
            sign_account_sas(DEVELOPMENT_ACCOUNT, sas)


def test_comparison_is_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compare = Mock(wraps=hmac.compare_digest)
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert parse_account_sas(SIGNED).is_signed_by(Account("devstoreaccount1", (*DEVELOPMENT_ACCOUNT.keys, b"2")))
    assert compare.call_count == 2


def test_no_signature_in_a_repr() -> None:
    assert "2/d58" not in repr(parse_account_sas(SIGNED))
