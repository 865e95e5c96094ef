"""The cache of verified SAS tokens."""

from functools import partialmethod
from unittest.mock import Mock

import pytest

from lazulite.auth.accounts.account import Signer

from .credentials import (
    POLICY,
    POLICY_QUERY,
    Fixture,
    account_query,
    sas,
    table_query,
)


@pytest.fixture
def signatures(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Counts the signatures that are computed."""
    counter = Mock(wraps=Signer.sign)
    monkeypatch.setattr(Signer, "sign", partialmethod(counter))
    return counter


async def test_cached_signature_is_not_computed_again(service: Fixture, signatures: Mock) -> None:
    service.policies["acct", "mytable"] = [POLICY]
    for query in (account_query(), table_query(), POLICY_QUERY):
        signatures.reset_mock()
        await service.ask(sas(query))
        assert signatures.call_count == 2
        await service.ask(sas(f"timeout=9&{query}", "/acct/Other"))
        assert signatures.call_count == 2


async def test_wrong_signature_is_not_cached(service: Fixture, signatures: Mock) -> None:
    query = account_query().replace("sig=", "sig=A")
    for number in range(3):
        await service.rejection(sas(query))
        assert signatures.call_count == 2 * number + 3
    assert len(service.authenticator._cache) == 0


async def test_cache_is_bounded_and_evicts_least_recently_used(signatures: Mock) -> None:
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


async def test_unsigned_parameters_add_no_cache_entry(service: Fixture) -> None:
    for number in range(20):
        await service.ask(sas(f"{table_query()}&ss={number}&srt={number}&ses={number}"))
        await service.ask(sas(f"{account_query()}&spk={number}&si={number}"))
    assert len(service.authenticator._cache) == 2


async def test_long_token_is_verified_and_not_cached(service: Fixture) -> None:
    await service.ask(sas(table_query(end_partition="z" * 2000)))
    assert len(service.authenticator._cache) == 0
