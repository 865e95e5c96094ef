"""When an entity expires: a pure function of its row and the time."""

import pytest

from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.table.expiry.definition import SECONDS_MAX, Expiry, ExpiryError, check_expiry
from lazulite.table.indexes.definition import Index, Indexes, Scope, State
from lazulite.table.model.row import assemble, encode_keys
from lazulite.table.operations.write_decisions import APPLY_ONE, REPLACE, EntityWrite, apply_one

NOON = 134_000_000_000_000_000
SECOND = TICKS_PER_SECOND


def row(members: str = "") -> bytes:
    return assemble(NOON, encode_keys("p", "r"), members)


def dated(text: str) -> bytes:
    return row(f',"Until@odata.type":"Edm.DateTime","Until":"{text}"')


def test_an_entity_expires_a_time_after_its_last_write() -> None:
    expiry = Expiry(after_seconds=60)
    assert not expiry.is_over(row(), NOON + 60 * SECOND - 1)
    assert expiry.is_over(row(), NOON + 60 * SECOND)


def test_an_entity_expires_at_the_time_that_it_has() -> None:
    expiry = Expiry(on="Until")
    assert expiry.is_over(dated("1601-01-01T00:00:01Z"), SECOND)
    assert not expiry.is_over(dated("1601-01-01T00:00:01Z"), SECOND - 1)


@pytest.mark.parametrize("members", ["", ',"Until":"1601-01-01T00:00:01Z"', ',"Until":1', ',"until":1'])
def test_an_entity_without_a_time_does_not_expire(members: str) -> None:
    assert not Expiry(on="Until").is_over(row(members), NOON)


def test_an_expiry_is_stored_with_the_indexes_and_stays_when_these_change() -> None:
    index = Index("i", ("A",), Scope.TABLE, 2000)
    for expiry in (Expiry(after_seconds=5), Expiry(on="Until")):
        indexes = Indexes().with_expiry(expiry).with_index(index).with_ready(index)
        assert (indexes.version, indexes.expiry) == (3, expiry)
        assert indexes.declared[0].state is State.READY
        assert Indexes.from_fields(indexes.fields()) == indexes
        assert indexes.without({2000}).expiry == expiry
    assert "expiry" not in indexes.with_expiry(None).fields()


def test_a_write_takes_the_expiry_to_the_process_that_has_the_store() -> None:
    write = EntityWrite(REPLACE, "p", "r", None, encode_keys("p", "r"), "")
    write.indexes = Indexes().with_expiry(Expiry(after_seconds=5))
    sent = APPLY_ONE.make(APPLY_ONE.encode(write)).argument
    assert isinstance(sent, EntityWrite)
    assert sent.indexes == write.indexes
    commit = apply_one(write)
    assert commit.preconditions is not None
    assert commit.preconditions(None) == [None], "an engine must read the row"
    assert commit.preconditions([row()]) == [None]


@pytest.mark.parametrize(
    "expiry",
    [
        Expiry(),
        Expiry(after_seconds=5, on="Until"),
        Expiry(after_seconds=-1),
        Expiry(after_seconds=SECONDS_MAX + 1),
        Expiry(on="Timestamp"),
        Expiry(on="RowKey"),
        Expiry(on="no name"),
        Expiry(on="x" * 256),
    ],
)
def test_what_cannot_be_declared_is_rejected_also_if_it_is_stored(expiry: Expiry) -> None:
    with pytest.raises(ExpiryError):
        check_expiry(expiry)
    with pytest.raises(ExpiryError):
        Expiry.from_fields({"after_seconds": expiry.after_seconds, "on": expiry.on})
