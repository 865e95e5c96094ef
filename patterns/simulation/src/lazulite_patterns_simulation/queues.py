"""A queue in memory, as a value. The service's rules, as far as protocols see them."""

from typing import NamedTuple

from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.queues import (
    CreateQueue,
    Extend,
    Length,
    Message,
    QueueEffect,
    Receive,
    Remove,
    Send,
    Sent,
)

_ABSENT = (404, "MessageNotFound")


class _Held(NamedTuple):
    """A message in its queue. The count of its receipts makes the latest one valid."""

    id: str
    text: str
    visible_at: float
    expires_at: float
    receipts: int = 0
    dequeue_count: int = 0

    @property
    def receipt(self) -> str:
        return f"{self.id}.{self.receipts}"


class Queue(NamedTuple):
    """Messages in the order in which they were sent, and how many there were."""

    sent: int = 0
    messages: tuple[_Held, ...] = ()

    def perform(self, effect: QueueEffect, now_seconds: float) -> tuple["Queue", object]:
        """Return the queue after an effect, and the effect's result.

        Raises:
            Rejected: as the service does.
        """
        if isinstance(effect, CreateQueue | Length):
            return self, len(self._alive(now_seconds)) if isinstance(effect, Length) else None
        if isinstance(effect, Send):
            return self._with(effect, now_seconds)
        if isinstance(effect, Receive):
            return self._received(effect, now_seconds)
        held = next((each for each in self._alive(now_seconds) if each.id == effect.message_id), None)
        if held is None or effect.receipt != held.receipt:
            raise Rejected(*_ABSENT)
        if isinstance(effect, Extend):
            later = held._replace(visible_at=now_seconds + effect.visibility_seconds, receipts=held.receipts + 1)
            return self._changed({held.id: later}), later.receipt
        assert isinstance(effect, Remove)
        return self._replace(messages=tuple(each for each in self.messages if each is not held)), None

    def _alive(self, now: float) -> tuple[_Held, ...]:
        return tuple(each for each in self.messages if now <= each.expires_at)

    def _with(self, effect: Send, now: float) -> tuple["Queue", Sent]:
        lasting = float("inf") if effect.lifetime_seconds < 0 else now + effect.lifetime_seconds
        held = _Held(f"m{self.sent}", effect.text, now + effect.delay_seconds, lasting)
        return Queue(self.sent + 1, (*self.messages, held)), Sent(held.id, held.receipt)

    def _received(self, effect: Receive, now: float) -> tuple["Queue", tuple[Message, ...]]:
        visible = [each for each in self._alive(now) if each.visible_at <= now][: effect.count]
        until = now + effect.visibility_seconds
        taken = {
            each.id: each._replace(visible_at=until, receipts=each.receipts + 1, dequeue_count=each.dequeue_count + 1)
            for each in visible
        }
        answer = tuple(Message(each.id, each.receipt, each.text, each.dequeue_count) for each in taken.values())
        return self._replace(messages=self._alive(now))._changed(taken), answer

    def _changed(self, changed: dict[str, _Held]) -> "Queue":
        return self._replace(messages=tuple(changed.get(each.id, each) for each in self.messages))
