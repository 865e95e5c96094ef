"""Tasks that a queue delivers, with asynchronous clients."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.table.transaction import Transaction
from lazulite_patterns.transactions.claims import Claims
from lazulite_patterns.transactions.function_task import FunctionTask
from lazulite_patterns.transactions.outbox import BoundTransaction, Outbox
from lazulite_patterns.transactions.task import Task, merged
from lazulite_patterns.transactions.task_queue import TaskQueue

if TYPE_CHECKING:
    from azure.storage.blob.aio import ContainerClient  # An extra: only programs with blobs have it.
    from azure.storage.queue.aio import QueueClient

A = TypeVar("A")
E = TypeVar("E")
R = TypeVar("R")
POISON = "-poison"
"""The end of the name of a queue for messages that fail, as Azure Functions writes it."""
NAME_MAX = 63
"""The most characters of a queue's name: a limit of the service."""


class Tasks:
    """Starts tasks by messages of a queue, and runs them, in as many processes as one likes.

    Attributes:
        client: the SDK's client of the queue.
        poison: that of the queue for messages that fail; it is created when the first one does.

    It is a context manager, which closes `poison` if it made that client.
    """

    def __init__(
        self,
        queue: "QueueClient",
        tasks: Sequence[Task[Any]] = (),
        *,
        max_dequeue: int = 5,
        poison: "QueueClient | None" = None,
        claims: "ContainerClient | None" = None,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            queue: the client of the queue. Its own retries are not used.
            tasks: that this process starts or runs, beside those of `task`. Messages of others fail here.
            max_dequeue: deliveries after which a message that fails goes to the poison queue.
            poison: the client of that queue; None for one of the name `<queue>-poison`.
            claims: the client of the container for messages over 48 KiB; None rejects these.
            policy: deadlines of requests to the queue.
            runtime: clock, randomness and failpoints, for tests.

        Raises:
            ValueError: two tasks have the same name, or two tables in different accounts.
        """
        self.client = queue
        self.poison: QueueClient = _poison_of(queue) if poison is None else poison
        self._owned = poison is None
        self._tasks: dict[str, Task[Any]] = {}
        for each in tasks:
            self._add(each)
        names = (queue.queue_name, self.poison.queue_name)
        own = {} if claims is None else {claims.container_name: claims}
        self._claims = next((Claims(each, *names, policy) for each in own), None)
        self._task_queue = TaskQueue(*names, self._tasks, max_dequeue, policy, self._claims)
        queues = dict(zip(names, (queue, self.poison), strict=True))
        clients = merged(*(each.clients for each in tasks))
        containers = merged(own, *(each.containers for each in tasks))
        self._driver = Driver(clients, runtime, queues=queues, containers=containers)

    @property
    def driver(self) -> Driver:
        """What runs the protocols of the tasks."""
        return self._driver

    @property
    def policy(self) -> Policy:
        """Deadlines of requests to the queue."""
        return self._task_queue.policy

    def checks(self) -> Sequence[Check]:
        """Return what `audit` examines: what lost messages leave of the tasks."""
        return [check for task in self._tasks.values() for check in task.checks()]

    def task(self, name: str) -> Callable[[Callable[[A], R]], FunctionTask[A, R]]:
        """Make a task of a function: `@tasks.task("print")`.

        The function is called once or more for each message. An error that it raises lets the message be delivered
        again. Its parameter's type is that of the argument, as `msgspec` reads it from JSON.

        Args:
            name: of the task, in messages. A worker finds the function by it.

        Raises:
            ValueError: another task has the name.
            TypeError: the function has not one parameter.
        """

        def decorate(function: Callable[[A], R]) -> FunctionTask[A, R]:
            made = FunctionTask(name, function)
            self._add(made)
            return made

        return decorate

    async def start(self, task: Task[A], argument: A) -> str:
        """Begin a task and send its message; return its id.

        Raises:
            TypeError: it is no task.
            OutcomeUnknown: whether the message was sent is not known. The task may be run.
            MessageTooLargeError: the message exceeds 48 KiB and there is no container, or 64 MiB.
        """
        return await self._driver.run(self._task_queue.start(task, argument))

    async def collect(self) -> int:
        """Delete the blobs of messages that another program removed, and return their number.

        They are older than 10 minutes. None is deleted while there is a message in the queue or its poison queue.

        Raises:
            ValueError: there is no container.
        """
        if self._claims is None:
            raise ValueError("there is no container for messages: claims=…")
        return await self._driver.run(self._claims.collect())

    @asynccontextmanager
    async def transaction(
        self, outbox: Outbox[E], payload: object, partition_key: str | None = None
    ) -> AsyncIterator[Transaction[E]]:
        """Collect writes of one partition. If they are committed at the end of the block, a side effect happens.

        Args:
            outbox: of the table of these writes.
            payload: what the side effect needs: what JSON has, in 32,768 characters.
            partition_key: of all entities; None for that of the first one.

        Raises:
            Conflict: an entity is not as expected. Nothing was written, and the side effect does not happen.
            OutcomeUnknown: whether the writes were done is not known. If they were, the side effect happens.
            Unavailable: the message was not sent before the deadline. Nothing was written.
        """
        transaction: Transaction[E] = BoundTransaction(outbox, self._task_queue, payload, partition_key)
        yield transaction
        await self._driver.run(transaction.commit())

    async def work(
        self, *, visibility: int = 30, workers: int = 1, idle_seconds: float = 1, stop: Callable[[], bool]
    ) -> None:
        """Handle messages until `stop` returns True.

        Args:
            visibility: seconds after which the message of a worker that ended is delivered again, 1 or more. Workers
                renew it.
            workers: messages that are handled at one time.
            idle_seconds: between two requests of a worker that finds no message.
            stop: asked before each message, such as `threading.Event().is_set`.

        Raises:
            Rejected: the service rejects a request to the queue: it is absent, or the client may not use it.
        """
        await self._driver.run(self._task_queue.work(visibility, workers, idle_seconds, stop))

    async def drain(self, *, visibility: int = 30, workers: int = 1) -> int:
        """Handle messages until none is visible. Arguments and errors are those of `work`.

        Return the number of deliveries. Those whose task failed count, too.
        """
        return await self._driver.run(self._task_queue.drain(visibility, workers))

    def _add(self, task: Task[Any]) -> None:
        if self._tasks.setdefault(task.name, task) is not task:
            raise ValueError(f"two tasks have the same name: {task.name}")

    async def close(self) -> None:
        """Close the client that this object made."""
        if self._owned:
            await self.poison.close()

    async def __aenter__(self) -> "Tasks":
        """Return this object."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client that this object made."""
        await self.close()


def _poison_of(queue: "QueueClient") -> Any:
    """Return the client of the queue for messages that fail, with the credential and the encoding of another one.

    Raises:
        ValueError: no queue can have its name.
    """
    given: Any = queue
    if len(given.queue_name) > NAME_MAX - len(POISON):
        raise ValueError(f"the name {given.queue_name}{POISON} is too long for a queue: give `poison`")
    return type(given)(
        f"{given.scheme}://{given.primary_hostname}{given._query_str}",
        queue_name=f"{given.queue_name}{POISON}",
        credential=given.credential,
        api_version=given.api_version,
        message_encode_policy=given._message_encode_policy,
        message_decode_policy=given._message_decode_policy,
    )
