"""The memory of verified tokens: bounded, the used ones stay, another account object finds nothing."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lazulite.auth.accounts.account import Account
from lazulite.auth.grant import SHARED_KEY_GRANT
from lazulite.auth.sas import VALUES_LENGTH_MAX, SasCache, VerifiedSas, parse_terms

ACCOUNT = Account("acct", (b"key",))
ENTRY = VerifiedSas(ACCOUNT, parse_terms("", "2030-01-01", "", ""), SHARED_KEY_GRANT, True, None)


def test_the_same_account_object_is_wanted() -> None:
    cache = SasCache(4)
    cache.put(("a", None), ENTRY)
    assert cache.get(("a", None), ACCOUNT) is ENTRY
    assert cache.get(("a", None), Account(ACCOUNT.name, ACCOUNT.keys)) is None
    assert cache.get(("b", None), ACCOUNT) is None


def test_a_new_account_object_takes_the_entry_over() -> None:
    cache = SasCache(4)
    cache.put(("a",), ENTRY)
    after = replace(ENTRY, account=Account("acct", (b"new",)))
    cache.put(("a",), after)
    assert cache.get(("a",), after.account) is after
    assert cache.get(("a",), ACCOUNT) is None
    assert len(cache) == 1


def test_a_query_that_comes_again_finds_its_token_for_the_same_account_object() -> None:
    cache = SasCache(4)
    cache.note("sv=a", ENTRY)
    assert cache.repeated("sv=a", ACCOUNT) is ENTRY
    assert cache.repeated("sv=b", ACCOUNT) is None
    assert cache.repeated("sv=a", Account(ACCOUNT.name, ACCOUNT.keys)) is None


def test_queries_are_bounded_in_number_and_length() -> None:
    cache = SasCache(4)
    for number in range(20):
        cache.note(str(number), ENTRY)
        assert len(cache._queries) <= 4
        assert cache.repeated(str(number), ACCOUNT) is ENTRY
    long = "a" * (VALUES_LENGTH_MAX + 1)
    cache.note(long, ENTRY)
    assert cache.repeated(long, ACCOUNT) is None


@given(st.integers(1, 12), st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=80))
def test_it_is_bounded_and_the_last_used_half_is_there(entries_max: int, steps: list[tuple[bool, int]]) -> None:
    cache = SasCache(entries_max)
    used: list[int] = []
    for put, number in steps:
        if put:
            cache.put((str(number),), ENTRY)
        elif cache.get((str(number),), ACCOUNT) is None:
            continue
        used = [other for other in used if other != number] + [number]
        assert len(cache) <= max(2, entries_max)
    cached = {**cache._recent._young, **cache._recent._old}
    assert all((str(number),) in cached for number in used[-max(1, entries_max // 2) :])
