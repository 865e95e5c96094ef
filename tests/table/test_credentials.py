"""What a client of the Table service signs; the vectors of reference §13.4 are in auth/test_shared_key.py.

The SAS of a table is held to the reference's vector, the SDK's own generator and a direct definition of its key range.
"""

from dataclasses import replace

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableSasPermissions, generate_table_sas
from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, Account
from lazulite.auth.sas import MalformedSasError, apply_policy
from lazulite.engine.contract import KeyRange
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string
from lazulite.records.catalog import StoredAccessPolicy
from lazulite.table.credentials import TableSas, TableScope, parse_table_sas, sign_table_sas, table_string_to_sign

DATE = "Mon, 27 Jun 2016 15:25:14 GMT"


def test_what_is_signed() -> None:
    message = Request(
        "MERGE",
        "/a/T",
        headers={
            "content-length": "9",
            "content-md5": "m",
            "content-type": "t",
            "date": "d",
            "x-ms-date": DATE,
            "x-ms-version": "v",
        },
    )
    assert table_string_to_sign("SharedKey", message, "a", "/a/T", None) == f"MERGE\nm\nt\n{DATE}\n/a/a/T"
    assert table_string_to_sign("SharedKeyLite", message, "a", "/a/T", "acl") == f"{DATE}\n/a/a/T?comp=acl"


def test_the_date_header_stands_in_for_x_ms_date() -> None:
    message = Request("GET", "/a/T", headers={"date": "d"})
    assert table_string_to_sign("SharedKeyLite", message, "a", "/a/T", None) == "d\n/a/a/T"


KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
EXPIRY = "2030-01-01T00:00:00Z"
TOKEN = {"sv": "2019-02-02", "tn": "MyTable", "sp": "raud", "se": EXPIRY}
SIGNED = TOKEN | {"sig": "VH1kJ2dMcGJPJnFMefVZ3HMd1fedSci/031kWIgJz0w="}
EVERYTHING = {
    "tn": "MyTable",
    "sp": "p",
    "st": "2020-01-01",
    "se": "2030-01-01",
    "si": "i",
    "sip": "1.2.3.4",
    "spr": "https,http",
    "spk": "a",
    "srk": "b",
    "epk": "c",
    "erk": "d",
}


def test_the_references_vector() -> None:
    for table in ("MyTable", "mytable", "MYTABLE"):
        sas = parse_table_sas(SIGNED | {"tn": table})
        sas.terms()
        assert sas.is_signed_by(DEVELOPMENT_ACCOUNT)
    assert not parse_table_sas(SIGNED | {"tn": "other"}).is_signed_by(DEVELOPMENT_ACCOUNT)


@pytest.mark.parametrize("policy", [False, True])
def test_the_sdk_signs_the_same(policy: bool) -> None:
    credential = AzureNamedKeyCredential("devstoreaccount1", KEY)
    if policy:
        query = generate_table_sas(credential, "MyTable", policy_id="my policy")
    else:
        query = generate_table_sas(
            credential,
            "MyTable",
            permission=TableSasPermissions(read=True, add=True, update=True, delete=True),
            expiry=EXPIRY,
            start="2020-01-01T00:00Z",
            ip_address_or_range="10.0.0.1",
            protocol="https",
            start_pk="a b",
            start_rk="ö'%",
            end_pk="z+&=",
            end_rk="😀",
        )
    sas = parse_table_sas(parse_query_string(query))
    sas.terms()
    assert sas.is_signed_by(DEVELOPMENT_ACCOUNT)
    assert parse_query_string(sign_table_sas(DEVELOPMENT_ACCOUNT, sas)) == parse_query_string(query)


@pytest.mark.parametrize(
    ("version", "resource", "address_lines"),
    [
        ("2012-02-12", "/acct/mytable", ""),
        ("2013-08-15", "/acct/mytable", ""),
        ("2014-02-14", "/acct/mytable", ""),
        ("2015-02-21", "/table/acct/mytable", ""),
        ("2015-04-05", "/table/acct/mytable", "1.2.3.4\nhttps,http\n"),
        ("2020-12-06", "/table/acct/mytable", "1.2.3.4\nhttps,http\n"),
        ("2026-10-06", "/table/acct/mytable", "1.2.3.4\nhttps,http\n"),
    ],
)
def test_the_lines_of_each_version(version: str, resource: str, address_lines: str) -> None:
    sas = parse_table_sas(EVERYTHING | {"sv": version, "ses": "never signed"})
    assert sas.string_to_sign("acct") == (
        f"p\n2020-01-01\n2030-01-01\n{resource}\ni\n{address_lines}{version}\na\nb\nc\nd"
    )
    bare = parse_table_sas({"sv": version, "tn": "MyTable", "si": "i"})
    blank = "\n\n" if address_lines else ""
    assert bare.string_to_sign("acct") == f"\n\n\n{resource}\ni\n{blank}{version}\n\n\n\n"


