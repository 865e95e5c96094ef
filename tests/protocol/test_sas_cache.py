"""The memory of verified tokens: bounded, the used ones stay, another account object finds nothing."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.accounts import Account
from lazulite.protocol.grant import SHARED_KEY_GRANT
from lazulite.protocol.sas_cache import SasCache, VerifiedSas
from lazulite.protocol.sas_terms import parse_terms

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
    after = ENTRY._replace(account=Account("acct", (b"new",)))
    cache.put(("a",), after)
    assert cache.get(("a",), after.account) is after
    assert cache.get(("a",), ACCOUNT) is None
    assert len(cache) == 1


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
    remembered = {**cache._recent._young, **cache._recent._old}
    assert all((str(number),) in remembered for number in used[-max(1, entries_max // 2) :])
