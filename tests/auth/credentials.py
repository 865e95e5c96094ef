"""An authenticator for tests, and requests with credentials of every kind."""

import hmac
from base64 import b64encode
from collections.abc import Sequence

import pytest

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.authenticator import Authenticator
from lazulite.auth.grant import Grant
from lazulite.auth.sas import AccountSas, parse_sas_date, sign_account_sas
from lazulite.auth.shared_key import parse_http_date
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string
from lazulite.protocol.version import resolve_version
from lazulite.records.catalog import StoredAccessPolicy
from lazulite.table.credentials import TABLE_CREDENTIALS, TableSas, sign_table_sas, table_string_to_sign

ACCOUNT = Account("acct", (b"first", b"second"))
DATE = "Tue, 01 Jan 2030 00:00:00 GMT"
NOW = parse_http_date(DATE)
START, EXPIRY = "2029-12-31", "2030-01-02T00:00:00Z"


class Fixture:
    """An authenticator; a test sets its clock, policies and accounts."""

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
        version = resolve_version(request.headers, parameters)
        credentials = await self.authenticator.authenticate(account, request, address, parameters, version)
        return account, credentials.grant

    async def rejection(self, request: Request) -> ServiceError:
        with pytest.raises(ServiceError) as caught:
            await self.ask(request)
        assert caught.value.__cause__ is None
        return caught.value

    async def code(self, request: Request) -> str:
        return (await self.rejection(request)).code


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


POLICY_QUERY = table_query(permission="", expiry="", start="", policy_id="ro", start_partition="a")
POLICY = StoredAccessPolicy("ro", parse_sas_date(START), parse_sas_date(EXPIRY), "r")
