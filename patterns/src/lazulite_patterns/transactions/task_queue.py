"""Start tasks, and run them: the protocols of a queue whose messages are tasks.

A message is removed after its task is done, and delivered again if the worker ends before. Beside the task, its
visibility is renewed. A message that fails too often is copied to the poison queue, and then removed: it may be in both
queues, never in neither.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lazulite_patterns.effects.calls import WithHeartbeat, WithTimeout
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.queues import CreateQueue, Extend, Message, Receive, Remove, Send, Sent
from lazulite_patterns.effects.runtime import Gather, Sleep
from lazulite_patterns.indexes.deferred import show
from lazulite_patterns.outcomes.errors import OutcomeUnknown, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, at_least_once, begin, read
from lazulite_patterns.transactions.claims import Claims
from lazulite_patterns.transactions.messages import TEXT_BYTES_MAX, MessageFormatError, TaskMessage
from lazulite_patterns.transactions.task import Task

A = TypeVar("A")
_log = logging.getLogger("lazulite_patterns.tasks")
VISIBILITY_SECONDS_MAX = 7 * 24 * 3600
"""A limit of the service."""
_RENEWALS = 3
"""The parts of its visibility after each of which a message is hidden again."""


@dataclass
class Delivery:
    """A message that a worker has, with its latest receipt; None if another worker may have received it since."""

    queue: str
    message: Message
    receipt: str | None
    visibility_seconds: int

    def renew(self) -> Protocol[None]:
        """Hide the message for its time again."""
        if self.receipt is None:
            return
        try:
            extend = Extend(self.queue, self.message.id, self.receipt, self.visibility_seconds)
            self.receipt = yield from perform(WithTimeout(extend, self.visibility_seconds))
        except Rejected:
            self.receipt = None
        except ResultUnknown:
            return  # If it was done, the receipt is invalid, and the next renewal sees that.

    def remove(self, attempts: Attempts) -> Protocol[None]:
        """Remove the message. If another worker has it, that one removes it."""
        if self.receipt is None:
            return
        try:
            yield from at_least_once(Remove(self.queue, self.message.id, self.receipt), attempts)
        except (Rejected, OutcomeUnknown) as error:
            _log.info("message %s is left to another worker: %s", self.message.id, error)


def _check_visibility(seconds: int) -> None:
    """Reject a time for which the service hides no message."""
    if not 1 <= seconds <= VISIBILITY_SECONDS_MAX:
        raise ValueError(f"a message is hidden for 1 to {VISIBILITY_SECONDS_MAX} seconds, not for {seconds}")


@dataclass(frozen=True)
class TaskQueue:
    """The protocols of a queue. The class `Tasks`, synchronous and asynchronous, runs them.

    Attributes:
        queue: the name by which the driver knows the queue.
        poison: that of the queue for messages that fail.
        tasks: by their names.
        max_dequeue: deliveries of a message, at most.
        policy: deadlines of requests.
        claims: of messages that are too large for the queue; None rejects these.
    """

    queue: str
    poison: str
    tasks: Mapping[str, Task[Any]]
    max_dequeue: int = 5
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    claims: Claims | None = None

    def start(self, task: Task[A], argument: A) -> Protocol[str]:
        """Begin a task and send its message; return its id.

        Raises:
            TypeError: it is no task.
            OutcomeUnknown: whether the message was sent is not known. The task may be run.
        """
        if not isinstance(task, Task):
            raise TypeError(f"{task!r} is no task: `tasks.task(name)` makes one of a function")
        message = yield from task.begin(argument)
        if self.claims is None or len(message.json) <= TEXT_BYTES_MAX:
            yield from self.send(message)
        else:
            yield from self._send_by_claim(message, self.claims)
        return message.id

    def send(self, message: TaskMessage, delay_seconds: int = 0, attempts: Attempts | None = None) -> Protocol[Sent]:
        """Send a message, which no worker receives before the delay is over."""
        if attempts is None:
            attempts = yield from begin(self.policy)
        return (yield from at_least_once(Send(self.queue, message.text, delay_seconds), attempts))

    def _send_by_claim(self, message: TaskMessage, claims: Claims) -> Protocol[None]:
        """Send a message whose body is in a blob."""
        reference = yield from claims.reference(message)
        assert reference.claim is not None
        attempts = yield from begin(self.policy)
        sent = yield from self.send(reference, claims.hidden_seconds, attempts)
        try:
            yield from claims.upload(reference.claim.name, message, attempts)
        except Rejected:
            yield from self.retract(sent)
            raise
        yield from show(self.queue, [sent])

    def retract(self, sent: Sent) -> Protocol[None]:
        """Remove a message that no worker received."""
        message = Message(sent.id, sent.receipt, "", 0)
        yield from Delivery(self.queue, message, sent.receipt, 0).remove((yield from begin(self.policy)))

    def handle_next(self, visibility_seconds: int) -> Protocol[bool]:
        """Receive one message and handle it; False if there was none.

        Raises:
            Unavailable: the queue did not answer.
        """
        receive = Receive(self.queue, visibility_seconds)
        for message in (yield from read(receive, (yield from begin(self.policy)))):
            yield from self.handle(message, visibility_seconds)
            return True
        return False

    def handle(self, received: Message, visibility_seconds: int) -> Protocol[None]:
        """Run the task of a message, and remove it; or leave it, if that fails."""
        delivery = Delivery(self.queue, received, received.receipt, visibility_seconds)
        failed: Exception | None = None
        if received.dequeue_count <= self.max_dequeue:
            try:
                yield from perform(
                    WithHeartbeat(self._run_task(received), delivery.renew, visibility_seconds / _RENEWALS)
                )
            except Exception as error:  # noqa: BLE001 - whatever a task does, its worker goes on
                failed = error
                self._log_failure(received, error)
        if failed is not None and received.dequeue_count < self.max_dequeue:
            return
        attempts = yield from begin(self.policy)
        if failed is not None or received.dequeue_count > self.max_dequeue:
            yield from self._move_to_poison(received, attempts)
        yield from delivery.remove(attempts)

    def drain(self, visibility_seconds: int, workers: int) -> Protocol[int]:
        """Handle messages until none is visible; return their number."""
        _check_visibility(visibility_seconds)
        draining = tuple(self._drain(visibility_seconds) for _ in range(workers))
        return sum((yield from perform(Gather(draining, workers))))

    def work(
        self, visibility_seconds: int, workers: int, idle_seconds: float, stop: Callable[[], bool]
    ) -> Protocol[None]:
        """Handle messages until `stop` returns True. If a worker fails, all end, and its error is raised."""
        _check_visibility(visibility_seconds)
        failures: list[Exception] = []

        def worker() -> Protocol[None]:
            while not (failures or stop()):
                try:
                    found = yield from self.handle_next(visibility_seconds)
                except (Unavailable, OutcomeUnknown) as error:
                    _log.warning("the queue does not answer: %s", error)
                    found = False
                except Exception as error:
                    failures.append(error)
                    raise
                if not found:
                    yield from perform(Sleep(idle_seconds))

        yield from perform(Gather(tuple(worker() for _ in range(workers)), workers))

    def _drain(self, visibility_seconds: int) -> Protocol[int]:
        count = 0
        while (yield from self.handle_next(visibility_seconds)):
            count += 1
        return count

    def _log_failure(self, received: Message, error: Exception) -> None:
        try:
            task = TaskMessage.of(received.text).task
        except MessageFormatError:
            task = "unknown"
        times = f"{received.dequeue_count} of {self.max_dequeue}"
        place = (task, self.queue, received.id, times)
        _log.warning("task %s, queue %s, message %s, delivery %s: %s: %s", *place, type(error).__name__, error)

    def _run_task(self, received: Message) -> Protocol[None]:
        message = TaskMessage.of(received.text)
        if (task := self.tasks.get(message.task)) is None:
            raise MessageFormatError(f"there is no task {message.task}")
        if message.claim is None:
            yield from task.handle(message)
        elif self.claims is None:
            raise MessageFormatError(f"there is no container for claim checks: {message.claim}")
        elif (whole := (yield from self.claims.download(message, message.claim))) is not None:
            yield from task.handle(whole)
            yield from self.claims.delete(message.claim)

    def _move_to_poison(self, message: Message, attempts: Attempts) -> Protocol[None]:
        """Copy a message to the poison queue, which is created if it is absent."""
        copy = Send(self.poison, message.text)
        try:
            yield from at_least_once(copy, attempts)
        except Rejected as rejected:
            if rejected.code != "QueueNotFound":
                raise
            yield from at_least_once(CreateQueue(self.poison), attempts)
            yield from at_least_once(copy, attempts)
