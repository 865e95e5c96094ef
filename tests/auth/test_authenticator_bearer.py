"""Bearer tokens and the challenge, beside other credentials."""

from typing import cast
from unittest.mock import create_autospec

import pytest

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.authenticator import Authenticator
from lazulite.auth.bearer.authentication import BearerAuthentication
from lazulite.auth.delegation.store import DelegationStore
from lazulite.auth.grant import SHARED_KEY_GRANT, Grant
from lazulite.protocol.message import Request
from lazulite.protocol.version import DEFAULT_VERSION, NEWEST, RequestVersion
from lazulite.queue.credentials import QUEUE_CREDENTIALS

from .credentials import (
    ACCOUNT,
    NOW,
    Fixture,
    sas,
    shared_key,
    table_query,
)


async def test_bearer_token_without_an_issuer_is_rejected(service: Fixture) -> None:
    rejection = await service.rejection(Request("GET", "/acct/T", headers={"authorization": "Bearer abc"}))
    assert (rejection.status, rejection.code) == (401, "InvalidAuthenticationInfo")
    assert "www-authenticate" in rejection.message


class AcceptingBearer:
    """Accepts every token, and records its arguments."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def challenge(self, scheme: str, version: str) -> str | None:
        return f"Bearer {version}" if scheme == "https" else None

    async def authenticate(self, token: str, scheme: str, version: str, account: str) -> Grant:
        assert account == "acct"
        self.asked.append((token, scheme, version))
        return Grant("bearer")


@pytest.fixture(name="bearer")
def _bearer(service: Fixture) -> AcceptingBearer:
    bearer = AcceptingBearer()
    service.authenticator._bearer = cast(BearerAuthentication, bearer)
    return bearer


@pytest.mark.parametrize("header", ["Bearer a.b.c", "bearer  a.b.c ", "BEARER a.b.c"])
async def test_bearer_token_is_checked_by_the_issuer(service: Fixture, bearer: AcceptingBearer, header: str) -> None:
    headers = {"authorization": header, "x-ms-version": "2019-07-07"}
    _, grant = await service.ask(Request("GET", "/acct/T", table_query(), headers=headers, scheme="https"))
    assert grant.kind == "bearer"
    assert bearer.asked == [("a.b.c", "https", "2019-07-07")]


@pytest.mark.parametrize(
    ("bearer", "delegations"),
    [
        (create_autospec(BearerAuthentication, instance=True, actions=None), None),
        (None, create_autospec(DelegationStore, instance=True)),
    ],
    ids=["no store", "no issuer"],
)
async def test_delegation_needs_an_issuer_and_a_store(
    service: Fixture, bearer: BearerAuthentication | None, delegations: DelegationStore | None
) -> None:
    accounts = AccountDirectory({"acct": ACCOUNT})
    service.authenticator = Authenticator(
        accounts, lambda: NOW, service._read_policies, QUEUE_CREDENTIALS, bearer=bearer, delegations=delegations
    )
    assert await service.code(Request("GET", "/acct/q", "skoid=x&sv=2025-07-05&sig=x")) == "AuthenticationFailed"


async def test_empty_bearer_token_is_passed_to_the_issuer(service: Fixture, bearer: AcceptingBearer) -> None:
    for header in ("Bearer", "Bearer "):
        await service.ask(Request("GET", "/acct/T", headers={"authorization": header, "x-ms-version": "2021-01-01"}))
    assert bearer.asked == [("", "http", "2021-01-01")] * 2


async def test_other_credentials_are_accepted_beside_an_issuer(service: Fixture, bearer: AcceptingBearer) -> None:
    assert (await service.ask(shared_key()))[1] is SHARED_KEY_GRANT
    assert (await service.ask(sas(table_query())))[1].kind == "service-sas"
    assert await service.code(sas("")) == "NoAuthenticationInformation"
    for header in ("Bearers x", "Bearer,x", "Basic YTpi"):
        assert (
            await service.code(Request("GET", "/acct/T", headers={"authorization": header})) != "AuthenticationFailed"
        )
    assert bearer.asked == []


async def test_challenge_by_scheme_and_version(service: Fixture) -> None:
    challenge, stated = service.authenticator.challenge, RequestVersion("2021-01-01", "2021-01-01")
    assert challenge("https", stated) == "SharedKey"
    service.authenticator._bearer = cast(BearerAuthentication, AcceptingBearer())
    assert challenge("https", stated) == "Bearer 2021-01-01"
    assert challenge("http", stated) == "SharedKey"
    assert challenge("https", RequestVersion("", DEFAULT_VERSION)) == f"Bearer {NEWEST}"
