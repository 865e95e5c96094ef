"""The check of the kill test sees every kind of loss: each doctored store is one that a broken server could leave."""

from collections.abc import Callable

import pytest

from .ledger import TABLE, Journal, Key, Store, Stored, strays

A, B, C = (("t", "p", row) for row in "abc")
OWN: Key = ("own",)


def etag(second: int) -> str:
    return f"W/\"datetime'2024-01-01T00%3A00%3A{second:02}.5Z'\""


def known() -> Journal:
    """A journal of two acknowledged rows, `a` of them overwritten once, a deleted row `c`, and a table."""
    journal = Journal(lambda key: True)
    for second, key in enumerate((A, B, C)):
        journal.intend({key: {"N": second}})
        journal.acknowledge({key: etag(second)})
    journal.intend({A: {"N": 7}})
    journal.acknowledge({A: etag(7)})
    journal.intend({C: None})
    journal.acknowledge()
    journal.intend({OWN: {}})
    journal.acknowledge()
    return journal


STORE: Store = {A: Stored(etag(7), {"N": 7}), B: Stored(etag(1), {"N": 1}), OWN: TABLE}


def without(*keys: Key) -> dict[Key, Stored]:
    return {key: stored for key, stored in STORE.items() if key not in keys}


def test_complete_store_has_no_problems() -> None:
    assert known().problems(STORE) == []
    assert strays([known()], STORE) == []


@pytest.mark.parametrize(
    "store",
    [
        pytest.param(without(A), id="a lost row"),
        pytest.param(without(OWN), id="a lost table"),
        pytest.param(without(A, B, OWN), id="everything lost"),
        pytest.param({**STORE, A: Stored(etag(0), {"N": 0})}, id="an overwritten version came back"),
        pytest.param({**STORE, A: Stored(etag(8), {"N": 7})}, id="a new ETag on an old row"),
        pytest.param({**STORE, A: Stored(etag(7), {"N": 8})}, id="another content under the ETag"),
        pytest.param({**STORE, C: Stored(etag(2), {"N": 2})}, id="a deleted row came back"),
        pytest.param({**STORE, ("t", "p", "d"): Stored(etag(9), {})}, id="a row out of nowhere"),
    ],
)
def test_lost_row_is_found(store: Store) -> None:
    assert len(known().problems(store)) >= 1


def transaction(journal: Journal) -> None:
    journal.intend({A: None, B: {"N": 8}, C: {"N": 9}})


AFTER: Store = {B: Stored(etag(8), {"N": 8}), C: Stored(etag(8), {"N": 9}), OWN: TABLE}


@pytest.mark.parametrize("store", [STORE, AFTER], ids=["wholly absent", "wholly there"])
def test_operation_in_flight_may_have_either_outcome(store: Store) -> None:
    journal = known()
    transaction(journal)
    assert journal.problems(store) == []
    journal.settle(store)
    assert journal.acknowledged == store
    assert journal.problems(store) == []
    assert journal.problems(STORE if store is AFTER else AFTER) != []


@pytest.mark.parametrize(
    "store",
    [
        pytest.param({**AFTER, A: STORE[A]}, id="its deletion is missing"),
        pytest.param({**AFTER, B: STORE[B]}, id="its update is missing"),
        pytest.param({key: stored for key, stored in AFTER.items() if key != C}, id="its insert is missing"),
        pytest.param({**STORE, C: AFTER[C]}, id="only its insert is there"),
        pytest.param(without(A), id="only its deletion is there"),
        pytest.param({**AFTER, B: Stored(etag(7), {"N": 8})}, id="its ETag is not newer"),
        pytest.param(without(A, B), id="a row is gone that it would have replaced"),
    ],
)
def test_half_of_the_operation_in_flight_is_found(store: Store) -> None:
    journal = known()
    transaction(journal)
    assert len(journal.problems(store)) == 1


@pytest.mark.parametrize("answer", [Journal.reject, Journal.acknowledge], ids=["rejected", "acknowledged"])
def test_rejected_operation_has_no_effect(answer: Callable[[Journal], None]) -> None:
    journal = known()
    journal.intend({})
    answer(journal)
    assert journal.problems(STORE) == []
    assert journal.problems({**STORE, C: Stored(etag(9), {})}) != []


def test_an_acknowledged_etag_must_be_newer() -> None:
    journal = known()
    journal.intend({B: {"N": 8}})
    with pytest.raises(AssertionError, match="is not newer"):
        journal.acknowledge({B: etag(7)})


def test_etags_increase_after_a_crash() -> None:
    journal = known()
    journal.settle({**STORE, C: Stored(etag(20), {"N": 2})})
    journal.intend({B: {"N": 8}})
    with pytest.raises(AssertionError, match="is not newer"):
        journal.acknowledge({B: etag(19)})


def test_journals_of_one_partition_check_one_another() -> None:
    newest: dict[Key, str] = {}
    mine, other = Journal(lambda key: key == A, newest), Journal(lambda key: key == B, newest)
    mine.intend({A: {"N": 1}})
    other.intend({B: {"N": 1}})
    other.acknowledge({B: etag(2)})
    mine.acknowledge({A: etag(1)})  # They were on their way at the same time: either may be the first.
    mine.intend({A: {"N": 2}})
    with pytest.raises(AssertionError, match="is not newer"):
        mine.acknowledge({A: etag(2)})


def test_outcome_of_the_operation_in_flight_is_known() -> None:
    journal = known()
    assert journal.took_effect(STORE) is None
    transaction(journal)
    assert journal.took_effect(STORE) is False
    assert journal.took_effect(AFTER) is True


def test_row_without_a_write_is_found() -> None:
    assert strays([Journal(lambda key: key == A)], {A: STORE[A]}) == []
    assert len(strays([Journal(lambda key: key == A)], STORE)) == 2
