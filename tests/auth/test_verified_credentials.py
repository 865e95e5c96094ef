"""Verified credentials: what each further request has to present. The authenticator agrees in every case."""

from email.utils import formatdate

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.authenticator import Authenticator, VerifiedCredentials
from lazulite.auth.sas import AccountSas, parse_sas_date, sign_account_sas
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import TICKS_PER_SECOND, unix_seconds
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import resolve_version
from lazulite.table.credentials import TABLE_CREDENTIALS, table_string_to_sign

ACCOUNT = Account("acct", (b"first", b"second"))
START, EXPIRY = "2030-01-01T00:00:00Z", "2030-01-03T00:00:00Z"
NOW = parse_sas_date("2030-01-02T00:00:00Z")
PATH = "/acct/orders(PartitionKey='p',RowKey='r')"


async def _no_policies(_: str, __: str) -> tuple[()]:
    return ()


class Clock:
    now = NOW

    def __call__(self) -> int:
        return self.now


def _authenticator(clock: Clock) -> Authenticator:
    return Authenticator(AccountDirectory({"acct": ACCOUNT}), clock, _no_policies, TABLE_CREDENTIALS)


async def _authenticate(authenticator: Authenticator, request: Request) -> VerifiedCredentials:
    parameters = parse_query_string(request.query)
    address = Addressing().locate(request)
    version = resolve_version(request.headers, parameters)
    return await authenticator.authenticate(ACCOUNT, request, address, parameters, version)


def holds(credentials: VerifiedCredentials, request: Request, now: int = NOW) -> bool:
    try:
        credentials.check(request, now)
    except ServiceError:
        return False
    return True


def by_sas(**values: str) -> Request:
    token = {"services": "t", "resource_types": "o", "permission": "r", "start": START, "expiry": EXPIRY}
    return Request("GET", PATH, sign_account_sas(ACCOUNT, AccountSas(**{**token, **values})), client="192.0.2.1")


def by_key(path: str = PATH, key: int = 0, now: int = NOW, scheme: str = "SharedKey") -> Request:
    date = formatdate(unix_seconds(now), usegmt=True)
    request = Request("GET", path, "", {"host": "h", "x-ms-date": date})
    text = table_string_to_sign(scheme, request, "acct", path, None)
    signature = ACCOUNT.signers[key].sign(text.encode()).decode()
    request.headers = {**request.headers, "authorization": f"{scheme} acct:{signature}"}
    return request


@pytest.mark.parametrize("days", [-2, -1, 0, 1, 2])
async def test_a_token_holds_in_its_time(days: int) -> None:
    clock = Clock()
    authenticator = _authenticator(clock)
    cached = await _authenticate(authenticator, by_sas())
    assert cached.lasts
    clock.now = NOW + days * 86_400 * TICKS_PER_SECOND
    assert holds(cached, by_sas(), clock.now) is (abs(days) < 2)
    clock.now += TICKS_PER_SECOND if days > 0 else -TICKS_PER_SECOND
    assert holds(cached, by_sas(), clock.now) is (abs(days) < 1)


async def test_a_token_does_not_hold_beside_an_authorization() -> None:
    cached = await _authenticate(_authenticator(Clock()), by_sas())
    assert cached.lasts
    request = by_sas()
    request.headers = {"authorization": "SharedKey acct:AAAA"}
    assert not holds(cached, request)


async def test_a_token_of_some_addresses_holds_for_these() -> None:
    cached = await _authenticate(_authenticator(Clock()), by_sas(ip="192.0.2.1"))
    assert cached.lasts
    request = by_sas(ip="192.0.2.1")
    assert holds(cached, request)
    request.client = "192.0.2.2"
    assert not holds(cached, request)


@pytest.mark.parametrize("scheme", ["SharedKey", "SharedKeyLite"])
async def test_each_request_is_signed_by_a_key_of_the_account(scheme: str) -> None:
    authenticator = _authenticator(Clock())
    cached = await _authenticate(authenticator, by_key(scheme=scheme))
    assert cached.lasts
    other = "/acct/orders(PartitionKey='p',RowKey='s')"
    for request in (by_key(scheme=scheme), by_key(other, scheme=scheme), by_key(other, 1, scheme=scheme)):
        assert holds(cached, request)
        await _authenticate(authenticator, request)
    stolen = by_key(scheme=scheme)
    stolen.path = other
    for request in (stolen, by_key(scheme=scheme, now=NOW - 901 * TICKS_PER_SECOND)):
        assert not holds(cached, request)
        with pytest.raises(ServiceError):
            await _authenticate(authenticator, request)


@pytest.mark.parametrize(
    "header", ["", "SharedKey", "SharedKey acct:", "SharedKey acct:A A", "SharedKey acct:é", "Bearer x"]
)
async def test_any_other_header_does_not_hold(header: str) -> None:
    cached = await _authenticate(_authenticator(Clock()), by_key())
    assert cached.lasts
    request = by_key()
    request.headers = {**request.headers, "authorization": header}
    assert not holds(cached, request)
    request.headers = {"host": "h"}
    assert not holds(cached, request)


async def test_a_path_beyond_latin_1_does_not_hold() -> None:
    cached = await _authenticate(_authenticator(Clock()), by_key())
    assert cached.lasts
    request = by_key()
    request.path += "\u0100"
    assert not holds(cached, request)


async def test_another_spelling_of_the_path_does_not_hold() -> None:
    """The authenticator tries the spellings that clients sign; credentials that last only the one that was sent."""
    authenticator = _authenticator(Clock())
    cached = await _authenticate(authenticator, by_key())
    assert cached.lasts
    signed = by_key()
    signed.path = PATH.replace("'", "%27")
    assert not (await _authenticate(authenticator, signed)).lasts
    assert not holds(cached, signed)
