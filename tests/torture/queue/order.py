"""How roughly a queue is first in, first out."""

from collections.abc import Sequence
from typing import NamedTuple

from .history import Event, Kind, Time
from .message import Message, messages_of

SAMPLE_MAX = 400


class Order(NamedTuple):
    """Of the messages that were looked at, how many were overtaken, and by how many at most.

    A message overtakes another if it was put later and was first delivered earlier, both beyond doubt.
    """

    messages: int
    overtaken: int
    by: int


def order_of(events: Sequence[Event]) -> Order:
    """Measure a history, leaving out messages that were put with a delay."""
    messages = [each for each in messages_of(events, Time()).values() if len(each.puts) == 1]
    first = [(each.put, each.gets[0][0]) for each in messages if _plain(each)]
    sample = first[:: 1 + len(first) // SAMPLE_MAX]
    overtakers = [
        sum(put.ended < other.began and early.ended < get.began for other, early in first) for put, get in sample
    ]
    return Order(len(sample), sum(count > 0 for count in overtakers), max(overtakers, default=0))


def _plain(message: Message) -> bool:
    put = message.put
    return put.kind is Kind.PUT and bool(put.done) and put.seconds == 0 and bool(message.gets)
