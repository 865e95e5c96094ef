"""SAS of blobs: each version signs its lines, each field counts, and a token reaches its own blobs alone."""

import hmac
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from azure.storage.blob import generate_blob_sas, generate_container_sas

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas import MalformedSasError, parse_sas_date
from lazulite.blob.auth.sas import (
    BLOB,
    CONTAINER,
    TIME,
    BlobSas,
    BlobScope,
    parse_blob_sas,
    resource_fields,
    sign_blob_sas,
)
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.query_string import parse_query_string

ACCOUNT = Account("acct", (b"first", b"second"))
KEY = b64encode(b"first").decode()
EXPIRY = "2030-01-02T00:00:00Z"
SNAPSHOT = "2029-01-01T00:00:00.1234567Z"


def parse(query: str, path: str) -> BlobSas:
    parameters = parse_query_string(query)
    return parse_blob_sas({**parameters, **resource_fields(path, parameters)})


def is_good(query: str, path: str) -> bool:
    sas = parse(query, path)
    try:
        sas.terms()
    except MalformedSasError:
        return False
    return sas.is_signed_by(ACCOUNT)


def signed(lines: str, query: str, key: bytes = b"first") -> str:
    digest = b64encode(hmac.digest(key, lines.encode(), "sha256")).decode()
    return f"{query}&sig={digest.replace('+', '%2B')}"


