"""Shared Key, missing credentials, rotated keys: each rejection of reference §14.6, and that no secret is shown."""

import logging
from itertools import count
from pathlib import Path
from random import Random

import pytest

from lazulite.auth.accounts.account import AccountDirectory, AccountFile
from lazulite.auth.grant import SHARED_KEY_GRANT
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string

from .credentials import (
    ACCOUNT,
    NOW,
    Fixture,
    account_query,
    sas,
    shared_key,
    table_query,
)


@pytest.mark.parametrize("key", ACCOUNT.keys)
@pytest.mark.parametrize("query", ["", "comp=acl&timeout=3", "Comp=acl"])
async def test_shared_key_is_accepted(service: Fixture, key: bytes, query: str) -> None:
    account, grant = await service.ask(shared_key(key=key, query=query))
    assert account is ACCOUNT
    assert grant is SHARED_KEY_GRANT


async def test_shared_key_is_accepted_at_the_secondary(service: Fixture) -> None:
    account, _ = await service.ask(shared_key("/acct-secondary/T"))
    assert account is ACCOUNT


@pytest.mark.parametrize("query", [account_query(), table_query()])
async def test_unknown_account_is_not_found(service: Fixture, query: str) -> None:
    for request in (sas("", "/nobody/T"), sas(query, "/nobody/T"), sas("", "/"), shared_key("/nobody/T")):
        assert await service.code(request) == "ResourceNotFound"


async def test_missing_credentials_are_rejected(service: Fixture) -> None:
    for query in ("", "comp=acl", "sp=r&se=2030-01-01"):
        rejection = await service.rejection(sas(query))
        assert (rejection.status, rejection.code) == (401, "NoAuthenticationInformation")
        assert rejection.message == (
            "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
        )


@pytest.mark.parametrize(
    ("version", "code"),
    [
        ("2009-09-19", "ResourceNotFound"),
        ("2015-02-21", "ResourceNotFound"),
        ("2015-04-05", "NoAuthenticationInformation"),
        ("nonsense", "NoAuthenticationInformation"),
    ],
)
async def test_missing_credentials_are_rejected_by_version(service: Fixture, version: str, code: str) -> None:
    assert await service.code(Request("GET", "/acct/T", headers={"x-ms-version": version})) == code
    assert await service.code(sas(f"api-version={version}")) == code


async def test_malformed_authorization_header_is_rejected(service: Fixture) -> None:
    for header in ("", "x", "Basic YTpi", "SharedKey", "SharedKey acct", "Bearer"):
        rejection = await service.rejection(Request("GET", "/acct/T", headers={"authorization": header}))
        assert (rejection.status, rejection.code) == (400, "InvalidAuthenticationInfo")
        assert rejection.message == (
            "Authentication information is not given in the correct format. Check the value of Authorization header."
        )


async def test_wrong_shared_key_is_rejected(service: Fixture) -> None:
    message = (
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
        "including the signature."
    )
    for request in (shared_key(key=b"third"), shared_key(account="other"), shared_key("/acct/T", query="comp=x")):
        if request.query:
            request.query = "comp=y"
        rejection = await service.rejection(request)
        assert (rejection.status, rejection.code, rejection.message) == (403, "AuthenticationFailed", message)


async def test_account_of_header_must_match_the_url(service: Fixture) -> None:
    request = shared_key()
    request.headers = {**request.headers, "authorization": request.headers["authorization"].replace("acct", "other")}
    assert await service.code(request) == "AuthenticationFailed"


@pytest.mark.parametrize("direction", [-1, 1])
async def test_date_window_edges_are_accepted(direction: int) -> None:
    service = Fixture(window_seconds=60)
    service.now = NOW + direction * 60 * TICKS_PER_SECOND
    await service.ask(shared_key())
    service.now += direction
    assert await service.code(shared_key()) == "AuthenticationFailed"


async def test_missing_date_is_rejected(service: Fixture) -> None:
    request = shared_key()
    request.headers = {"authorization": request.headers["authorization"]}
    assert await service.code(request) == "AuthenticationFailed"


async def test_authorization_header_precedes_a_sas(service: Fixture) -> None:
    both = shared_key(query=account_query())
    assert (await service.ask(both))[1] is SHARED_KEY_GRANT
    both = shared_key(key=b"third", query=account_query())
    assert await service.code(both) == "AuthenticationFailed"


@pytest.mark.parametrize("which", [1, 2])
async def test_key_rotation_revokes_the_credentials_of_that_key(tmp_path: Path, which: int) -> None:
    file = AccountFile(tmp_path / "accounts.json")
    file.add("orders", Random(7).randbytes)
    directory = AccountDirectory({}, file, monotonic=count().__next__)
    service = Fixture(directory)
    before = directory.get("orders")
    assert before is not None
    tokens = [sas(make(before, key), "/orders/T") for make in (account_query, table_query) for key in (1, 2)]
    requests = [shared_key("/orders/T", key=key, account="orders") for key in before.keys]
    for request in tokens + requests:
        await service.ask(request)
    file.rotate("orders", which, Random(8).randbytes)
    for number, request in enumerate(tokens + requests):
        if number % 2 == which - 1:
            assert await service.code(request) == "AuthenticationFailed"
        else:
            account, _ = await service.ask(request)
            assert account is directory.get("orders")


async def test_errors_and_logs_contain_no_secret(service: Fixture, caplog: pytest.LogCaptureFixture) -> None:
    """Neither keys nor signatures, in no text that an exception, a repr or the log could show."""
    caplog.set_level(logging.DEBUG)
    good = parse_query_string(account_query())["sig"]
    request = shared_key()
    header_signature = request.headers["authorization"].rpartition(":")[2]
    service.now += 10_000 * TICKS_PER_SECOND
    shown = [repr(await service.rejection(request)), str(await service.rejection(request))]
    service.now = NOW
    for query in (
        account_query(ip="9.9.9.9"),
        account_query(services="b"),
        account_query() + "&sip=9.9.9.9",
        "sig=" + good,
    ):
        rejection = await service.rejection(sas(query))
        shown += [repr(rejection), str(rejection), rejection.message, repr(rejection.details)]
    shown += [repr(await service.ask(sas(account_query()))), caplog.text]
    for text in shown:
        for secret in (good, header_signature, "first", "second"):
            assert secret not in text
