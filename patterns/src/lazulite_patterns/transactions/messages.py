"""The text of a message: which task it is of, the task's id, and what the task needs to know."""

import json
from typing import NamedTuple

from lazulite_patterns.errors import PatternsError

TEXT_BYTES_MAX = 48 * 1024
"""The service takes 64 KiB; a client that encodes messages in Base64 has this left."""


CLAIM_BYTES_MAX = 64 * 1024 * 1024
"""The most bytes of a message in a blob: what the SDK uploads by one request."""


class MessageTooLargeError(PatternsError, ValueError):
    """A message exceeds 48 KiB, and there is no container for it; or it exceeds 64 MiB."""


class MessageFormatError(PatternsError, ValueError):
    """A message is none that a task sends."""


class Claim(NamedTuple):
    """A claim check: the blob that has a message."""

    name: str
    length: int
    """In bytes."""


class TaskMessage(NamedTuple):
    """What a message says.

    Attributes:
        task: the name of the task.
        id: of this run of it.
        body: of the task: what JSON has.
        claim: the blob that has the message with its body; None if this is it.
    """

    task: str
    id: str
    body: object = None
    claim: Claim | None = None

    @property
    def json(self) -> str:
        """The message in ASCII, of any length."""
        rest = {"body": self.body} if self.claim is None else {"claim": self.claim}
        return json.dumps({"task": self.task, "id": self.id, **rest}, separators=(",", ":"))

    @property
    def text(self) -> str:
        """The message, as a queue takes it.

        Raises:
            MessageTooLargeError: it exceeds 48 KiB.
        """
        text = self.json
        if (size := len(text)) > TEXT_BYTES_MAX:
            raise MessageTooLargeError(
                f"task {self.task}: its message has {size:,} bytes, and {TEXT_BYTES_MAX:,} fit. "
                "Give `Tasks` a container for claim checks, or put the data into an entity"
            )
        return text

    @classmethod
    def of(cls, text: str) -> "TaskMessage":
        """Return what a message says.

        Raises:
            MessageFormatError: it is none that a task sends.
        """
        try:
            found = json.loads(text)
            task, message_id = str(found["task"]), str(found["id"])
            if "claim" not in found:
                return cls(task, message_id, found["body"])
            name, length = found["claim"]
            return cls(task, message_id, claim=Claim(str(name), int(length)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise MessageFormatError(f"no message of a task: {text[:100]!r}") from error
