"""The body of a request under ASGI: its bounds, and the memory that it takes."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import ClientDisconnectedError
from lazulite.server.admission.budgets import SMALL_BODY_BYTES, BodyBudget
from lazulite.server.asgi.body import AsgiBody, Message
from lazulite.server.limits import Limits

LARGE = SMALL_BODY_BYTES + 1
LIMITS = Limits(body_bytes=2 * LARGE)
END: Message = {"type": "http.disconnect"}


class Sender:
    """An ASGI server's `receive`, of these parts."""

    def __init__(self, *parts: bytes, whole: bool = True) -> None:
        self.messages: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        if whole and self.messages:
            self.messages[-1]["more_body"] = False
        self.asked = 0

    async def __call__(self) -> Message:
        self.asked += 1
        return self.messages.pop(0) if self.messages else END


def body_of(
    sender: Sender, budget: BodyBudget, headers: Mapping[str, str], version: str = "1.1", limits: Limits = LIMITS
) -> AsgiBody:
    body = AsgiBody(sender, limits, budget)
    body.announce(headers, version)
    return body


def length(count: int) -> dict[str, str]:
    return {"content-length": str(count)}


@pytest.mark.parametrize("announced", [str(2 * LARGE + 1), "9" * 5000])
async def test_an_announced_length_over_the_bound_is_rejected_unreceived(announced: str) -> None:
    sender = Sender(b"x")
    with pytest.raises(ServiceError, match="RequestBodyTooLarge"):
        await body_of(sender, BodyBudget(LARGE), {"content-length": announced}).read(LIMITS.body_bytes)
    assert sender.asked == 0


async def test_a_length_that_was_not_announced_is_bounded_too() -> None:
    budget = BodyBudget(10 * LARGE)
    body = body_of(Sender(bytes(LARGE), bytes(LARGE), b"x"), budget, {"transfer-encoding": "chunked"})
    with pytest.raises(ServiceError, match="RequestBodyTooLarge"):
        await body.read(LIMITS.body_bytes)
    body.release()
    assert (budget.held_bytes, body.received_bytes) == (0, 2 * LARGE + 1)


@pytest.mark.parametrize(
    ("headers", "version", "reserved"),
    [
        (length(LARGE), "1.1", LARGE),
        ({"transfer-encoding": "chunked"}, "1.1", 2 * LARGE),
        ({}, "2", 2 * LARGE),
    ],
)
async def test_room_is_reserved_before_a_large_body_is_received(
    headers: dict[str, str], version: str, reserved: int
) -> None:
    budget = BodyBudget(reserved + 1)
    budget.take(2)
    sender = Sender(bytes(LARGE))
    body = body_of(sender, budget, headers, version)
    receiving = asyncio.create_task(body.read(LIMITS.body_bytes))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (sender.asked, budget.is_crowded) == (0, True)
    budget.release(1)
    assert len(await receiving) == LARGE
    assert budget.held_bytes == 1 + LARGE, "what the body takes, not what was reserved"
    body.release()
    assert budget.held_bytes == 1


async def test_without_room_in_time_the_service_is_busy() -> None:
    budget = BodyBudget(LARGE)
    budget.take(1)
    sender = Sender(bytes(LARGE))
    body = body_of(sender, budget, length(LARGE), limits=replace(LIMITS, request_seconds=0))
    with pytest.raises(ServiceError, match="ServerBusy"):
        await body.read(LIMITS.body_bytes)
    body.release()
    assert (sender.asked, budget.held_bytes) == (0, 1)


@pytest.mark.parametrize("headers", [{}, length(SMALL_BODY_BYTES)])
async def test_a_small_body_waits_for_no_room(headers: dict[str, str]) -> None:
    budget = BodyBudget(1)
    budget.take(1)
    body = body_of(Sender(b"ab", b"c"), budget, headers)
    assert await body.read(LIMITS.body_bytes) == b"abc"
    body.release()
    assert budget.held_bytes == 1


async def test_a_client_that_leaves_gives_its_room_back() -> None:
    budget = BodyBudget(LARGE)
    body = body_of(Sender(b"ab", whole=False), budget, length(LARGE))
    with pytest.raises(ClientDisconnectedError):
        await body.read(LIMITS.body_bytes)
    body.release()
    assert budget.held_bytes == 0
