"""Rows of messages, indexes and shards, and pop receipts: as written, and as no version of Lazulite writes them."""

import base64
from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lazulite.protocol.clock import LAST_TICK
from lazulite.queue.model.expirations import EXPIRATIONS_SPACE, slot_of
from lazulite.queue.model.message import (
    Message,
    MessageId,
    id_of,
    read_id,
    read_index,
    read_message,
    read_receipt,
    row_of_index,
    write_id,
    write_receipt,
)
from lazulite.queue.model.moves import (
    BarrierError,
    MessagesGoneError,
    Move,
    MoveMessages,
    Scheduled,
    ShardState,
    UnscheduledError,
    read_state,
)
from lazulite.queue.service import QUEUES_SPACE

TICKS = st.integers(0, LAST_TICK - 1)
COUNT = st.integers(0, 2**31 - 1)
IDS = st.integers(0, 2**128 - 1).map(id_of)
MESSAGES = st.builds(
    Message,
    id=IDS,
    inserted=TICKS,
    expires=TICKS,
    visible=TICKS,
    text=st.text(max_size=5).map(str.encode),
    dequeues=COUNT,
    changes=COUNT,
)
MESSAGE = Message(id_of(5), 1, 2, 3, b"a")


@given(MESSAGES)
def test_rows_are_read_as_written(message: Message) -> None:
    assert read_message(message.row, message.value) == message
    assert message.index_row is not None
    assert read_index(message.index_row, message.index_value) == (message.expires, message.id, message.visible)
    assert row_of_index(message.index_row, message.index_value) == message.row
    receipt = read_receipt(write_receipt(message, updated=True)).of(message.id)
    assert (receipt.visible, receipt.changes) == (message.visible, message.changes)
    assert len(write_receipt(message)) == 28


@given(st.uuids())
def test_ids_are_guids(guid: UUID) -> None:
    assert write_id(guid.hex) == str(guid)
    for text in (str(guid), str(guid).upper(), guid.hex, f"{{{guid}}}", guid.urn):
        assert read_id(text) == guid.hex
    assert id_of(guid.int) == guid.hex


@pytest.mark.parametrize("text", ["", "x", "0" * 31, "0" * 33, "00000000-0000-0000-0000-00000000000g"])
def test_other_texts_are_no_ids(text: str) -> None:
    with pytest.raises(ValueError, match=r"hexadecimal|base 16"):
        read_id(text)


@given(MESSAGES, MESSAGES)
def test_rows_are_in_the_order_of_visibility(one: Message, other: Message) -> None:
    assert (one.row < other.row) == ((one.visible, one.id) < (other.visible, other.id))


def test_a_message_that_never_expires_has_no_index() -> None:
    assert MESSAGE._replace(expires=LAST_TICK).index_row is None


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("v", MESSAGE.value),
        (MESSAGE.row + "0", MESSAGE.value),
        (MESSAGE.row.upper(), MESSAGE.value),
        ("v" + "x" * 48, MESSAGE.value),
        ("x" + MESSAGE.row[1:], MESSAGE.value),
        (MESSAGE.row, b""),
        (MESSAGE.row, b"x" + MESSAGE.value[1:]),
        (MESSAGE.row, MESSAGE.value + b"\xff"),
        (MESSAGE.index_row, b""),
        (MESSAGE.index_row, b"x" + MESSAGE.index_value[1:]),
        ("s", b""),
        ("s", b"x" + ShardState().value[1:]),
        ("s", ShardState(1, 2).value),
    ],
)
def test_damaged_rows_are_found(row: str, value: bytes) -> None:
    assert QUEUES_SPACE.catalog is not None
    with pytest.raises(ValueError):  # noqa: PT011 - each has a text of its own
        QUEUES_SPACE.catalog.verify(("00", row), value, 0)


def test_sound_rows_are_verified() -> None:
    catalog = QUEUES_SPACE.catalog
    assert catalog is not None
    rows = {MESSAGE.row: MESSAGE.value, str(MESSAGE.index_row): MESSAGE.index_value, "s": ShardState(2, 1, 1).value}
    for row, value in rows.items():
        catalog.verify(("00", row), value, 0)
        assert catalog.timestamp(value) == 0
    assert [catalog.counted(("00", row)) for row in rows] == [True, False, False]


