"""Who a request is and what it may do: each refusal of reference §14.6 and §15, in order, and the SAS cache."""

import hmac
import logging
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partialmethod
from itertools import count
from pathlib import Path
from random import Random
from typing import cast
from unittest.mock import Mock

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory, AccountFile
from lazulite.auth.authenticator import Authenticator
from lazulite.auth.bearer.authentication import BearerAuthentication
from lazulite.auth.grant import SHARED_KEY_GRANT, Grant
from lazulite.auth.hmac_signer import Signer
from lazulite.auth.sas.account_sas import AccountSas, sign_account_sas
from lazulite.auth.sas.dates import parse_sas_date
from lazulite.auth.sas.terms import ACCOUNT_SAS_PARAMETERS
from lazulite.auth.shared_key import parse_http_date
from lazulite.auth.stored_policy import StoredAccessPolicy
from lazulite.engine.contract import KeyRange
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import NEWEST
from lazulite.table.canonicalize import table_string_to_sign
from lazulite.table.credentials import TABLE_CREDENTIALS
from lazulite.table.sas import TABLE_SAS_PARAMETERS, TableSas, TableScope, sign_table_sas

ACCOUNT = Account("acct", (b"first", b"second"))
DATE = "Tue, 01 Jan 2030 00:00:00 GMT"
NOW = parse_http_date(DATE)
START, EXPIRY = "2029-12-31", "2030-01-02T00:00:00Z"


class Fixture:
    """An authenticator whose clock, policies and accounts a test sets."""

    def __init__(
        self, accounts: AccountDirectory | None = None, *, window_seconds: int = 900, entries_max: int = 100
    ) -> None:
        self.now = NOW
        self.policies: dict[tuple[str, str], Sequence[StoredAccessPolicy]] = {}
        self.authenticator = Authenticator(
            accounts or AccountDirectory({"acct": ACCOUNT}),
            lambda: self.now,
            self._read_policies,
            TABLE_CREDENTIALS,
            window_seconds=window_seconds,
            cache_entries_max=entries_max,
        )

    async def _read_policies(self, account: str, table: str) -> Sequence[StoredAccessPolicy]:
        return self.policies.get((account, table), ())

    async def ask(self, request: Request) -> tuple[Account, Grant]:
        address = Addressing().locate(request)
        account = self.authenticator.account(address)
        parameters = parse_query_string(request.query)
        return account, await self.authenticator.authenticate(account, request, address, parameters)

    async def refusal(self, request: Request) -> ServiceError:
        with pytest.raises(ServiceError) as caught:
            await self.ask(request)
        assert caught.value.__cause__ is None
        return caught.value

    async def code(self, request: Request) -> str:
        return (await self.refusal(request)).code


@pytest.fixture
def service() -> Fixture:
    return Fixture()


def shared_key(path: str = "/acct/T", *, key: bytes = b"first", account: str = "acct", query: str = "") -> Request:
    request = Request("GET", path, query, headers={"x-ms-date": DATE})
    comp = parse_query_string(query).get("comp")
    text = table_string_to_sign("SharedKey", request, account, path, comp)
    signature = b64encode(hmac.digest(key, text.encode(), "sha256")).decode()
    request.headers = {"x-ms-date": DATE, "authorization": f"SharedKey {account}:{signature}"}
    return request


def sas(query: str, path: str = "/acct/T()", *, scheme: str = "http", client: str = "10.0.0.1") -> Request:
    return Request("GET", path, query, scheme=scheme, client=client)


def account_query(account: Account = ACCOUNT, key: int = 1, /, **changes: str) -> str:
    values = {"services": "t", "resource_types": "so", "permission": "ru", "expiry": EXPIRY, "start": START}
    return sign_account_sas(account, AccountSas(**(values | changes)), key)


def table_query(account: Account = ACCOUNT, key: int = 1, /, **changes: str) -> str:
    values = {"table": "MyTable", "permission": "ra", "expiry": EXPIRY, "start": START}
    return sign_table_sas(account, TableSas(**(values | changes)), key)


