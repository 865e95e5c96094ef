"""Messages arrive whole and in order, however the stream is cut, and none after the end."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.remote.channel import FRAME_BYTES_MAX, Channel, Message

from .over_channel import join

messages = st.lists(
    st.tuples(st.integers(0, 20), st.none() | st.integers(0, 2**63) | st.text(max_size=5) | st.binary(max_size=5)),
    max_size=5,
)


class Wire(asyncio.Transport):
    """Keeps what is written, and notes whether it is read from."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reading = True
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def abort(self) -> None:
        self.aborted = True


def channel(received: list[Message], patient: bool = False) -> tuple[Channel, Wire, list[None]]:
    lost: list[None] = []
    made, wire = Channel(received.append, lambda: lost.append(None), patient=patient), Wire()
    made.connection_made(wire)
    return made, wire, lost


async def frames(turns: list[list[Message]]) -> bytes:
    sender, wire, _ = channel([])
    for turn in turns:
        for message in turn:
            sender.post(message)
        sender.send()
    return wire.written


@given(turns=st.lists(messages, max_size=4), cuts=st.lists(st.integers(0, 200), max_size=6))
def test_messages_arrive_whole_and_in_order(turns: list[list[Message]], cuts: list[int]) -> None:
    stream = asyncio.run(frames(turns))
    received: list[Message] = []
    receiver, _, _ = channel(received)
    places = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    for start, end in pairwise(places):
        receiver.data_received(stream[start:end])
    assert received == [message for turn in turns for message in turn]


async def test_many_messages_do_not_wait_for_the_end_of_the_iteration() -> None:
    sender, wire, _ = channel([])
    for number in range(63):
        sender.post((number,))
    assert wire.written == b""
    sender.post((63,))
    assert wire.written == await frames([[(number,) for number in range(64)]])


@pytest.mark.parametrize(("length", "aborted"), [(FRAME_BYTES_MAX, False), (FRAME_BYTES_MAX + 1, True)])
async def test_frames_are_bounded(length: int, aborted: bool) -> None:
    received: list[Message] = []
    receiver, wire, lost = channel(received)
    receiver.data_received(await frames([[(1,)]]) + length.to_bytes(8, "big") + b"x")
    assert (received, wire.aborted, lost) == ([(1,)], aborted, [])


async def test_nothing_arrives_after_the_end() -> None:
    received: list[Message] = []
    receiver, _, lost = channel(received)
    receiver.connection_lost(None)
    receiver.connection_lost(None)
    receiver.data_received(await frames([[(1,)]]))
    receiver.post((2,))
    assert (received, len(lost)) == ([], 1)


def test_only_a_patient_end_does_not_listen_to_who_does_not_read() -> None:
    for patient in (True, False):
        end, wire, _ = channel([], patient)
        end.pause_writing()
        assert wire.reading is not patient
        end.resume_writing()
        assert wire.reading


async def test_what_was_posted_before_the_end_arrives() -> None:
    received: list[Message] = []
    over = asyncio.Event()
    one, other = Channel(received.append, over.set), Channel(lambda _: None, lambda: None)
    await join(one, other)
    for number in range(1000):
        other.post((number, "x" * 1000))
    other.close()
    await over.wait()
    await one.closed()
    await other.closed()
    assert [message[0] for message in received] == list(range(1000))
