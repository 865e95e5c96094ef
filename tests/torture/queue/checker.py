"""Whether a history of a queue keeps what queues promise: each rule yields its violations, a sentence each.

The rules judge by times only where these leave no doubt: an operation takes effect between its beginning and its end;
one without a response does so before its `ended`, or never. So concurrent operations are given the benefit of any
order.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from .history import SECOND, Event, Kind, Time
from .message import Message, State, messages_of

SHORT_GETS_MAX = 400
"""So many gets that returned fewer messages than asked are held against all messages."""


class Facts:
    """A history, as the rules need it.

    Args:
        events: all, those without a response included.
        time: of the servers.
        drain: when the queue began to be emptied, at the end of the history and with all holds over; None: it was not.
    """

    def __init__(self, events: Sequence[Event], time: Time, drain: int | None) -> None:
        self.time = time
        self.drain = drain
        self.events = events
        self.messages: Mapping[int, Message] = messages_of(events, time)
        self.lost_gets = [event for event in events if event.kind is Kind.GET and event.done is None]
        self.clears = [event for event in events if event.kind is Kind.CLEAR and event.done is not False]
        self.end = max((event.ended for event in events), default=0)

    def cleared(self, message: Message, before: int) -> bool:
        """Say whether a clear that began before a moment may have removed a message."""
        return any(clear.began < before and clear.ended > message.put.began for clear in self.clears)

    def of_old_queue(self, event: Event) -> bool:
        """Say whether the process of an event that changes nothing may not have known of a clear that had ended."""
        return any(clear.began < event.ended and clear.ended + self.time.spread > event.began for clear in self.clears)

    def hidden(self, state: State, before: int, until: int | None = None) -> bool:
        """Say whether a get without a response may have claimed a message in a state.

        Args:
            state: of the message.
            before: the get began before this moment.
            until: it may hide the message beyond this time of servers; None: any claim counts.
        """
        claims = [(self.time.latest(get.ended), get.seconds) for get in self.lost_gets if get.began < before]
        return any(
            latest >= state.earliest and (until is None or latest + seconds * SECOND >= until)
            for latest, seconds in claims
        )


def check(events: Sequence[Event], time: Time, drain: int | None = None) -> list[str]:
    """Return the violations of a history, a sentence each; see `Facts`."""
    facts = Facts(events, time, drain)
    problems = []
    for message in facts.messages.values():
        if len(message.puts) != 1:
            problems.append(f"message {message.number} was delivered, and put {len(message.puts)} times")
            continue
        for rule in RULES:
            problems += [f"message {message.number}: {problem}" for problem in rule(message, facts)]
    if not problems:
        problems += [*_counts(facts), *_short_gets(facts)]
    return problems


Rule = Callable[[Message, Facts], Iterator[str]]


def _identity(message: Message, facts: Facts) -> Iterator[str]:
    """It has one id, comes after its put, not after a rejected one, and with a text that it was given."""
    put = message.put
    seen = message.seen
    if len({each.id for each in (*put.seen, *(each for _, each in seen))}) > 1:
        yield "it has two ids"
    versions = {0, *(update.version for update in message.updates if update.done is not False)}
    for event, each in seen:
        if put.done is False or event.ended < put.began:
            yield f"{event} returned it, but no put had"
        if each.version not in versions:
            yield f"{event} returned a text that it never had"
    for event, each in message.gets:
        before = message.chain(each.dequeues - 1)
        if before and not message.unsure(before) and before[-1].version != each.version:
            yield f"{event} returned version {each.version} of its text, not {before[-1].version}"


def _dequeues(message: Message, facts: Facts) -> Iterator[str]:
    """The dequeue count rises by one with each get."""
    last: Event = message.put
    counted = 0
    for event, seen in message.gets:
        between = [get for get in facts.lost_gets if get.began < event.ended and get.ended > last.began]
        if seen.dequeues == counted:
            yield f"{last} and {event} got it with the same dequeue count"
        elif event.ended < last.began:
            yield f"{event} got it before {last}, with a higher dequeue count"
        elif seen.dequeues - counted - 1 > len(between):
            yield f"{event}: its dequeue count rose by {seen.dequeues - counted}"
        last, counted = event, seen.dequeues
    for event, seen in message.peeks:
        least = max((got.dequeues for get, got in message.gets if get.ended < event.began), default=0)
        most = max((got.dequeues for get, got in message.gets if get.began < event.ended), default=0)
        most += sum(get.began < event.ended for get in facts.lost_gets)
        if not least <= seen.dequeues <= most:
            yield f"{event} returned it with dequeue count {seen.dequeues}, not {least} to {most}"


def _holds(message: Message, facts: Facts) -> Iterator[str]:
    """No get or peek returns it while it is invisible."""
    time = facts.time
    for event, seen in message.gets:
        states = message.chain(seen.dequeues - 1)
        visible = [states[-1].earliest] if states else []
        yield from _early(event, states, visible, message, time)
    for event, seen in message.peeks:
        states = message.chain(seen.dequeues)
        yield from _early(event, states, [state.earliest for state in states], message, time)


def _early(event: Event, states: list[State], visible: list[int], message: Message, time: Time) -> Iterator[str]:
    visible = visible + [time.earliest(each.began) + each.seconds * SECOND for each in message.unsure(states)]
    if visible and time.latest(event.ended) < min(visible):
        early = (min(visible) - time.latest(event.ended)) / SECOND
        yield f"{event} returned it {early:.3f} s before it was visible again after {states[-1].event}"


def _deletion(message: Message, facts: Facts) -> Iterator[str]:
    """A deleted or cleared message stays so."""
    done = [event for event in message.deletes if event.done]
    if len(done) > 1:
        yield f"it was deleted twice: {done}"
    clears = [clear for clear in facts.clears if clear.done and message.put.ended < clear.began]
    later = [event for event, _ in message.seen] + [event for event in message.updates if event.done]
    for gone in done + clears:
        for event in later:
            late = facts.time.spread if gone in clears and event.kind is Kind.PEEK else 0
            if event.began > gone.ended + late:
                yield f"{event} found it after {gone}"


def _expiry(message: Message, facts: Facts) -> Iterator[str]:
    """It is not returned when it has expired."""
    for event, _ in message.seen:
        if facts.time.earliest(event.began) >= message.has_expired(facts.time):
            yield f"{event} returned it after it had expired"


def _receipts(message: Message, facts: Facts) -> Iterator[str]:
    """The latest receipt alone updates or deletes."""
    places = {state.seen.receipt: place for place, state in enumerate(message.states)}
    used: dict[str, Event] = {}
    for event in message.changes:
        place = places.get(event.receipt)
        if place is None:
            if event.done:
                yield f"{event} succeeded with a receipt that no response had"
        elif event.done:
            newer = [state for state in message.states[place + 1 :] if state.event.ended < event.began]
            if newer:
                yield f"{event} succeeded with an old receipt, after {newer[0].event}"
            if event.receipt in used:
                yield f"{event} succeeded with the receipt of {used[event.receipt]}"
            used[event.receipt] = event
        elif event.done is False and _must_accept(message, place, event, facts):
            yield f"{event} was rejected, with the latest receipt, of {message.states[place].event}"


def _must_accept(message: Message, place: int, event: Event, facts: Facts) -> bool:
    """Say whether nothing can have made a receipt old, or its message go, before an operation with it ended."""
    state = message.states[place]
    others = [other for other in message.changes if other is not event and other.done is not False]
    return not (
        any(later.event.began < event.ended for later in message.states[place + 1 :])
        or any(other.receipt == state.seen.receipt and other.began < event.ended for other in others)
        or facts.hidden(state, event.ended)
        or facts.cleared(message, event.ended)
        or facts.time.latest(event.ended) >= message.may_expire(facts.time)
        # An update may not make it invisible for longer than it lives.
        or facts.time.latest(event.ended) + event.seconds * SECOND >= message.may_expire(facts.time)
    )


def _delivery(message: Message, facts: Facts) -> Iterator[str]:
    """In the end it is delivered, unless it was deleted, cleared or expired."""
    if facts.drain is None or not (message.put.done or message.seen):
        return
    gone = any(event.done is not False for event in message.deletes)
    expired = facts.time.latest(facts.end) >= message.may_expire(facts.time)
    found = any(event.began >= facts.drain for event, _ in message.gets)
    if not (found or gone or expired or facts.cleared(message, facts.end)):
        stated = [state.event for state in message.states] or [event for event, _ in message.peeks]
        yield f"it was lost; the last response that had it: {stated[-1]}"


RULES: tuple[Rule, ...] = (_identity, _dequeues, _holds, _deletion, _expiry, _receipts, _delivery)


def _counts(facts: Facts) -> Iterator[str]:
    """The approximate count is right, but for operations under way and expired messages."""
    for event in facts.events:
        if event.kind is Kind.COUNT and event.done and not facts.of_old_queue(event):
            least = sum(_is_there(message, event, facts) for message in facts.messages.values())
            most = sum(_may_be_there(message, event, facts) for message in facts.messages.values())
            if not least <= event.count <= most:
                yield f"{event} counted {event.count} messages, not {least} to {most}"


def _is_there(message: Message, event: Event, facts: Facts) -> bool:
    return (
        bool(message.put.done)
        and message.put.ended < event.began
        and not any(delete.done is not False and delete.began < event.ended for delete in message.deletes)
        and not facts.cleared(message, event.ended)
        and facts.time.latest(event.ended) < message.may_expire(facts.time)
    )


def _may_be_there(message: Message, event: Event, facts: Facts) -> bool:
    put = message.put
    gone = [delete for delete in message.deletes if delete.done]
    gone += [clear for clear in facts.clears if clear.done and put.ended < clear.began]
    return put.done is not False and put.began < event.ended and not any(each.ended < event.began for each in gone)


def _short_gets(facts: Facts) -> Iterator[str]:
    """A get that returns fewer messages than asked leaves none that was visible all the while."""
    gets = [each for each in facts.events if each.kind is Kind.GET and each.done]
    short = [each for each in gets if len(each.seen) < each.asked and not facts.of_old_queue(each)]
    for event in short[:: 1 + len(short) // SHORT_GETS_MAX]:
        for message in facts.messages.values():
            if _is_visible(message, event, facts):
                yield f"{event} left message {message.number}, which was visible"


def _is_visible(message: Message, event: Event, facts: Facts) -> bool:
    """Say whether a message was certainly visible, and untouched, from an event's beginning to its end."""
    states = [state for state in message.states if state.event.began < event.ended]
    if not states or states[-1].event.ended >= event.began:
        return False
    last, now = states[-1], facts.time.earliest(event.began)
    return (
        last.latest <= now
        and not any(each.done is not False and each.began < event.ended for each in message.deletes)
        and not any(each.done is None and each.began < event.ended for each in message.updates)
        and not facts.cleared(message, event.ended)
        and not facts.hidden(last, event.ended, now)
        and facts.time.latest(event.ended) < message.may_expire(facts.time)
    )
