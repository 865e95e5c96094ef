"""Effects on queues as calls of the SDK's clients, for both drivers. It does no I/O, and imports no SDK of queues."""

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