def test_a_token_of_an_old_version_verifies() -> None:
    for version in ("2012-02-12", "2013-08-15", "2015-02-21"):
        query = sign_table_sas(DEVELOPMENT_ACCOUNT, TableSas(table="T", permission="r", expiry=EXPIRY, version=version))
        assert parse_table_sas(parse_query_string(query)).is_signed_by(DEVELOPMENT_ACCOUNT)


def test_addresses_and_protocols_of_an_old_token_are_not_signed_and_not_looked_at() -> None:
    limits = {"sip": "1.2.3.4", "spr": "https"}
    old = parse_table_sas(SIGNED | limits | {"sv": "2015-02-21"}).terms()
    assert (old.addresses, old.https_only) == (None, False)
    parse_table_sas(SIGNED | {"sv": "2015-02-21", "sip": "anything"}).terms()
    new = parse_table_sas(SIGNED | limits | {"sv": "2015-04-05"}).terms()
    assert new.addresses is not None
    assert new.https_only


@pytest.mark.parametrize("limit", [{"ip": "1.2.3.4"}, {"protocol": "https"}])
def test_no_token_is_signed_with_a_limit_that_its_version_does_not_sign(limit: dict[str, str]) -> None:
    old = TableSas(table="T", permission="r", expiry=EXPIRY, version="2015-02-21", **limit)
    with pytest.raises(MalformedSasError, match="2015-04-05"):
        sign_table_sas(DEVELOPMENT_ACCOUNT, old)
    sign_table_sas(DEVELOPMENT_ACCOUNT, replace(old, version="2015-04-05"))


@pytest.mark.parametrize("name", ["sv", "sp", "st", "se", "si", "sip", "spr", "spk", "srk", "epk", "erk"])
def test_a_change_of_any_value_is_noticed(name: str) -> None:
    sas = replace(parse_table_sas(EVERYTHING | {"sv": "2019-02-02"}), permission="", start="", expiry="")
    query = parse_query_string(sign_table_sas(DEVELOPMENT_ACCOUNT, sas))
    assert parse_table_sas(query).is_signed_by(DEVELOPMENT_ACCOUNT)
    changed = parse_table_sas({**query, name: "2030-02-03"})
    assert not changed.is_signed_by(DEVELOPMENT_ACCOUNT)


@pytest.mark.parametrize(
    "change",
    [
        *({name: ""} for name in TOKEN),
        *(
            {"sv": "2009-09-19"},
            {"sv": "x"},
            {"sv": "2019-02-30"},
            {"se": "soon"},
            {"st": "now"},
            {"spr": "http"},
            {"sip": "here"},
        ),
        *({"si": "i" * 65}, {"srk": "b"}, {"erk": "b"}, {"spk": "a\nb"}, {"tn": "a\n"}),
    ],
)
def test_malformed_tokens(change: dict[str, str]) -> None:
    parameters = SIGNED | change
    with pytest.raises(MalformedSasError):
        parse_table_sas(parameters).terms()
    with pytest.raises(MalformedSasError):
        parse_table_sas({name: value for name, value in parameters.items() if value}).terms()


def test_with_a_policy_the_token_needs_neither_permission_nor_expiry() -> None:
    assert parse_table_sas({"sv": "2019-02-02", "tn": "T", "si": "i" * 64}).terms().expiry is None


KEYS = st.text("ab\0", max_size=2)
BOUNDS = st.one_of(st.none(), st.text("ab", min_size=1, max_size=2))


