"""The accounts of a partition: garbage is what no row refers to, and nothing else, for any history."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.ledger import Ledger, Uncommitted, new_number, read_ledger

_STEPS = st.lists(st.tuples(st.sampled_from(["new", "share", "release", "sweep"]), st.integers(0, 9)), max_size=40)


@given(_STEPS)
def test_garbage_is_what_no_row_refers_to(steps: list[tuple[str, int]]) -> None:
    ledger, counts, made, deleted = Ledger(), dict[str, int](), 0, set[str]()
    for step, choice in steps:
        live = sorted(name for name, count in counts.items() if count)
        if step == "new":
            made += 1
            counts[f"c{made}"] = 1
        elif step == "sweep":
            deleted.update(ledger.garbage)
            ledger = ledger.swept(ledger.garbage)
        elif live:
            name = live[choice % len(live)]
            counts[name] += 1 if step == "share" else -1
            ledger = ledger.share(name) if step == "share" else ledger.release(name)
        ledger = read_ledger(ledger.to_bytes())
        dead = {name for name, count in counts.items() if not count}
        assert set(ledger.garbage) | deleted == dead
        assert len(set(ledger.garbage)) == len(ledger.garbage)


def test_the_end_of_an_upload_makes_its_blocks_garbage_once() -> None:
    ledger = Ledger(upload=7).end_upload()
    assert (ledger.upload, ledger.garbage) == (0, ("w7",))
    assert ledger.end_upload() == ledger


def test_new_and_replaced_blocks_of_an_upload_are_counted() -> None:
    ledger = Ledger().put_block(7, "a", 5, is_new=True).put_block(7, "b", 6, is_new=True)
    assert (ledger.upload, ledger.uncommitted) == (7, Uncommitted(2, 0, "b", 6))
    assert ledger.put_block(7, "a", 8, is_new=False).uncommitted == Uncommitted(2, 1, "a", 8)


def test_inline_bytes_are_no_holding() -> None:
    assert Ledger().share("") == Ledger().release("") == Ledger()


def test_what_is_not_garbage_is_not_swept() -> None:
    assert Ledger(garbage=("c1", "c2")).swept(("c1",)).garbage == ("c2",)


def test_a_ledger_is_read_as_it_was_written_with_or_without_a_deleted_blob() -> None:
    for ledger in (Ledger(upload=7), Ledger(deleted=True)):
        assert read_ledger(ledger.to_bytes()) == ledger
    assert read_ledger(b'[7,{},0,[],[0,0,"",0],{}]') == Ledger(upload=7)


def test_a_partition_without_a_row_has_an_empty_ledger() -> None:
    assert read_ledger(None) == Ledger()


def test_a_number_is_never_that_of_no_list() -> None:
    class Zero(Random):
        def getrandbits(self, k: int, /) -> int:
            return 0

    assert new_number(Zero()) == 1
