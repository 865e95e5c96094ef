"""User delegation SAS of blobs: each version signs its lines, and every field of a token counts."""

import hmac
from base64 import b64encode
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from azure.storage.blob import UserDelegationKey, generate_blob_sas, generate_container_sas

from lazulite.auth.delegation.key import DelegationKey, Secret
from lazulite.auth.sas import MalformedSasError
from lazulite.blob.auth.delegation_sas import BlobDelegationSas, parse_blob_delegation_sas
from lazulite.blob.auth.sas import BLOB, CONTAINER, TIME, BlobScope, resource_fields
from lazulite.protocol.query_string import parse_query_string

SECRET = Secret(5, b"secret")
EXPIRY = "2030-01-02T00:00:00Z"
KEY = DelegationKey(oid="o", tid="t", start="2030-01-01", expiry="2030-01-08", service="b", version="2026-02-06")
KEY_FIELDS = {"skoid": "o", "sktid": "t", "skt": "2030-01-01", "ske": "2030-01-08", "sks": "b", "skv": "2026-02-06"}
KEY_LINES = "o\nt\n2030-01-01\n2030-01-08\nb\n2026-02-06"
START = f"r\n\n{EXPIRY}\n/blob/acct/c/b\n{KEY_LINES}"
TAIL = "a\n\n\n\ne"
VERSIONS = {
    "2018-11-09": [f"{START}\n\n\n{{}}\nb\n\n{TAIL}"],
    "2019-12-12": [f"{START}\n\n\n{{}}\nb\n\n{TAIL}"],
    "2020-02-10": [f"{START}\nsa\n\nsc\n\n\n{{}}\nb\n\n{TAIL}"],
    "2020-12-06": [f"{START}\nsa\n\nsc\n\n\n{{}}\nb\n\nscope\n{TAIL}"],
    "2025-07-05": [f"{START}\nsa\n\nsc\n\n\n\n\n{{}}\nb\n\nscope\n{TAIL}"],
    "2026-04-06": [f"{START}\nsa\n\nsc\n\n\n\n\n{{}}\nb\n\nscope\n{more}{TAIL}" for more in ("", "\n\n")],
}


def sdk_key(tenant: str = "") -> UserDelegationKey:
    key = UserDelegationKey()  # type: ignore[no-untyped-call]  # the SDK
    key.signed_oid, key.signed_tid, key.signed_start, key.signed_expiry = KEY.oid, KEY.tid, KEY.start, KEY.expiry
    key.signed_service, key.signed_version, key.signed_delegated_user_tid = KEY.service, KEY.version, tenant
    key.value = replace(KEY, delegated_tid=tenant).text(SECRET, "acct")
    return key


def parse(fields: dict[str, str], path: str = "c/b", headers: dict[str, str] | None = None) -> BlobDelegationSas:
    return parse_blob_delegation_sas({**fields, **resource_fields(path, fields)}, headers or {})


def is_good(fields: dict[str, str], path: str = "c/b", headers: dict[str, str] | None = None) -> bool:
    try:
        sas = parse(fields, path, headers)
        sas.terms()
        sas.key_terms()
    except MalformedSasError:
        return False
    return sas.is_signed_by([Secret(1, b"other"), SECRET], "acct")


def signed(lines: str) -> str:
    return b64encode(hmac.digest(KEY.value(SECRET, "acct"), lines.encode(), "sha256")).decode()


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_signs_its_lines(version: str) -> None:
    fields = {**KEY_FIELDS, "sv": version, "sr": "b", "sp": "r", "se": EXPIRY, "rscc": "a", "rsct": "e"}
    fields |= {"saoid": "sa", "scid": "sc", "ses": "scope"}
    for lines in VERSIONS[version]:
        token = fields | {"sig": signed(lines.format(version))}
        assert is_good(token)
        assert not is_good(token, "c/other")
        grant = parse(token).grant(frozenset({"blobs/read"}))
        assert (grant.kind, grant.permissions, grant.scope) == ("delegation-sas", frozenset("r"), BlobScope("c", "b"))
        assert grant.response_headers == (("Cache-Control", "a"), ("Content-Type", "e"))
        for restriction in ({"suoid": "x"}, {"sduoid": "x"}, {"srh": "x"}, {"srq": "sp"}):
            assert not is_good(token | restriction, headers={"x": "1"})


SDK_TOKEN: dict[str, Any] = {
    "permission": "racwd",
    "expiry": EXPIRY,
    "start": "2030-01-01T00:00:00Z",
    "ip": "10.0.0.1",
    "protocol": "https",
    "content_type": "text/plain",
    "encryption_scope": "scope",
    "user_delegation_oid": "user",
    "correlation_id": "id",
    "preauthorized_agent_object_id": "agent",
    "request_headers": {"X-Colour": "red, blue", "x-ms-version": "2026-10-06"},
    "request_query_params": {"Comp": "metadata"},
}
HEADERS = {"x-colour": "red, blue", "x-ms-version": "2026-10-06"}