@given(BOUNDS, BOUNDS, BOUNDS, BOUNDS, KEYS, KEYS)
def test_the_key_range(spk: str | None, srk: str | None, epk: str | None, erk: str | None, p: str, r: str) -> None:
    """Reference §14.4: spk alone is PK >= spk; with srk, PK > spk or (PK = spk and RK >= srk); the end mirrored."""
    bounds = {"spk": spk, "srk": srk, "epk": epk, "erk": erk}
    parameters = TOKEN | {name: value for name, value in bounds.items() if value is not None}
    if (srk and not spk) or (erk and not epk):
        with pytest.raises(MalformedSasError):
            parse_table_sas(parameters)
        return
    after_start = spk is None or (p >= spk if srk is None else p > spk or (p == spk and r >= srk))
    before_end = epk is None or (p <= epk if erk is None else p < epk or (p == epk and r <= erk))
    scope = parse_table_sas(parameters).scope()
    assert scope.allows_key(p, r) == (after_start and before_end)


def test_an_empty_bound_is_no_bound_for_it_signs_like_none() -> None:
    assert parse_table_sas(TOKEN | {"spk": "", "srk": "", "epk": "", "erk": ""}).scope().key_range is None
    empty_partition = parse_table_sas(TOKEN | {"spk": "", "srk": "b", "epk": "", "erk": "d"}).scope().key_range
    assert empty_partition == (("", "b"), ("", "d\0"))


UTF16_KEYS = st.text("a\0\ue000\U00010000b", max_size=3)


@given(UTF16_KEYS, UTF16_KEYS, UTF16_KEYS, UTF16_KEYS, UTF16_KEYS, UTF16_KEYS)
def test_the_range_is_half_open_and_ordinal(lp: str, lr: str, up: str, ur: str, p: str, r: str) -> None:
    def utf16(text: str) -> list[int]:
        data = text.encode("utf-16-be")
        return [int.from_bytes(data[index : index + 2]) for index in range(0, len(data), 2)]

    def key(partition: str, row: str) -> tuple[list[int], list[int]]:
        return utf16(partition), utf16(row)

    bounded = TableScope("t", KeyRange((lp, lr), (up, ur)))
    assert bounded.allows_key(p, r) == (key(lp, lr) <= key(p, r) < key(up, ur))
    open_ended = TableScope("t", KeyRange((lp, lr), None))
    assert open_ended.allows_key(p, r) == (key(lp, lr) <= key(p, r))
    assert TableScope("t").allows_key(p, r)


def test_policies() -> None:
    bare = parse_table_sas({"sv": "2019-02-02", "tn": "T", "si": "i"})
    assert apply_policy(bare, bare.terms(), StoredAccessPolicy("i", 1, 2, "r")) == (
        "r",
        replace(bare.terms(), start=1, expiry=2),
    )
    full = parse_table_sas(EVERYTHING | {"sv": "2019-02-02"})
    assert apply_policy(full, full.terms(), StoredAccessPolicy("i")) == ("p", full.terms())
    assert apply_policy(full, full.terms(), StoredAccessPolicy("i", permission="")) == ("p", full.terms())


@pytest.mark.parametrize(
    ("token", "policy"),
    [
        ({}, StoredAccessPolicy("i")),
        ({}, StoredAccessPolicy("i", 1, 2)),
        ({}, StoredAccessPolicy("i", 1, None, "r")),
        ({"sp": "r"}, StoredAccessPolicy("i", 1)),
        ({"sp": "r"}, StoredAccessPolicy("i", 1, 2, "r")),
        ({"se": EXPIRY}, StoredAccessPolicy("i", 1, 2, "r")),
        ({"st": EXPIRY}, StoredAccessPolicy("i", 1, 2, "r")),
    ],
)
def test_too_little_or_too_much_beside_a_policy(token: dict[str, str], policy: StoredAccessPolicy) -> None:
    sas = parse_table_sas({"sv": "2019-02-02", "tn": "T", "si": "i"} | token)
    with pytest.raises(MalformedSasError):
        apply_policy(sas, sas.terms(), policy)


def test_signing() -> None:
    account = Account("acct", (b"first", b"second"))
    sas = TableSas(table="T", permission="r", expiry=EXPIRY, signature="ignored")
    for key in (1, 2):
        signed = parse_table_sas(parse_query_string(sign_table_sas(account, sas, key)))
        assert signed.is_signed_by(Account("acct", (account.keys[key - 1],)))
    for nonsense in (TableSas(table="T"), replace(sas, start_row="b"), replace(sas, start_partition="a\n")):
        with pytest.raises(MalformedSasError):
            sign_table_sas(account, nonsense)


def test_no_signature_in_a_repr() -> None:
    assert "VH1kJ" not in repr(parse_table_sas(SIGNED))
