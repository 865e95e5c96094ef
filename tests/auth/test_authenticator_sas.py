"""SAS tokens and stored policies: the grants, and each rejection of reference §15, in order."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import unquote

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.authenticator import Authenticator
from lazulite.auth.grant import Grant
from lazulite.auth.sas import ACCOUNT_SAS_PARAMETERS, parse_sas_date
from lazulite.engine.contract import KeyRange
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import resolve_version
from lazulite.records.catalog import StoredAccessPolicy
from lazulite.table.credentials import TABLE_CREDENTIALS, TABLE_SAS_PARAMETERS, TableScope

from .credentials import (
    ACCOUNT,
    EXPIRY,
    NOW,
    POLICY,
    POLICY_QUERY,
    START,
    Fixture,
    account_query,
    sas,
    table_query,
)


@pytest.mark.parametrize("key", [1, 2])
async def test_account_sas_grants_its_permissions(service: Fixture, key: int) -> None:
    account, grant = await service.ask(sas(account_query(ACCOUNT, key)))
    assert account is ACCOUNT
    assert grant == Grant("account-sas", frozenset("ru"), "so")


@pytest.mark.parametrize("key", [1, 2])
async def test_table_sas_grants_its_permissions_and_range(service: Fixture, key: int) -> None:
    query = table_query(ACCOUNT, key, start_partition="a", start_row="b", end_partition="c")
    account, grant = await service.ask(sas(query))
    assert account is ACCOUNT
    scope = TableScope("mytable", KeyRange(("a", "b"), ("c\0", "")))
    assert grant == Grant("service-sas", frozenset("ra"), scope=scope)


@pytest.mark.parametrize(("version", "hides"), [("2012-02-12", True), ("2015-02-21", True), ("2015-04-05", False)])
async def test_old_token_versions_hide_rejections(service: Fixture, version: str, hides: bool) -> None:
    _, grant = await service.ask(sas(table_query(version=version)))
    assert grant.hides_rejections is hides


def without(query: str, name: str) -> str:
    return "&".join(pair for pair in query.split("&") if not pair.startswith(f"{name}="))


@pytest.mark.parametrize("query", [account_query(), table_query()])
async def test_malformed_or_forged_token_is_rejected(service: Fixture, query: str) -> None:
    good = sas(query)
    await service.ask(good)
    for name in ("sig", "sv", "sp", "se", "st"):
        assert await service.code(sas(without(query, name))) == "AuthenticationFailed"
        for value in ("", "x", "2030-01-01T00:00:00", "%C3%A9"):
            assert await service.code(sas(f"{without(query, name)}&{name}={value}")) == "AuthenticationFailed"
    assert await service.code(sas(query.replace("sig=", "sig=A"))) == "AuthenticationFailed"
    assert await service.code(sas(query + "&sip=10.0.0.1")) == "AuthenticationFailed"
    assert await service.code(sas("sig=x")) == "AuthenticationFailed"
    assert await service.code(sas("sv=2019-02-02")) == "AuthenticationFailed"
    await service.ask(good)


@pytest.mark.parametrize("query", [account_query(), table_query()])
async def test_token_is_rejected_outside_its_time_frame(service: Fixture, query: str) -> None:
    for now in (parse_sas_date(START), parse_sas_date(EXPIRY)):
        service.now = now
        await service.ask(sas(query))
    # The same tokens, now cached: the clock is asked all the same, and may step back.
    for now in (parse_sas_date(START) - 1, parse_sas_date(EXPIRY) + 1):
        service.now = now
        assert await service.code(sas(query)) == "AuthenticationFailed"
    service.now = NOW
    await service.ask(sas(query))


@pytest.mark.parametrize("make", [account_query, table_query])
async def test_protocol_and_address_are_checked_on_each_request(service: Fixture, make: Callable[..., str]) -> None:
    query = make(protocol="https", ip="10.0.0.1-10.0.0.3")
    for _ in range(2):
        await service.ask(sas(query, scheme="https", client="::ffff:10.0.0.3"))
        rejection = await service.rejection(sas(query))
        assert (rejection.status, rejection.code) == (403, "AuthorizationProtocolMismatch")
        assert rejection.message == "This request is not authorized to perform this operation using this protocol."
        rejection = await service.rejection(sas(query, scheme="https", client="10.0.0.4"))
        assert (rejection.status, rejection.code) == (403, "AuthorizationSourceIPMismatch")
        assert rejection.message == (
            "This request is not authorized to perform this operation using this source IP 10.0.0.4."
        )


async def test_a_rejection_shows_the_string_to_sign(service: Fixture) -> None:
    for query in (account_query(), table_query()):
        rejection = await service.rejection(sas(query.replace("sig=", "sig=A")))
        [(name, detail)] = rejection.details
        assert name == "AuthenticationErrorDetail"
        assert detail.startswith("Signature did not match. String to sign used was ")
        assert ACCOUNT.name in detail
        assert unquote(query.partition("sig=")[2]) not in detail


async def test_the_rejection_of_a_malformed_token_says_why(service: Fixture) -> None:
    rejection = await service.rejection(sas(account_query().replace("ss=", "sx=") + "&ss="))
    assert rejection.details[0][1].startswith("The shared access signature is malformed: ")


async def test_checks_of_a_token_have_an_order(service: Fixture) -> None:
    """Each query fails every later check too."""
    late = "2030-01-01T00:00:00Z"
    worst = {"services": "b", "protocol": "https", "ip": "10.0.0.9", "expiry": "2029-12-31", "start": ""}
    assert await service.code(sas(account_query(**worst).replace("sig=", "sig=A"))) == "AuthenticationFailed"
    rejection = await service.rejection(sas(account_query(**worst)))
    assert rejection.code == "AuthenticationFailed"
    assert "[Mon, 31 Dec 2029 00:00:00 GMT] must be after signed start time" in rejection.details[0][1]
    worst["expiry"] = late
    assert await service.code(sas(account_query(**worst))) == "AuthorizationProtocolMismatch"
    worst["protocol"] = ""
    assert await service.code(sas(account_query(**worst))) == "AuthorizationSourceIPMismatch"
    worst["ip"] = ""
    rejection = await service.rejection(sas(account_query(**worst)))
    assert (rejection.status, rejection.code) == (403, "AuthorizationServiceMismatch")
    assert rejection.message == "This request is not authorized to perform this operation using this service."
    worst["services"] = "bt"
    await service.ask(sas(account_query(**worst)))


async def test_account_sas_is_checked_for_the_service_letter(service: Fixture) -> None:
    queue = Authenticator(
        AccountDirectory({"acct": ACCOUNT}),
        lambda: NOW,
        service._read_policies,
        replace(TABLE_CREDENTIALS, letter="q"),
    )
    request = sas(account_query(services="q"))
    parameters = parse_query_string(request.query)
    version = resolve_version(request.headers, parameters)
    grant = (await queue.authenticate(ACCOUNT, request, Addressing().locate(request), parameters, version)).grant
    assert grant.kind == "account-sas"


async def test_stored_policy_takes_effect_at_once(service: Fixture) -> None:
    request = sas(POLICY_QUERY)
    assert await service.code(request) == "AuthenticationFailed"

    service.policies["acct", "mytable"] = [StoredAccessPolicy("other"), POLICY]
    for _ in range(2):
        _, grant = await service.ask(request)
        assert grant == Grant("service-sas", frozenset("r"), scope=TableScope("mytable", KeyRange(("a", ""), None)))

    service.policies["acct", "mytable"] = [StoredAccessPolicy("ro", None, POLICY.expiry, "raud")]
    assert (await service.ask(request))[1].permissions == set("raud")

    service.policies["acct", "mytable"] = [StoredAccessPolicy("ro", None, NOW - 1, "raud")]
    assert await service.code(request) == "AuthenticationFailed"
    service.policies["acct", "mytable"] = [StoredAccessPolicy("ro", NOW + 1, NOW + 2, "raud")]
    assert await service.code(request) == "AuthenticationFailed"

    service.policies["acct", "mytable"] = [StoredAccessPolicy("renamed", None, POLICY.expiry, "r")]
    assert await service.code(request) == "AuthenticationFailed"
    service.policies["acct", "mytable"] = [POLICY]
    await service.ask(request)
    del service.policies["acct", "mytable"]
    assert await service.code(request) == "AuthenticationFailed"


async def test_token_and_stored_policy_must_complement_each_other(service: Fixture) -> None:
    service.policies["acct", "mytable"] = [POLICY]
    assert await service.code(sas(table_query(policy_id="ro"))) == "AuthenticationFailed"
    service.policies["acct", "mytable"] = [StoredAccessPolicy("ro")]
    assert await service.code(sas(POLICY_QUERY)) == "AuthenticationFailed"
    await service.ask(sas(table_query(policy_id="ro")))


async def test_token_of_another_account_is_rejected() -> None:
    service = Fixture(AccountDirectory({"acct": ACCOUNT, "other": Account("other", ACCOUNT.keys)}))
    for query in (account_query(), table_query()):
        await service.ask(sas(query))
        assert await service.code(sas(query, "/other/T")) == "AuthenticationFailed"
        await service.ask(sas(query))


@pytest.mark.parametrize("query", [account_query(), table_query()])
@pytest.mark.parametrize("name", sorted({*ACCOUNT_SAS_PARAMETERS, *TABLE_SAS_PARAMETERS}))
async def test_repeated_token_field_is_rejected(service: Fixture, query: str, name: str) -> None:
    """The token is good, and cached: neither makes up for the repetition."""
    await service.ask(sas(query))
    assert await service.code(sas(f"{query}&{name}=&{name.upper()}=")) == "AuthenticationFailed"
    await service.ask(sas(f"{query}&other=&other="))