@pytest.mark.parametrize(("row", "value"), [("0" * 33, bytes(16)), ("0" * 34, bytes(15)), ("A" * 34, bytes(16))])
def test_damaged_expirations_are_found(row: str, value: bytes) -> None:
    assert EXPIRATIONS_SPACE.verify is not None
    EXPIRATIONS_SPACE.verify(("", "0" * 34), bytes(16))
    with pytest.raises(ValueError, match="expiration"):
        EXPIRATIONS_SPACE.verify(("", row), value)


@given(MESSAGES, IDS)
def test_a_receipt_says_nothing_of_another_message(message: Message, other: MessageId) -> None:
    assume(other != message.id)
    assert read_receipt(write_receipt(message)).of(other).changes != message.changes


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "AAAA", "!" * 28, "A" * 28),
        base64.b64encode(b"\2\0\0\0\4" + bytes(15)).decode(),
        base64.b64encode(bytes(20)).decode(),
    ],
)
def test_receipts_of_another_form(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has a text of its own
        read_receipt(text)


def test_a_commit_counts_and_keeps_its_barrier() -> None:
    due = slot_of(MESSAGE.expires)
    added = MoveMessages([Move(None, MESSAGE)], 2, 2, Scheduled(due, 0))
    rows = [MESSAGE.row, MESSAGE.index_row]
    assert added.commit().rows == ["s", *rows]
    after = ShardState(2, 0, 1, due)
    changes = {MESSAGE.row: MESSAGE.value, MESSAGE.index_row: MESSAGE.index_value, "s": after.value}
    assert added.decide([None, None, None], 0) == (changes, after, ())
    removed = MoveMessages([Move(MESSAGE.place, None)], floor=9)
    state = ShardState(3, 1, 1).value
    assert removed.decide([state, MESSAGE.value, b"e"], 0).changes == {
        MESSAGE.row: None,
        MESSAGE.index_row: None,
        "s": ShardState(3, 3, 0).value,
    }
    with pytest.raises(MessagesGoneError) as gone:
        removed.decide([state, b"other", b"e"], 0)
    assert gone.value.indices == {0}
    for sweeps in (0, 1):
        moving = MoveMessages([Move(None, MESSAGE)], 0, 0, Scheduled(due + sweeps, 1 - sweeps))
        with pytest.raises(UnscheduledError) as unscheduled:
            moving.decide([None, None, None], 0)
        assert unscheduled.value.needed == (due, 0)
    with pytest.raises(BarrierError) as below:
        added.decide([ShardState(4).value, None, None], 0)
    assert below.value.barrier == 4
    assert read_state(None) == ShardState()


def test_a_claim_changes_no_state() -> None:
    claimed = MESSAGE.claimed(9)
    moving = MoveMessages([Move(MESSAGE.place, claimed)])
    changes = moving.decide([ShardState(3, 1, 1).value, MESSAGE.value, b"e", None], 0).changes
    assert changes == {MESSAGE.row: None, claimed.row: claimed.value, claimed.index_row: claimed.index_value}
    assert (claimed.dequeues, claimed.changes) == (1, 1)
    assert claimed._replace(dequeues=2**31 - 1).claimed(10).dequeues == 2**31 - 1


@given(
    st.lists(
        st.tuples(MESSAGES, st.booleans(), st.booleans(), st.booleans()), max_size=4, unique_by=lambda each: each[0].id
    ),
    st.builds(ShardState, TICKS, st.just(0), COUNT, TICKS | st.just(LAST_TICK), COUNT, TICKS),
)
def test_moves_depend_on_the_shard_and_the_beginnings_only(
    each: list[tuple[Message, bool, bool, bool]], state: ShardState
) -> None:
    """As the preconditions promise."""
    moves = [
        Move(None if is_new else message.place, message.claimed(message.visible + 1) if stays else None)
        for message, is_new, stays, _ in each
    ]
    commit = MoveMessages(moves).commit()
    assert commit.preconditions is not None
    expected = commit.preconditions(None)
    beginnings = {row: each.prefix for row, each in zip(commit.rows, expected, strict=True) if each and each.example}
    there = {message.row for message, _, _, is_there in each if is_there}
    heads = {row: head if row in there else None for row, head in beginnings.items()}
    values = {message.row: message.value for message, *_ in each}
    whole = {row: values[row] if row in there else b"another" for row in beginnings}

    def outcome(known: Mapping[str, bytes | None], other: bytes | None) -> object:
        try:
            return commit.decide([state.value, *(known.get(row, other) for row in commit.rows[1:])], 0)
        except (MessagesGoneError, BarrierError, UnscheduledError) as error:
            return type(error), error.args

    assert outcome(heads, None) == outcome(whole, b"x")
