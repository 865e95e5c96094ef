"""Claim checks: a message that is too large lies in a blob, and the message of the queue names the blob.

1. The sender sends the message, which is hidden until step 2 is done, or never will be.
2. It uploads the blob, with a name that is never used again.
3. It shows the message. If the process ended, the message shows itself when its time is over.

A worker reads the blob, runs the task, deletes the blob, and then removes the message. A blob that is absent
says that the task is done, or that its sender ended before step 2: the message is removed.

So a blob has a message at every instant: no crash leaves a blob alone. It is alone if another program removed its
message, such as one of the poison queue. `collect` deletes such a blob, which it knows by the length of both queues: if
they are empty, an old blob has no message. A model checker explores a sender, workers and the collector.
"""

import math
from dataclasses import dataclass

from lazulite_patterns.effects.blobs import PART_BYTES, BlobFacts, BlobGet, BlobPage, BlobPut
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.queues import Length
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.outcomes.discards import discard
from lazulite_patterns.outcomes.errors import OutcomeUnknown
from lazulite_patterns.outcomes.grace import ARRIVAL_SECONDS, GRACE_SECONDS, blob_age_seconds, now
from lazulite_patterns.outcomes.retries import Attempts, Policy, at_least_once, begin, read
from lazulite_patterns.transactions.messages import (
    CLAIM_BYTES_MAX,
    Claim,
    MessageFormatError,
    MessageTooLargeError,
    TaskMessage,
)

_EXISTS = (409, "BlobAlreadyExists")


@dataclass(frozen=True)
class Claims:
    """Messages of a queue in blobs.

    Attributes:
        container: the name by which the driver knows the container.
        queue: that of the queue. The names of its blobs begin with it.
        poison: that of the queue for messages that fail.
        policy: of each request.
        grace_seconds: the age of the blobs that `collect` looks at.
    """

    container: str
    queue: str
    poison: str
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    grace_seconds: float = GRACE_SECONDS

    @property
    def hidden_seconds(self) -> int:
        """The time for which no worker receives a message whose blob may not be there yet."""
        return math.ceil(self.policy.deadline_seconds + ARRIVAL_SECONDS)

    def reference(self, message: TaskMessage) -> Protocol[TaskMessage]:
        """Return the message that names the blob of another one.

        Raises:
            MessageTooLargeError: the message exceeds 64 MiB.
        """
        if (length := len(message.json)) > CLAIM_BYTES_MAX:
            raise MessageTooLargeError(f"task {message.task}: {length:,} bytes; {CLAIM_BYTES_MAX:,} fit into a blob")
        return message._replace(body=None, claim=Claim(f"{self.queue}/{(yield from perform(NewId()))}", length))

    def upload(self, name: str, message: TaskMessage, attempts: Attempts) -> Protocol[None]:
        """Upload the blob of a message.

        Raises:
            OutcomeUnknown: it may be there, or it is there so late that a worker may have removed the message.
        """
        data = message.json.encode("ascii")
        try:
            put = BlobPut(self.container, name, data, content_type="application/json")
            yield from at_least_once(put, attempts)
        except Rejected as rejected:
            # The name is never used again: a blob that exists is that of an earlier request of this upload.
            if (rejected.status, rejected.code) != _EXISTS:
                raise
        if (yield from attempts.expired()):
            raise OutcomeUnknown(f"task {message.task}: the blob was uploaded after the deadline")

    def download(self, message: TaskMessage, claim: Claim) -> Protocol[TaskMessage | None]:
        """Return the message that a blob has; None if the blob is absent.

        Raises:
            MessageFormatError: the blob has another message, or none.
        """
        if not claim.name.startswith(f"{self.queue}/") or not 0 < claim.length <= CLAIM_BYTES_MAX:
            raise MessageFormatError(f"no claim check of the queue {self.queue}: {claim}")
        data = bytearray()
        while len(data) < claim.length:
            effect = BlobGet(self.container, claim.name, len(data), min(PART_BYTES, claim.length - len(data)))
            if not (part := (yield from read(effect, (yield from begin(self.policy))))):
                return None
            data += part
        found = TaskMessage.of(data.decode("ascii", "replace"))
        if (found.task, found.id, found.claim) != (message.task, message.id, None):
            raise MessageFormatError(f"the blob {claim.name} has another message")
        return found

    def delete(self, claim: Claim) -> Protocol[None]:
        """Delete the blob of a message whose task is done."""
        yield from discard(self.container, claim.name, self.policy)

    def collect(self) -> Protocol[int]:
        """Delete the blobs that are older than the grace, if there is no message; return their number."""
        found: list[BlobFacts] = []
        continuation: str | None = None
        while True:
            page = BlobPage(self.container, f"{self.queue}/", continuation)
            blobs = yield from read(page, (yield from begin(self.policy)))
            for each in blobs.blobs:
                if blob_age_seconds(each, (yield from now())) > self.grace_seconds:
                    found.append(each)
            if (continuation := blobs.continuation) is None:
                break
        # A message that fails is copied and then removed; one that is tried again goes back by the same steps.
        for queue in (self.queue, self.poison, self.queue):
            if found and (yield from self._has_messages(queue)):
                return 0
        count = 0
        for facts in found:
            count += yield from discard(self.container, facts.name, self.policy, facts.etag)
        return count

    def _has_messages(self, queue: str) -> Protocol[bool]:
        try:
            return (yield from read(Length(queue), (yield from begin(self.policy)))) > 0
        except Rejected as rejected:
            if rejected.code != "QueueNotFound":
                raise
            return False
