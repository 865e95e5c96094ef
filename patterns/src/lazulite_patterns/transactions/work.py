"""Start tasks, and carry them out: the protocols of a queue whose messages are tasks.

A message is removed after its task is done, and delivered again if the worker ends before. Beside the task, its
visibility is renewed. A message that fails too often is copied to the poison queue, and then removed: it may be in both
queues, never in neither.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lazulite_patterns.effects.ambient import Sleep, Together
from lazulite_patterns.effects.calls import Meanwhile, Within
from lazulite_patterns.effects.effect import Effect, Protocol, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.queues import CreateQueue, Extend, Message, Receive, Remove, Send, Sent
from lazulite_patterns.indexes.deferred import show
from lazulite_patterns.outcomes.errors import OutcomeUnknown, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, begin, read
from lazulite_patterns.transactions.claims import Claims
from lazulite_patterns.transactions.letters import TEXT_BYTES_MAX, Letter, LetterFormatError
from lazulite_patterns.transactions.task import Task

A = TypeVar("A")
R = TypeVar("R")
_log = logging.getLogger("lazulite_patterns.tasks")
VISIBILITY_SECONDS_MAX = 7 * 24 * 3600
"""A limit of the service."""
_RENEWALS = 3
"""The parts of its visibility after each of which a message is hidden again."""


@dataclass
class Held:
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
            self.receipt = yield from perform(Within(extend, self.visibility_seconds))
        except Rejected:
            self.receipt = None
        except ResultUnknown:
            return  # If it was done, the receipt is invalid, and the next renewal sees that.

    def remove(self, attempts: Attempts) -> Protocol[None]:
        """Remove the message. If another worker has it, that one removes it."""
        if self.receipt is None:
            return
        try:
            yield from _certain(Remove(self.queue, self.message.id, self.receipt), attempts)
        except (Rejected, OutcomeUnknown) as error:
            _log.info("message %s is left to another worker: %s", self.message.id, error)


def _check_visibility(seconds: int) -> None:
    """Reject a time for which the service hides no message."""
    if not 1 <= seconds <= VISIBILITY_SECONDS_MAX:
        raise ValueError(f"a message is hidden for 1 to {VISIBILITY_SECONDS_MAX} seconds, not for {seconds}")


@dataclass(frozen=True)
class Work:
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
            OutcomeUnknown: whether the message was sent is not known. The task may be carried out.
        """
        letter = yield from task.begin(argument)
        if self.claims is None or len(letter.json) <= TEXT_BYTES_MAX:
            yield from self.send(letter)
        else:
            yield from self._claimed(letter, self.claims)
        return letter.id

    def send(self, letter: Letter, delay_seconds: int = 0, attempts: Attempts | None = None) -> Protocol[Sent]:
        """Send a message, which no worker receives before the delay is over."""
        if attempts is None:
            attempts = yield from begin(self.policy)
        return (yield from _certain(Send(self.queue, letter.text, delay_seconds), attempts))

    def _claimed(self, letter: Letter, claims: Claims) -> Protocol[None]:
        """Send a message whose body is in a blob."""
        check = yield from claims.check(letter)
        assert check.claim is not None
        attempts = yield from begin(self.policy)
        sent = yield from self.send(check, claims.hidden_seconds, attempts)
        try:
            yield from claims.put(check.claim.name, letter, attempts)
        except Rejected:
            yield from self.retract(sent)
            raise
        yield from show(self.queue, [sent])

    def retract(self, sent: Sent) -> Protocol[None]:
        """Remove a message that no worker received."""
        message = Message(sent.id, sent.receipt, "", 0)
        yield from Held(self.queue, message, sent.receipt, 0).remove((yield from begin(self.policy)))

    def once(self, visibility_seconds: int) -> Protocol[bool]:
        """Receive one message and carry it out; False if there was none.

        Raises:
            Unavailable: the queue did not answer.
        """
        receive = Receive(self.queue, visibility_seconds)
        for message in (yield from read(receive, (yield from begin(self.policy)))):
            yield from self.handle(message, visibility_seconds)
            return True
        return False

    def handle(self, message: Message, visibility_seconds: int) -> Protocol[None]:
        """Carry out what a message says, and remove it; or leave it, if that fails."""
        held = Held(self.queue, message, message.receipt, visibility_seconds)
        failed: Exception | None = None
        if message.dequeue_count <= self.max_dequeue:
            try:
                yield from perform(Meanwhile(self._carried_out(message), held.renew, visibility_seconds / _RENEWALS))
            except Exception as error:  # noqa: BLE001 - whatever a task does, its worker goes on
                failed = error
                _log.warning("message %s, delivery %s: %r", message.id, message.dequeue_count, error)
        if failed is not None and message.dequeue_count < self.max_dequeue:
            return
        attempts = yield from begin(self.policy)
        if failed is not None or message.dequeue_count > self.max_dequeue:
            yield from self._poisoned(message, attempts)
        yield from held.remove(attempts)

    def all(self, visibility_seconds: int, workers: int) -> Protocol[int]:
        """Carry out messages until none is visible; return their number."""
        _check_visibility(visibility_seconds)
        drained = tuple(self._drained(visibility_seconds) for _ in range(workers))
        return sum((yield from perform(Together(drained, workers))))

    def forever(
        self, visibility_seconds: int, workers: int, idle_seconds: float, stop: Callable[[], bool]
    ) -> Protocol[None]:
        """Carry out messages until `stop` returns True. If a worker fails, all end, and its error is raised."""
        _check_visibility(visibility_seconds)
        failures: list[Exception] = []

        def worker() -> Protocol[None]:
            while not (failures or stop()):
                try:
                    found = yield from self.once(visibility_seconds)
                except (Unavailable, OutcomeUnknown) as error:
                    _log.warning("the queue does not answer: %s", error)
                    found = False
                except Exception as error:
                    failures.append(error)
                    raise
                if not found:
                    yield from perform(Sleep(idle_seconds))

        yield from perform(Together(tuple(worker() for _ in range(workers)), workers))

    def _drained(self, visibility_seconds: int) -> Protocol[int]:
        count = 0
        while (yield from self.once(visibility_seconds)):
            count += 1
        return count

    def _carried_out(self, message: Message) -> Protocol[None]:
        letter = Letter.of(message.text)
        if (task := self.tasks.get(letter.task)) is None:
            raise LetterFormatError(f"there is no task {letter.task}")
        if letter.claim is None:
            yield from task.carry_out(letter)
        elif self.claims is None:
            raise LetterFormatError(f"there is no container for claim checks: {letter.claim}")
        elif (whole := (yield from self.claims.redeem(letter, letter.claim))) is not None:
            yield from task.carry_out(whole)
            yield from self.claims.forget(letter.claim)

    def _poisoned(self, message: Message, attempts: Attempts) -> Protocol[None]:
        """Copy a message to the poison queue, which is created if it is absent."""
        copy = Send(self.poison, message.text)
        try:
            yield from _certain(copy, attempts)
        except Rejected as rejected:
            if rejected.code != "QueueNotFound":
                raise
            yield from _certain(CreateQueue(self.poison), attempts)
            yield from _certain(copy, attempts)


def _certain(effect: Effect[R], attempts: Attempts) -> Protocol[R]:
    """Perform an effect that may be done twice, until it is known that it was done.

    Raises:
        OutcomeUnknown: there was no answer before the deadline.
    """
    while True:
        try:
            return (yield from attempts.perform(effect))
        except ResultUnknown as unknown:
            if not (yield from attempts.wait(unknown)):
                raise OutcomeUnknown(str(unknown)) from unknown
