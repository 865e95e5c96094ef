"""Effects on queues as calls of the SDK's clients, for both drivers. It does no I/O, and imports no SDK of queues."""

import copy
from contextlib import suppress
from typing import Any

from azure.core.exceptions import HttpResponseError, ResourceExistsError

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
from lazulite_patterns.effects.sdk import NO_RETRIES, Call


def call(effect: QueueEffect) -> Call:
    """Return the call that an effect is."""
    if isinstance(effect, Send):
        times = {"visibility_timeout": effect.delay_seconds, "time_to_live": effect.lifetime_seconds}
        return Call("send_message", (effect.text,), {**NO_RETRIES, **times})
    if isinstance(effect, Receive):
        options = {"messages_per_page": effect.count, "visibility_timeout": effect.visibility_seconds}
        return Call("receive_messages", (), {**NO_RETRIES, **options})
    if isinstance(effect, Extend):
        seconds = {"visibility_timeout": effect.visibility_seconds}
        return Call("update_message", (effect.message_id, effect.receipt), {**NO_RETRIES, **seconds})
    if isinstance(effect, Remove):
        return Call("delete_message", (effect.message_id, effect.receipt), {**NO_RETRIES})
    return Call("create_queue" if isinstance(effect, CreateQueue) else "get_queue_properties", (), {**NO_RETRIES})


class _Lenient:
    """A policy of decoding that leaves a message as it is if another policy cannot decode it.

    By the other policy alone, one such message makes the receiving of all fail, again at each delivery.
    """

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.configure = policy.configure

    def __call__(self, response: Any, answer: Any, headers: Any) -> Any:
        for each in getattr(answer, "items_property", answer) or []:
            with suppress(Exception):  # What a policy of the program raises for a text that is not its own.
                self._policy(response, [each], headers)
        return answer


def client_of(effect: QueueEffect, client: Any) -> Any:
    """Return the client of an effect: for `Receive` one like the given one, which foreign messages do not stop."""
    if not isinstance(effect, Receive) or (policy := getattr(client, "_message_decode_policy", None)) is None:
        return client
    lenient = copy.copy(client)
    lenient._message_decode_policy = _Lenient(policy)
    return lenient


def result(effect: QueueEffect, answer: Any) -> object:
    """Return an effect's result from the SDK's answer; for `Receive`, from the messages of one page."""
    if isinstance(effect, Send):
        return Sent(str(answer.id), str(answer.pop_receipt))
    if isinstance(effect, Extend):
        return str(answer.pop_receipt)
    if isinstance(effect, Receive):
        return tuple(Message(each.id, each.pop_receipt, each.content, each.dequeue_count) for each in answer)
    return int(answer.approximate_message_count) if isinstance(effect, Length) else None


def is_done(effect: QueueEffect, error: HttpResponseError) -> bool:
    """Tell whether an error says that what is wanted is so already."""
    return isinstance(effect, CreateQueue) and isinstance(error, ResourceExistsError)
