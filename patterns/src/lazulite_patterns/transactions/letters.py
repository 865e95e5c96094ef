"""The text of a message: which task it carries on, the task's id, and what the task needs to know."""

import json
from typing import NamedTuple

TEXT_BYTES_MAX = 48 * 1024
"""The service takes 64 KiB; a client that encodes messages in Base64 has this left."""


class MessageTooLargeError(ValueError):
    """A message exceeds 48 KiB. Its data belong into an entity or a blob, a claim check into the message."""


class LetterFormatError(ValueError):
    """A message is none that a task sends."""


class Letter(NamedTuple):
    """What a message says.

    Attributes:
        task: the name of the task.
        id: of this run of it.
        body: of the task: what JSON has.
    """

    task: str
    id: str
    body: object = None

    @property
    def text(self) -> str:
        """The message.

        Raises:
            MessageTooLargeError: it exceeds 48 KiB.
        """
        text = json.dumps({"task": self.task, "id": self.id, "body": self.body}, separators=(",", ":"))
        if (size := len(text)) > TEXT_BYTES_MAX:  # The text is ASCII.
            raise MessageTooLargeError(
                f"task {self.task}: its message has {size:,} bytes, and {TEXT_BYTES_MAX:,} fit. "
                "Put larger data into an entity or a blob, and a claim check into the message: its keys"
            )
        return text

    @classmethod
    def of(cls, text: str) -> "Letter":
        """Return what a message says.

        Raises:
            LetterFormatError: it is none that a task sends.
        """
        try:
            found = json.loads(text)
            return cls(str(found["task"]), str(found["id"]), found["body"])
        except (ValueError, KeyError, TypeError) as error:
            raise LetterFormatError(f"no message of a task: {text[:100]!r}") from error
