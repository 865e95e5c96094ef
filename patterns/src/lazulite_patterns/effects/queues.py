"""Effects on queues. `queue` is the name by which the driver knows a client."""

from dataclasses import dataclass
from typing import NamedTuple

from lazulite_patterns.effects.effect import Effect

FOREVER_SECONDS = -1
"""The lifetime of a message that never expires, as the service writes it."""


class Message(NamedTuple):
    """A message as it was received.

    Attributes:
        id: the same at each delivery.
        receipt: of this delivery. The next delivery or `Extend` makes it invalid.
        text: what was sent.
        dequeue_count: deliveries so far, this one included.
    """

    id: str
    receipt: str
    text: str
    dequeue_count: int


class Sent(NamedTuple):
    """A message that was added, with a receipt by which its sender can remove it before a worker receives it."""

    id: str
    receipt: str


@dataclass(frozen=True)
class Send(Effect[Sent]):
    """Add a message. A request that is sent again adds another message."""

    queue: str
    text: str
    delay_seconds: int = 0
    """The time for which no worker receives it."""
    lifetime_seconds: int = FOREVER_SECONDS


@dataclass(frozen=True)
class Receive(Effect[tuple[Message, ...]]):
    """Take messages, which no other worker receives for a time. There may be none."""

    queue: str
    visibility_seconds: int
    count: int = 1
    """The most to take: 32, by the service's limit."""


@dataclass(frozen=True)
class Extend(Effect[str]):
    """Hide a message that was received for a time from now. The result is its new receipt."""

    queue: str
    message_id: str
    receipt: str
    visibility_seconds: int


@dataclass(frozen=True)
class Remove(Effect[None]):
    """Delete a message that was received. `Rejected` with 404 or 400 if another worker received it since."""

    queue: str
    message_id: str
    receipt: str


@dataclass(frozen=True)
class CreateQueue(Effect[None]):
    """Create a queue; one that is there is fine."""

    queue: str


@dataclass(frozen=True)
class Length(Effect[int]):
    """Count the messages of a queue, hidden ones too. There are not more of them."""

    queue: str


QueueEffect = Send | Receive | Extend | Remove | CreateQueue | Length
