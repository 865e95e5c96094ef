"""What clients know of a blob, at any moment."""

from itertools import count

from .expected import Account, Content, Facts, Keeps, Pages, PageWrite, Past, Stored, bytes_of, stored

FIRST, SECOND = Content(((1, 10),)), Content(((2, 10),))
ONE, TWO = Facts(FIRST), Facts(SECOND)


def content_of(facts: Facts) -> Stored:
    assert facts.content is not None
    return stored(facts.content)


def changed() -> Account:
    """Return an account with changes from 1 to 2, and from 3 on without a response."""
    account = Account("blob", count(1).__next__)
    account.intend(ONE)
    account.acknowledge()
    account.intend(TWO)
    return account


def test_pages_are_those_of_the_last_write() -> None:
    writes = (PageWrite(0, (1, 1024)), PageWrite(512, (0, 512)), PageWrite(512, (0, 0), resizes=True))
    assert Pages(2048, writes).read() == bytes_of(1, 1024)[:512]
    grown = Pages(2048, (*writes, PageWrite(1024, (0, 0), resizes=True)))
    assert grown.read() == bytes_of(1, 1024)[:512] + bytes(512)
    assert grown.size_now == 1024


def test_an_unanswered_change_is_there_or_not_but_the_one_before_is() -> None:
    assert changed().judge(content_of(ONE), {}) == ""
    assert changed().judge(content_of(TWO), {}) == ""
    assert changed().judge(None, {}) != ""
    assert changed().judge(Stored("BlockBlob", content_of(ONE).content[:5]), {}) != ""


def test_an_empty_blob_is_known_by_its_type() -> None:
    account = Account("blob")
    account.known = Facts(Content(()))
    account.intend(Facts(Content((), appends=True)))
    assert account.judge(Stored("AppendBlob", b""), {}) == ""
    assert account.known.content == Content((), appends=True)


def test_blocks_that_may_be_gone_are_not_known() -> None:
    """A blob was copied and back: the same bytes, with or without the blocks."""
    account = Account("blob")
    account.known = Facts(FIRST._replace(by_blocks=True))
    account.intend(ONE)
    assert account.judge(content_of(ONE), {}) == ""
    assert account.known == ONE


def test_going_back_forgets_what_came_later() -> None:
    account = changed()
    account.go_back(1)
    assert (account.known, account.after) == (Facts(), ONE)
    account.go_back(0)
    assert (account.known, account.after) == (Facts(), None)
    account = changed()
    account.go_back(2)
    assert (account.known, account.after) == (ONE, None)


def replaced(keeps: Keeps) -> Facts:
    """Return what there is after one blob was overwritten by another one, and that was deleted."""
    return ONE.replaced(SECOND, keeps).replaced(None, keeps)


def test_what_was_overwritten_or_deleted_is_kept() -> None:
    assert replaced(Keeps.NOTHING) == Facts()
    assert replaced(Keeps.VERSIONS) == Facts(kept=(Past(FIRST), Past(SECOND)))
    assert replaced(Keeps.VERSIONS).undeleted() == replaced(Keeps.VERSIONS)
    assert replaced(Keeps.DELETED).undeleted() == Facts(SECOND, kept=(Past(FIRST),))
    account = Account("blob", keeps=Keeps.DELETED)
    account.known = replaced(Keeps.DELETED)
    assert account.judge(content_of(TWO), {}) != ""
    assert account.judge(content_of(TWO), {"later": content_of(TWO)}) != ""
    assert account.judge(content_of(TWO), {"later": content_of(ONE)}) == ""


def test_what_is_deleted_is_gone_after_its_days() -> None:
    assert replaced(Keeps.DELETED).expired() == Facts()
    assert replaced(Keeps.VERSIONS).expired() == replaced(Keeps.VERSIONS)
    overwritten = ONE.replaced(SECOND, Keeps.DELETED)
    assert overwritten.expired() == TWO
    assert overwritten.undeleted().expired() == Facts(SECOND, kept=(Past(FIRST),))
    account = Account("blob", keeps=Keeps.DELETED)
    account.known = ONE
    account.intend(overwritten)
    account.expire()
    assert account.judge(content_of(TWO), {"later": content_of(ONE)}) != ""
    assert account.judge(content_of(TWO), {}) == ""


def judged(account: Account, began: int, ended: int, changes: int, blob: Stored | None) -> bool:
    return any(each.judge(blob, {}) == "" for each in account.as_of(began, ended, changes))


def test_a_copy_has_what_was_answered_before_it_and_nothing_later() -> None:
    old, one, two = None, content_of(ONE), content_of(TWO)
    assert [judged(changed(), 0, 0, 0, blob) for blob in (old, one, two)] == [True, False, False]
    assert [judged(changed(), 1, 1, 0, blob) for blob in (old, one, two)] == [True, True, False]
    assert [judged(changed(), 2, 2, 0, blob) for blob in (old, one, two)] == [False, True, False]
    assert [judged(changed(), 1, 3, 0, blob) for blob in (old, one, two)] == [True, True, True]


def test_a_copy_with_a_row_has_the_change_that_the_row_tells_of() -> None:
    assert [judged(changed(), 1, 1, 1, blob) for blob in (None, content_of(ONE))] == [False, True]
