"""States of a blob that are kept keep their bytes; the bytes of others are released: for any history of writes."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.blob import Blob, BlobType, read_blob
from lazulite.blob.model.ledger import read_ledger
from lazulite.blob.model.retention import Retention, delete_current, replace_blob
from lazulite.blob.model.rows import CURRENT, LEDGER
from lazulite.blob.model.transaction import MissingRowError, Transaction
from lazulite.protocol.clock import TICKS_PER_DAY

_RETENTIONS = st.builds(Retention, st.booleans(), st.integers(0, 2))


def commit(rows: dict[str, bytes], now: int, successor: Blob | None, retention: Retention) -> Mapping[str, bytes]:
    named = [LEDGER, CURRENT]
    while True:
        transaction = Transaction(named, [rows.get(row) for row in named], now, now)
        try:
            if successor is None:
                delete_current(transaction, retention)
            else:
                replace_blob(transaction, successor._replace(modified=transaction.modified), retention)
        except MissingRowError as needed:
            named.append(needed.row)
            continue
        merged = {**rows, **transaction.changes()}
        return {row: value for row, value in merged.items() if value is not None}


def blobs(rows: Mapping[str, bytes]) -> dict[str, Blob]:
    return {row: read_blob(value) for row, value in rows.items() if row != LEDGER}


@given(st.lists(st.tuples(st.booleans(), _RETENTIONS), max_size=8))
def test_each_content_is_referred_to_or_garbage(writes: list[tuple[bool, Retention]]) -> None:
    rows: dict[str, bytes] = {}
    made: set[str] = set()
    for now, (deletes, retention) in enumerate(writes, 1):
        current = blobs(rows).get(CURRENT)
        if deletes and (current is None or current.deleted):
            continue
        before, live = blobs(rows), set[str]()
        successor = None if deletes else Blob(type=BlobType.BLOCK, modified=now, created=now, content=now)
        made |= set() if successor is None else {successor.reference}
        rows = dict(commit(rows, now, successor, retention))
        after = blobs(rows)
        left = after.get(CURRENT)
        assert read_ledger(rows.get(LEDGER)).deleted == (left is not None and bool(left.deleted))
        live = {blob.reference for blob in after.values()}
        garbage = set(Transaction([LEDGER, CURRENT], [rows.get(LEDGER), None], 0, 0).ledger.garbage)
        assert live | garbage == made
        assert not live & garbage
        if current is not None and not current.deleted and (retention.versioning or retention.days):
            assert current.reference in live, "what is kept keeps its bytes"
        assert before.keys() <= after.keys() | {CURRENT}, "nothing that was kept before goes"


def test_a_deleted_blob_stays_for_its_days() -> None:
    blob = Blob(type=BlobType.BLOCK, modified=1, created=1, inline=b"x")
    rows = commit({CURRENT: blob.to_bytes()}, 10, None, Retention(days=2))
    assert blobs(rows)[CURRENT] == blob._replace(deleted=10, expires=10 + 2 * TICKS_PER_DAY)


def test_a_version_has_the_time_of_its_last_change() -> None:
    blob = Blob(type=BlobType.BLOCK, modified=1, created=1, inline=b"x")
    first = commit({CURRENT: blob.to_bytes()}, 10, blob._replace(inline=b"y"), Retention(versioning=True))
    second = commit(dict(first), 20, None, Retention(versioning=True))
    assert {row: (found.inline, found.version) for row, found in blobs(second).items()} == {
        "v0000000000000001": (b"x", 1),
        "v000000000000000a": (b"y", 10),
    }