RESPONSE = "rscc=a&rscd=b&rsce=c&rscl=d&rsct=e"
VERSIONS = {
    "": ("rw\n\n{se}\n/acct/c/b\n", ""),
    "2012-02-12": ("rw\n\n{se}\n/acct/c/b\n\n{sv}", ""),
    "2013-08-15": ("rw\n\n{se}\n/acct/c/b\n\n{sv}\na\nb\nc\nd\ne", RESPONSE),
    "2015-02-21": ("rw\n\n{se}\n/blob/acct/c/b\n\n{sv}\na\nb\nc\nd\ne", RESPONSE),
    "2015-04-05": ("rw\n\n{se}\n/blob/acct/c/b\n\n\n\n{sv}\na\nb\nc\nd\ne", RESPONSE),
    "2018-11-09": ("rw\n\n{se}\n/blob/acct/c/b\n\n\n\n{sv}\nb\n\na\nb\nc\nd\ne", RESPONSE),
    "2020-12-06": ("rw\n\n{se}\n/blob/acct/c/b\n\n\n\n{sv}\nb\n\nscope\na\nb\nc\nd\ne", f"{RESPONSE}&ses=scope"),
    "2026-10-06": ("rw\n\n{se}\n/blob/acct/c/b\n\n\n\n{sv}\nb\n\nscope\na\nb\nc\nd\ne", f"{RESPONSE}&ses=scope"),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_signs_its_lines(version: str) -> None:
    lines, more = VERSIONS[version]
    query = f"sp=rw&se={EXPIRY}&sr=b&{more}" + (f"&sv={version}" if version else "")
    token = signed(lines.format(se=EXPIRY, sv=version), query)
    assert is_good(token, "c/b")
    assert not is_good(token, "c/other")
    assert not is_good(token, "other/b")
    fields = [("Cache-Control", "a"), ("Content-Disposition", "b"), ("Content-Encoding", "c")]
    fields += [("Content-Language", "d"), ("Content-Type", "e")]
    assert parse(token, "c/b").grant("rw").response_headers == (tuple(fields) if more else ())


def test_fields_of_the_response_count_only_where_they_are_signed() -> None:
    token = signed(
        VERSIONS["2012-02-12"][0].format(se=EXPIRY, sv="2012-02-12"), f"sp=rw&se={EXPIRY}&sr=b&sv=2012-02-12"
    )
    assert is_good(f"{token}&rsct=text/html", "c/b")
    assert parse(f"{token}&rsct=text/html", "c/b").grant("r").response_headers == ()


def test_a_token_without_version_is_valid_for_an_hour() -> None:
    lines = "r\n{}\n" + EXPIRY + "\n/acct/c/b\n"
    unlimited = signed(lines.format(""), f"sp=r&se={EXPIRY}&sr=b")
    assert is_good(unlimited, "c/b")
    terms = parse(unlimited, "c/b").terms()
    terms.check_time(parse_sas_date("2030-01-01T23:00:00Z"))
    with pytest.raises(ServiceError):
        terms.check_time(parse_sas_date("2030-01-01T22:59:59Z"))
    for start, good in (("2030-01-01T23:00:00Z", True), ("2030-01-01T22:59:59Z", False)):
        assert is_good(signed(lines.format(start), f"sp=r&st={start}&se={EXPIRY}&sr=b"), "c/b") is good
    stored = parse(signed("\n\n\n/acct/c\npolicy", "si=policy&sr=c"), "c/b")
    assert stored.terms().start is None
    assert stored.is_signed_by(ACCOUNT)
    assert stored.policy_resource == "c"


@pytest.mark.parametrize("name", ["b", "d/é b.txt", "a//b", "..a", "%2F", "a+b&c=d"])
def test_the_sdk_signs_the_same_for_a_blob(name: str) -> None:
    token = generate_blob_sas(
        "acct",
        "c",
        name,
        account_key=KEY,
        permission="racwd",
        expiry=datetime(2030, 1, 2, tzinfo=UTC),
        start="2030-01-01",
        ip="10.0.0.1-10.0.0.9",
        protocol="https",
        content_type="text/plain; charset=utf-8",
        content_disposition='attachment; filename="é.txt"',
        encryption_scope="scope",
    )
    path = f"c/{quote(name)}"
    assert is_good(token, path)
    assert not is_good(token, f"{path}x")
    grant = parse(token, path).grant("r")
    assert dict(grant.response_headers)["Content-Disposition"] == 'attachment; filename="Ã©.txt"'
    assert grant.scope == BlobScope("c", name)
    for field in ("sp=racw", "sip=10.0.0.1", "spr=https%2Chttp", "ses=x", "rsct=x", "rscc=x", "sr=c", "sv=2026-10-07"):
        other = "&".join(pair for pair in token.split("&") if pair.partition("=")[0] != field.partition("=")[0])
        assert not is_good(f"{other}&{field}", path), field


def test_the_sdk_signs_the_same_for_a_container() -> None:
    token = generate_container_sas("acct", "c", account_key=KEY, policy_id="p", cache_control="no-store")
    for path in ("c", "c/b", "c/b/d"):
        assert is_good(f"{token}&restype=container", path)
    assert not is_good(token, "d/b")
    sas = parse(token, "c/b")
    assert (sas.policy_resource, sas.scope()) == ("c", BlobScope("c"))
    assert sas.grant("rl").permissions == frozenset("rl")


def test_the_sdk_signs_the_same_for_a_snapshot_and_a_version() -> None:
    snapshot = generate_blob_sas("acct", "c", "b", snapshot=SNAPSHOT, account_key=KEY, permission="rwdx", expiry=EXPIRY)
    version = generate_blob_sas("acct", "c", "b", version_id=SNAPSHOT, account_key=KEY, permission="r", expiry=EXPIRY)
    for token, own, other in ((snapshot, "snapshot", "versionid"), (version, "versionid", "snapshot")):
        assert is_good(f"{token}&{own}={SNAPSHOT}", "c/b")
        assert not is_good(token, "c/b")
        assert not is_good(f"{token}&{own}={SNAPSHOT}1", "c/b")
        assert not is_good(f"{token}&{other}={SNAPSHOT}", "c/b")
        assert not is_good(f"{token}&{own}={SNAPSHOT}&{other}={SNAPSHOT}", "c/b")
    assert parse(f"{snapshot}&snapshot={SNAPSHOT}", "c/b").grant("rwcdx").permissions == frozenset("rdx")


def test_the_sdk_signs_the_same_for_a_directory() -> None:
    token = generate_blob_sas("acct", "c", "a/b", account_key=KEY, permission="r", expiry=EXPIRY, is_directory=True)
    for path in ("c/a/b/c", "c/a/b/c/d", "c/a/b/", "c/a/b%2Fc"):
        assert is_good(token, path)
        assert parse(token, path).scope() == BlobScope("c", "a/b", is_directory=True)
    for path in ("c/a/b", "c/a/bc/d", "c/a/c", "c", "c/b/a/b/c"):
        assert not is_good(token, path)
    for depth in ("", "0", "1", "3", "-2", "%C2%B2", "2222"):
        assert not is_good(token.replace("sdd=2", f"sdd={depth}"), "c/a/b/c")
    older = token.replace("sv=2026-10-06", "sv=2026-06-05")
    assert not is_good(older, "c/a/b/c")


def test_a_blob_of_the_root_container() -> None:
    token = generate_blob_sas("acct", "$root", "b", account_key=KEY, permission="r", expiry=EXPIRY)
    assert is_good(token, "b")
    assert is_good(token, "$root/b")
    assert not is_good(f"{token}&restype=container", "b")


@pytest.mark.parametrize(
    "change",
    [
        {"sr": ""},
        {"sr": "x"},
        {"sr": "bs"},
        {"sp": ""},
        {"se": ""},
        {"sv": "2011-01-01"},
        {"sp": "r\n"},
        {"si": "x" * 65},
        {"rsct": "a\rb"},
        {"rsct": "a\nb"},
        {"rscd": "a\x7f"},
        {CONTAINER: ""},
        {BLOB: ""},
        {BLOB: "a\nb"},
        {TIME: SNAPSHOT},
    ],
)
def test_malformed_tokens(change: dict[str, str]) -> None:
    fields = {"sv": "2020-12-06", "sr": "b", "sp": "r", "se": EXPIRY, "sig": "x", CONTAINER: "c", BLOB: "b", TIME: ""}
    parse_blob_sas(fields).terms()
    with pytest.raises(MalformedSasError):
        parse_blob_sas(fields | change).terms()


@pytest.mark.parametrize(
    ("kind", "before", "since"),
    [("bs", "2018-11-08", "2018-11-09"), ("bv", "2019-12-11", "2019-12-12"), ("d", "2026-06-05", "2026-06-06")],
)
def test_each_kind_has_a_first_version(kind: str, before: str, since: str) -> None:
    time = "" if kind == "d" else SNAPSHOT
    sas = BlobSas(kind=kind, container="c", blob="b", time=time, permission="r", expiry=EXPIRY, version=since)
    sign_blob_sas(ACCOUNT, sas)
    with pytest.raises(MalformedSasError):
        sign_blob_sas(ACCOUNT, replace(sas, version=before))


@pytest.mark.parametrize("key", [1, 2])
def test_a_signed_token_is_good(key: int) -> None:
    sas = BlobSas(
        kind="b",
        container="c",
        blob="é",
        permission="r",
        expiry=EXPIRY,
        overrides=("", "inline", "", "", "text/plain"),
    )
    token = sign_blob_sas(ACCOUNT, sas, key)
    assert is_good(token, "c/%C3%A9")
    assert sas.is_signed_by(ACCOUNT) is False
    assert "sdd" not in token


def test_an_unsigned_restriction_is_not_signed_away() -> None:
    old = BlobSas(kind="c", container="c", permission="r", expiry=EXPIRY, version="2012-02-12")
    sign_blob_sas(ACCOUNT, old)
    restricted = [replace(old, ip="10.0.0.1"), replace(old, protocol="https"), replace(old, encryption_scope="x")]
    for sas in (*restricted, replace(old, overrides=("a", "", "", "", ""))):
        with pytest.raises(MalformedSasError):
            sign_blob_sas(ACCOUNT, sas)


@pytest.mark.parametrize(
    ("scope", "covered", "other"),
    [
        (BlobScope("c"), ["c", "c/b", "c/b/d"], ["", "cd", "cd/b", "b"]),
        (BlobScope("c", "b"), ["c/b"], ["c", "c/b/d", "c/bd", "d/b", ""]),
        (BlobScope("c", "b", is_directory=True), ["c/b/", "c/b/d", "c/b/d/e"], ["c", "c/b", "c/bd/e", "d/b/d"]),
    ],
)
def test_scopes(scope: BlobScope, covered: list[str], other: list[str]) -> None:
    assert [scope.covers(name) for name in covered] == [True] * len(covered)
    assert [scope.covers(name) for name in other] == [False] * len(other)
