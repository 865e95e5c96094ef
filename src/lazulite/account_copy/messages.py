"""The messages of the source of a copy: by Get, or as the server of this machine tells them all.

Get hides messages from other programs for a time and counts a dequeue. It sees none that is hidden, and tells the
texts and the times of expiration alone. `KeptMessages` changes nothing, and tells the times of visibility, too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from lazulite.resources import queues
from lazulite.resources.queues import Message
from lazulite.resources.sender import Sender

HIDDEN_SECONDS = 3600
"""How long Get hides the messages of the source."""
_NEVER_SECONDS = 1000 * 365 * 86400
"""A message that lives longer never expires."""


class MessagesByGet:
    """Yields messages by Get. Implements `MessageSource`.

    Args:
        sender: of the source.
    """

    repeats = False
    """Whether a second reading tells the same messages."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def __call__(self, queue: str) -> Iterator[Message]:
        """See `MessageSource`."""
        while received := queues.get_messages(self._sender, queue, HIDDEN_SECONDS):
            for message in received:
                lives = -1 if message.lives_seconds > _NEVER_SECONDS else message.lives_seconds
                yield Message(message.text, 0, lives)


Items: TypeAlias = Callable[[str], Iterable[Mapping[str, Any]]]
"""Returns what a server tells about the messages of a queue, given its name; see `app.commands.QUEUE_MESSAGES`."""


class KeptMessages:
    """Yields messages that a server tells by its control channel. Implements `MessageSource`.

    Args:
        items: returns the items of the command for a queue.
    """

    repeats = True
    """Whether a second reading tells the same messages."""

    def __init__(self, items: Items) -> None:
        self._items = items

    def __call__(self, queue: str) -> Iterator[Message]:
        """See `MessageSource`."""
        for item in self._items(queue):
            yield Message(item["text"], item["hidden_seconds"], item["lives_seconds"])
