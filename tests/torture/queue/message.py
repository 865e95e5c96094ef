"""One message as the history tells of it: its operations, and the states that responses named.

A put, a get or an update leaves a state: a receipt, a dequeue count, a time of visibility. The states of a
message are in one order: by the dequeue count, and between two gets by the receipt that each update named.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .history import NEVER, SECOND, Event, Kind, Seen, Time


class State(NamedTuple):
    """A state of a message.

    Attributes:
        event: whose response stated it.
        seen: the message in that response.
        dequeues: how often it had been got.
        version: of the text.
        earliest: the message is not visible before, in servers' time.
        latest: it is visible from then on, in servers' time.
    """

    event: Event
    seen: Seen
    dequeues: int
    version: int
    earliest: int
    latest: int


class Message:
    """All that was asked of one message, and its states in their order."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.puts: list[Event] = []
        self.gets: list[tuple[Event, Seen]] = []
        self.peeks: list[tuple[Event, Seen]] = []
        self.updates: list[Event] = []
        self.deletes: list[Event] = []
        self.states: list[State] = []

    @property
    def put(self) -> Event:
        """The put."""
        return self.puts[0]

    @property
    def seen(self) -> list[tuple[Event, Seen]]:
        """The gets and peeks that returned it."""
        return self.gets + self.peeks

    @property
    def changes(self) -> list[Event]:
        """The updates and deletes, whatever came of them."""
        return self.updates + self.deletes

    def order(self, time: Time) -> None:
        """Find the states and their order; call it when all events are there."""
        self.gets.sort(key=lambda got: got[1].dequeues)
        following = {update.receipt: update for update in self.updates if update.done}
        issued = [(self.put, self.put.seen[0])] if self.put.seen else []
        for event, seen in [*issued, *self.gets]:
            state = _state(time, event, seen, seen.dequeues, seen.version)
            while True:
                self.states.append(state)
                update = following.pop(state.seen.receipt, None)
                if update is None:
                    break
                version = state.version if update.version < 0 else update.version
                state = _state(time, update, update.seen[0], state.dequeues, version)

    def chain(self, dequeues: int) -> list[State]:
        """Return the states of a dequeue count; none if no response stated one."""
        return [state for state in self.states if state.dequeues == dequeues]

    def unsure(self, states: Sequence[State]) -> list[Event]:
        """Return the updates without a response that may have followed these states."""
        receipts = {state.seen.receipt for state in states}
        return [update for update in self.updates if update.done is None and update.receipt in receipts]

    def may_expire(self, time: Time) -> int:
        """Return the time, of servers, before which it has not expired."""
        return NEVER if self.put.ttl == NEVER else time.earliest(self.put.began) + self.put.ttl * SECOND

    def has_expired(self, time: Time) -> int:
        """Return the time, of servers, from which on it has expired."""
        return NEVER if self.put.ttl == NEVER else time.latest(self.put.ended) + self.put.ttl * SECOND


def _state(time: Time, event: Event, seen: Seen, dequeues: int, version: int) -> State:
    invisible = event.seconds * SECOND
    earliest, latest = time.earliest(event.began) + invisible, time.latest(event.ended) + invisible
    return State(event, seen, dequeues, version, earliest, latest)


def messages_of(events: Iterable[Event], time: Time) -> Mapping[int, Message]:
    """Return the messages of a history by their numbers; messages without a put have no states."""
    messages: dict[int, Message] = {}

    def of(number: int) -> Message:
        return messages.setdefault(number, Message(number))

    for event in events:
        if event.kind is Kind.PUT:
            of(event.number).puts.append(event)
        elif event.kind is Kind.UPDATE:
            of(event.number).updates.append(event)
        elif event.kind is Kind.DELETE:
            of(event.number).deletes.append(event)
        else:
            for seen in event.seen:
                message = of(seen.number)
                (message.gets if event.kind is Kind.GET else message.peeks).append((event, seen))
    for message in messages.values():
        if message.puts:
            message.order(time)
    return messages
