"""Bodies that suffer from faults: where they are cut, and how slowly they come."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.protocol.fault import DELIVERY, Break, Effect, Fault
from lazulite.protocol.joined_content import JoinedContent
from lazulite.protocol.message import ClientDisconnectedError
from lazulite.server.http.faulty_content import Delivery, Ending, FaultyContent, delivery_of


async def sent(delivery: Delivery, *windows: bytes) -> tuple[bytes, bool, float]:
    """Return what is sent of a body, whether the connection ends, and the seconds that it takes."""
    slept = []

    async def end() -> None:
        raise ClientDisconnectedError

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    content = FaultyContent(JoinedContent(list(windows)), delivery, end, sleep)
    pieces = b""
    try:
        async for piece in content.chunks():
            pieces += piece
    except ClientDisconnectedError:
        return pieces, True, sum(slept)
    finally:
        await content.aclose()
    return pieces, False, sum(slept)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5), st.floats(0, 1))
async def test_a_truncated_body_is_a_part_that_is_never_the_whole(windows: list[bytes], part: float) -> None:
    whole = b"".join(windows)
    pieces, is_ended, seconds = await sent(Delivery(Ending.CLOSED, part=part), *windows)
    assert pieces == whole[: max(0, min(len(whole) - 1, int(len(whole) * part)))]
    assert (is_ended, seconds) == (True, 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5), st.floats(1, 100))
async def test_a_slow_body_is_whole_and_takes_its_time(windows: list[bytes], rate: float) -> None:
    whole = b"".join(windows)
    pieces, is_ended, seconds = await sent(Delivery(bytes_per_second=rate), *windows)
    assert (pieces, is_ended) == (whole, False)
    assert seconds == pytest.approx(len(whole) / rate)


@pytest.mark.parametrize(
    ("at", "is_begun", "count"),
    [
        (Break.REQUEST, False, 0),
        (Break.ANSWER, False, 0),
        (Break.HEAD, True, 0),
        (Break.MIDDLE, True, 5),
        (Break.END, True, 10),
    ],
)
async def test_a_reset_comes_at_its_place(at: Break, is_begun: bool, count: int) -> None:
    delivery = delivery_of(Fault("r", Effect.RESET, at.value))
    assert (delivery.ending, delivery.has_head) == (Ending.RESET, is_begun)
    pieces, is_ended, _ = await sent(delivery, b"0123", b"456789")
    assert (pieces, is_ended) == (b"0123456789"[:count] if is_begun else pieces, True)


def test_each_effect_of_the_connection_has_a_delivery() -> None:
    values: dict[Effect, float | str] = {Effect.RESET: "end", Effect.TRUNCATE: 0.5, Effect.SLOW: 10.0}
    assert {effect: delivery_of(Fault("r", effect, values[effect])) for effect in DELIVERY} == {
        Effect.RESET: Delivery(Ending.RESET),
        Effect.TRUNCATE: Delivery(Ending.CLOSED, part=0.5),
        Effect.SLOW: Delivery(bytes_per_second=10.0),
    }