def sdk_token(tenant: str = "") -> dict[str, str]:
    token = generate_blob_sas("acct", "c", "d/é b", user_delegation_key=sdk_key(tenant), **SDK_TOKEN)
    return dict(parse_query_string(f"{token}&comp=metadata"))


@pytest.mark.parametrize("tenant", ["", "tenant"])
def test_the_sdk_signs_the_same_for_a_blob(tenant: str) -> None:
    fields = sdk_token(tenant)
    path = quote("c/d/é b")
    assert is_good(fields, path, HEADERS)
    for name in fields:
        assert not is_good(fields | {name: fields[name] + "1"}, path, HEADERS), name
        if name not in ("sig", "comp"):
            assert not is_good({key: value for key, value in fields.items() if key != name}, path, HEADERS), name
    assert not is_good(fields, f"{path}1", HEADERS)
    for headers in ({}, HEADERS | {"x-colour": "red"}, {"x-colour": "red, blue"}):
        assert not is_good(fields, path, headers)


def test_the_sdk_signs_the_same_for_a_container_and_a_directory() -> None:
    container = generate_container_sas("acct", "c", user_delegation_key=sdk_key(), permission="rl", expiry=EXPIRY)
    fields = dict(parse_query_string(container))
    assert is_good(fields, "c/b/d")
    assert is_good({**fields, "restype": "container"}, "c")
    assert not is_good(fields, "d/b")
    directory = generate_blob_sas(
        "acct", "c", "a/b", user_delegation_key=sdk_key(), permission="r", expiry=EXPIRY, is_directory=True
    )
    fields = dict(parse_query_string(directory))
    assert is_good(fields, "c/a/b/c")
    assert not is_good(fields, "c/a/bc/d")
    assert parse(fields, "c/a/b/c").scope() == BlobScope("c", "a/b", is_directory=True)


def test_the_sdk_signs_the_same_for_a_snapshot() -> None:
    time = "2029-01-01T00:00:00.1234567Z"
    token = generate_blob_sas(
        "acct", "c", "b", snapshot=time, user_delegation_key=sdk_key(), permission="rw", expiry=EXPIRY
    )
    fields = dict(parse_query_string(token))
    assert is_good({**fields, "snapshot": time})
    assert parse({**fields, "snapshot": time}).grant(frozenset()).permissions == frozenset("r")
    assert not is_good(fields)
    assert not is_good({**fields, "snapshot": time, "versionid": time})


def test_names_of_signed_fields_cannot_be_cut_elsewhere() -> None:
    token = generate_blob_sas(
        "acct",
        "c",
        "b",
        user_delegation_key=sdk_key(),
        permission="r",
        expiry=EXPIRY,
        request_query_params={"prefix": "a:b"},
    )
    fields = dict(parse_query_string(token))
    assert is_good({**fields, "prefix": "a:b"})
    assert not is_good({**fields, "srq": "prefix:a", "prefix:a": "b"})
    moved = {key: value for key, value in fields.items() if key != "srq"} | {"srh": "prefix"}
    assert not is_good(moved, headers={"prefix": "a:b"})


@pytest.mark.parametrize("names", ["x,x", "x,X", "", "y", "x,", ",".join(f"x{n}" for n in range(65))])
def test_malformed_names_of_signed_fields(names: str) -> None:
    fields = {**KEY_FIELDS, "sv": "2026-10-06", "sr": "b", "sp": "r", "se": EXPIRY, "sig": "x"}
    headers = {f"x{n}": "1" for n in range(65)} | {"x": "1"}
    parse(fields | {"srh": "x"}, headers=headers).terms()
    if names:
        with pytest.raises(MalformedSasError):
            parse(fields | {"srh": names}, headers=headers)
    with pytest.raises(MalformedSasError):
        parse(fields | {"srq": "x", "x": "a\nb"})


@pytest.mark.parametrize(
    "changes",
    [
        {"sv": "2018-11-08"},
        {"skv": "2018-11-08"},
        {"sp": ""},
        {"se": ""},
        {"sr": ""},
        {"sr": "bv"},
        {"skt": "x"},
        *({name: ""} for name in KEY_FIELDS),
        {"si": "policy"},
        {"suoid": "user"},
        {"scid": "a\nb"},
        {"sv": "2025-07-04", "sduoid": "user"},
        {CONTAINER: ""},
        {BLOB: ""},
        {BLOB: "b\no"},
        {TIME: "2029-01-01"},
        {"rsct": "a\rb"},
    ],
)
def test_malformed_tokens(changes: dict[str, str]) -> None:
    fields = {**KEY_FIELDS, "sv": "2020-02-10", "sr": "b", "sp": "r", "se": EXPIRY, "sig": "x"}
    fields |= {CONTAINER: "c", BLOB: "b", TIME: ""}
    check(fields)
    with pytest.raises(MalformedSasError):
        check(fields | changes)


def check(fields: dict[str, str]) -> None:
    sas = parse_blob_delegation_sas(fields, {})
    sas.terms()
    sas.key_terms()
