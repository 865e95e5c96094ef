"""Where the messages are that this process has handed out: their deletion needs no read before its commit.

An entry is a hint, as the commit decides. The oldest ones are forgotten.
"""

from collections.abc import Sequence
from uuid import UUID

from lazulite.queue.model.message import Message, Place
from lazulite.queue.model.receipt import Receipt

HELD_MAX = 8192


class HeldPlaces:
    """The places of messages by receipt."""

    def __init__(self) -> None:
        self._places: dict[tuple[UUID, Receipt], tuple[int, Place]] = {}

    def hold(self, messages: Sequence[Message]) -> None:
        """Cache messages."""
        places = self._places
        for message in messages:
            places[message.id, Receipt(message.visible, message.changes)] = message.expires, message.place
        while len(places) > HELD_MAX:
            del places[next(iter(places))]

    def take(self, message: UUID, receipt: Receipt, now: int) -> Place | None:
        """Return the place of a message that has not expired, and forget it; None if it is not known."""
        expires, place = self._places.pop((message, receipt), (0, None))
        return place if expires > now else None
