"""Answers of one turn leave together, in order, and never later than that."""

import asyncio

from lazulite.server.http.write_batch import ANSWERS_MAX, SECONDS_MAX, WriteBatcher
from tests.server.wire import Clock


class Sink(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closing


async def test_what_is_posted_leaves_at_the_end_of_the_turn_in_order() -> None:
    write_batcher, one, other = WriteBatcher(Clock()), Sink(), Sink()
    write_batcher.post(one, b"1")
    write_batcher.post(other, b"2")
    write_batcher.post(one, b"3")
    assert one.written == other.written == []
    await asyncio.sleep(0)
    assert (one.written, other.written) == ([b"1", b"3"], [b"2"])
    write_batcher.post(one, b"4")
    await asyncio.sleep(0)
    assert one.written[-1] == b"4"


async def test_not_more_than_so_many_wait() -> None:
    write_batcher, sink = WriteBatcher(Clock()), Sink()
    for _ in range(ANSWERS_MAX):
        write_batcher.post(sink, b"x")
    assert len(sink.written) == ANSWERS_MAX


async def test_a_long_turn_is_not_waited_for() -> None:
    clock, sink = Clock(), Sink()
    write_batcher = WriteBatcher(clock)
    write_batcher.post(sink, b"1")
    clock.now_s += SECONDS_MAX
    write_batcher.post(sink, b"2")
    assert sink.written == [b"1", b"2"]


async def test_who_has_left_gets_nothing() -> None:
    write_batcher, sink = WriteBatcher(Clock()), Sink()
    write_batcher.post(sink, b"1")
    sink.closing = True
    await asyncio.sleep(0)
    assert sink.written == []


async def test_an_answer_that_finds_no_memory_takes_no_other_with_it() -> None:
    class Exhausted(Sink):
        aborted = False

        def write(self, data: bytes | bytearray | memoryview) -> None:
            raise MemoryError

        def abort(self) -> None:
            self.aborted = True

    write_batcher, one, other = WriteBatcher(Clock()), Exhausted(), Sink()
    write_batcher.post(one, b"1")
    write_batcher.post(other, b"2")
    write_batcher.send()
    assert one.aborted
    assert other.written == [b"2"]