@pytest.mark.parametrize("key", ACCOUNT.keys)
@pytest.mark.parametrize("query", ["", "comp=acl&timeout=3", "Comp=acl"])
async def test_shared_key(service: Fixture, key: bytes, query: str) -> None:
    account, grant = await service.ask(shared_key(key=key, query=query))
    assert account is ACCOUNT
    assert grant is SHARED_KEY_GRANT


async def test_shared_key_on_the_secondary(service: Fixture) -> None:
    account, _ = await service.ask(shared_key("/acct-secondary/T"))
    assert account is ACCOUNT


@pytest.mark.parametrize("query", [account_query(), table_query()])
async def test_no_account(service: Fixture, query: str) -> None:
    for request in (sas("", "/nobody/T"), sas(query, "/nobody/T"), sas("", "/"), shared_key("/nobody/T")):
        assert await service.code(request) == "ResourceNotFound"


async def test_no_credentials(service: Fixture) -> None:
    for query in ("", "comp=acl", "sp=r&se=2030-01-01"):
        refusal = await service.refusal(sas(query))
        assert (refusal.status, refusal.code) == (401, "NoAuthenticationInformation")
        assert refusal.message == (
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
async def test_no_credentials_at_an_old_version(service: Fixture, version: str, code: str) -> None:
    assert await service.code(Request("GET", "/acct/T", headers={"x-ms-version": version})) == code
    assert await service.code(sas(f"api-version={version}")) == code


async def test_malformed_authorization(service: Fixture) -> None:
    for header in ("", "x", "Basic YTpi", "SharedKey", "SharedKey acct", "Bearer"):
        refusal = await service.refusal(Request("GET", "/acct/T", headers={"authorization": header}))
        assert (refusal.status, refusal.code) == (400, "InvalidAuthenticationInfo")
        assert refusal.message == (
            "Authentication information is not given in the correct format. Check the value of Authorization header."
        )


async def test_bearer(service: Fixture) -> None:
    refusal = await service.refusal(Request("GET", "/acct/T", headers={"authorization": "Bearer abc"}))
    assert (refusal.status, refusal.code) == (401, "InvalidAuthenticationInfo")
    assert "www-authenticate" in refusal.message


class Everybody:
    """Lets everybody in, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def challenge(self, scheme: str, version: str) -> str | None:
        return f"Bearer {version}" if scheme == "https" else None

    async def authenticate(self, token: str, scheme: str, version: str) -> Grant:
        self.asked.append((token, scheme, version))
        return Grant("bearer")


@pytest.fixture(name="bearer")
def _bearer(service: Fixture) -> Everybody:
    bearer = Everybody()
    service.authenticator._bearer = cast(BearerAuthentication, bearer)
    return bearer


@pytest.mark.parametrize("header", ["Bearer a.b.c", "bearer  a.b.c ", "BEARER a.b.c"])
async def test_bearer_with_an_issuer(service: Fixture, bearer: Everybody, header: str) -> None:
    headers = {"authorization": header, "x-ms-version": "2019-07-07"}
    _, grant = await service.ask(Request("GET", "/acct/T", table_query(), headers=headers, scheme="https"))
    assert grant.kind == "bearer"
    assert bearer.asked == [("a.b.c", "https", "2019-07-07")]


async def test_bearer_without_a_token(service: Fixture, bearer: Everybody) -> None:
    for header in ("Bearer", "Bearer "):
        await service.ask(Request("GET", "/acct/T", headers={"authorization": header, "x-ms-version": "2021-01-01"}))
    assert bearer.asked == [("", "http", "2021-01-01")] * 2


async def test_an_issuer_changes_nothing_for_the_others(service: Fixture, bearer: Everybody) -> None:
    assert (await service.ask(shared_key()))[1] is SHARED_KEY_GRANT
    assert (await service.ask(sas(table_query())))[1].kind == "service-sas"
    assert await service.code(sas("")) == "NoAuthenticationInformation"
    for header in ("Bearers x", "Bearer,x", "Basic YTpi"):
        assert (
            await service.code(Request("GET", "/acct/T", headers={"authorization": header})) != "AuthenticationFailed"
        )
    assert bearer.asked == []


async def test_the_challenge(service: Fixture) -> None:
    secure = Request("GET", "/acct/T", headers={"x-ms-version": "2021-01-01"}, scheme="https")
    assert service.authenticator.challenge(secure, {}) == "SharedKey"
    service.authenticator._bearer = cast(BearerAuthentication, Everybody())
    assert service.authenticator.challenge(secure, {}) == "Bearer 2021-01-01"
    assert service.authenticator.challenge(sas(""), {}) == "SharedKey"
    secure.headers = {}
    assert service.authenticator.challenge(secure, {}) == f"Bearer {NEWEST}"


async def test_wrong_shared_key(service: Fixture) -> None:
    message = (
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
        "including the signature."
    )
    for request in (shared_key(key=b"third"), shared_key(account="other"), shared_key("/acct/T", query="comp=x")):
        if request.query:
            request.query = "comp=y"
        refusal = await service.refusal(request)
        assert (refusal.status, refusal.code, refusal.message) == (403, "AuthenticationFailed", message)


async def test_a_header_that_names_another_account_than_the_url(service: Fixture) -> None:
    request = shared_key()
    request.headers = {**request.headers, "authorization": request.headers["authorization"].replace("acct", "other")}
    assert await service.code(request) == "AuthenticationFailed"


@pytest.mark.parametrize("direction", [-1, 1])
async def test_the_windows_edges(direction: int) -> None:
    service = Fixture(window_seconds=60)
    service.now = NOW + direction * 60 * TICKS_PER_SECOND
    await service.ask(shared_key())
    service.now += direction
    assert await service.code(shared_key()) == "AuthenticationFailed"


async def test_no_date(service: Fixture) -> None:
    request = shared_key()
    request.headers = {"authorization": request.headers["authorization"]}
    assert await service.code(request) == "AuthenticationFailed"


async def test_the_header_wins_over_a_sas(service: Fixture) -> None:
    both = shared_key(query=account_query())
    assert (await service.ask(both))[1] is SHARED_KEY_GRANT
    both = shared_key(key=b"third", query=account_query())
    assert await service.code(both) == "AuthenticationFailed"


@pytest.mark.parametrize("key", [1, 2])
async def test_account_sas(service: Fixture, key: int) -> None:
    account, grant = await service.ask(sas(account_query(ACCOUNT, key)))
    assert account is ACCOUNT
    assert grant == Grant("account-sas", frozenset("ru"), "so")


@pytest.mark.parametrize("key", [1, 2])
async def test_table_sas(service: Fixture, key: int) -> None:
    query = table_query(ACCOUNT, key, start_partition="a", start_row="b", end_partition="c")
    account, grant = await service.ask(sas(query))
    assert account is ACCOUNT
    scope = TableScope("mytable", KeyRange(("a", "b"), ("c\0", "")))
    assert grant == Grant("service-sas", frozenset("ra"), scope=scope)


@pytest.mark.parametrize(("version", "hides"), [("2012-02-12", True), ("2015-02-21", True), ("2015-04-05", False)])
async def test_old_tokens_hide_refusals(service: Fixture, version: str, hides: bool) -> None:
    _, grant = await service.ask(sas(table_query(version=version)))
    assert grant.hides_refusals is hides


def without(query: str, name: str) -> str:
    return "&".join(pair for pair in query.split("&") if not pair.startswith(f"{name}="))


@pytest.mark.parametrize("query", [account_query(), table_query()])
async def test_malformed_or_forged_tokens(service: Fixture, query: str) -> None:
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
async def test_the_time_frame(service: Fixture, query: str) -> None:
    for now in (parse_sas_date(START), parse_sas_date(EXPIRY)):
        service.now = now
        await service.ask(sas(query))
    # The same tokens, now remembered: the clock is asked all the same, and may step back.
    for now in (parse_sas_date(START) - 1, parse_sas_date(EXPIRY) + 1):
        service.now = now
        assert await service.code(sas(query)) == "AuthenticationFailed"
    service.now = NOW
    await service.ask(sas(query))


@pytest.mark.parametrize("make", [account_query, table_query])
async def test_protocol_and_address_on_each_request(service: Fixture, make: Callable[..., str]) -> None:
    query = make(protocol="https", ip="10.0.0.1-10.0.0.3")
    for _ in range(2):
        await service.ask(sas(query, scheme="https", client="::ffff:10.0.0.3"))
        refusal = await service.refusal(sas(query))
        assert (refusal.status, refusal.code) == (403, "AuthorizationProtocolMismatch")
        assert refusal.message == "This request is not authorized to perform this operation using this protocol."
        refusal = await service.refusal(sas(query, scheme="https", client="10.0.0.4"))
        assert (refusal.status, refusal.code) == (403, "AuthorizationSourceIPMismatch")
        assert refusal.message == (
            "This request is not authorized to perform this operation using this source IP 10.0.0.4."
        )


async def test_the_order_of_checks(service: Fixture) -> None:
    """Each query fails every later check too."""
    late = "2030-01-01T00:00:00Z"
    worst = {"services": "b", "protocol": "https", "ip": "10.0.0.9", "expiry": "2029-12-31", "start": ""}
    assert await service.code(sas(account_query(**worst).replace("sig=", "sig=A"))) == "AuthenticationFailed"
    refusal = await service.refusal(sas(account_query(**worst)))
    assert refusal.code == "AuthenticationFailed"
    assert "time frame" in refusal.details[0][1]
    worst["expiry"] = late
    assert await service.code(sas(account_query(**worst))) == "AuthorizationProtocolMismatch"
    worst["protocol"] = ""
    assert await service.code(sas(account_query(**worst))) == "AuthorizationSourceIPMismatch"
    worst["ip"] = ""
    refusal = await service.refusal(sas(account_query(**worst)))
    assert (refusal.status, refusal.code) == (403, "AuthorizationServiceMismatch")
    assert refusal.message == "This request is not authorized to perform this operation using this service."
    worst["services"] = "bt"
    await service.ask(sas(account_query(**worst)))


async def test_another_services_letter(service: Fixture) -> None:
    queue = Authenticator(
        AccountDirectory({"acct": ACCOUNT}),
        lambda: NOW,
        service._read_policies,
        replace(TABLE_CREDENTIALS, letter="q"),
    )
    request = sas(account_query(services="q"))
    grant = await queue.authenticate(ACCOUNT, request, Addressing().locate(request), parse_query_string(request.query))
    assert grant.kind == "account-sas"


POLICY_QUERY = table_query(permission="", expiry="", start="", policy_id="ro", start_partition="a")
POLICY = StoredAccessPolicy("ro", parse_sas_date(START), parse_sas_date(EXPIRY), "r")


async def test_a_stored_policy_takes_effect_at_once(service: Fixture) -> None:
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


async def test_a_policy_and_a_token_that_conflict_or_lack(service: Fixture) -> None:
    service.policies["acct", "mytable"] = [POLICY]
    assert await service.code(sas(table_query(policy_id="ro"))) == "AuthenticationFailed"
    service.policies["acct", "mytable"] = [StoredAccessPolicy("ro")]
    assert await service.code(sas(POLICY_QUERY)) == "AuthenticationFailed"
    await service.ask(sas(table_query(policy_id="ro")))


@pytest.mark.parametrize("which", [1, 2])
async def test_a_rotated_key_ends_its_tokens_and_only_those(tmp_path: Path, which: int) -> None:
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


async def test_a_token_of_one_account_is_nothing_to_another() -> None:
    service = Fixture(AccountDirectory({"acct": ACCOUNT, "other": Account("other", ACCOUNT.keys)}))
    for query in (account_query(), table_query()):
        await service.ask(sas(query))
        assert await service.code(sas(query, "/other/T")) == "AuthenticationFailed"
        await service.ask(sas(query))


@pytest.fixture
def signatures(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Counts the signatures that are computed."""
    counter = Mock(wraps=Signer.sign)
    monkeypatch.setattr(Signer, "sign", partialmethod(counter))
    return counter


async def test_a_signature_is_checked_once(service: Fixture, signatures: Mock) -> None:
    service.policies["acct", "mytable"] = [POLICY]
    for query in (account_query(), table_query(), POLICY_QUERY):
        signatures.reset_mock()
        await service.ask(sas(query))
        assert signatures.call_count == 2
        await service.ask(sas(f"timeout=9&{query}", "/acct/Other"))
        assert signatures.call_count == 2


async def test_a_wrong_signature_is_not_remembered(service: Fixture, signatures: Mock) -> None:
    query = account_query().replace("sig=", "sig=A")
    for number in range(3):
        await service.refusal(sas(query))
        assert signatures.call_count == 2 * number + 3
    assert len(service.authenticator._cache) == 0


async def test_the_cache_is_bounded_and_keeps_what_is_used(signatures: Mock) -> None:
    service = Fixture(entries_max=10)
    cache = service.authenticator._cache
    used, again = account_query(permission="r"), account_query(permission="a")
    for number in range(100):
        await service.ask(sas(table_query(table=f"T{number}")))
        signatures.reset_mock()
        await service.ask(sas(used))
        await service.ask(sas(f"timeout={number}&{again}"))
        assert signatures.call_count == (0 if number else 4)
        assert len(cache) <= 10
        assert len(cache._queries) <= 10


async def test_no_secret_leaves(service: Fixture, caplog: pytest.LogCaptureFixture) -> None:
    """Neither keys nor signatures, in no text that an exception, a repr or the log could show."""
    caplog.set_level(logging.DEBUG)
    good = parse_query_string(account_query())["sig"]
    request = shared_key()
    header_signature = request.headers["authorization"].rpartition(":")[2]
    service.now += 10_000 * TICKS_PER_SECOND
    shown = [repr(await service.refusal(request)), str(await service.refusal(request))]
    service.now = NOW
    for query in (
        account_query(ip="9.9.9.9"),
        account_query(services="b"),
        account_query() + "&sip=9.9.9.9",
        "sig=" + good,
    ):
        refusal = await service.refusal(sas(query))
        shown += [repr(refusal), str(refusal), refusal.message, repr(refusal.details)]
    shown += [repr(await service.ask(sas(account_query()))), caplog.text]
    for text in shown:
        for secret in (good, header_signature, "first", "second"):
            assert secret not in text


@pytest.mark.parametrize("query", [account_query(), table_query()])
@pytest.mark.parametrize("name", sorted({*ACCOUNT_SAS_PARAMETERS, *TABLE_SAS_PARAMETERS}))
async def test_a_field_that_comes_twice(service: Fixture, query: str, name: str) -> None:
    """The token is good, and remembered: neither makes up for the repetition."""
    await service.ask(sas(query))
    assert await service.code(sas(f"{query}&{name}=&{name.upper()}=")) == "AuthenticationFailed"
    await service.ask(sas(f"{query}&other=&other="))


async def test_what_the_signature_does_not_cover_makes_no_new_entry(service: Fixture) -> None:
    for number in range(20):
        await service.ask(sas(f"{table_query()}&ss={number}&srt={number}&ses={number}"))
        await service.ask(sas(f"{account_query()}&spk={number}&si={number}"))
    assert len(service.authenticator._cache) == 2


async def test_a_long_token_is_verified_but_not_remembered(service: Fixture) -> None:
    await service.ask(sas(table_query(end_partition="z" * 2000)))
    assert len(service.authenticator._cache) == 0
