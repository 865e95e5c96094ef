"""Functions as tasks: their arguments keep their types, and messages that do not fit go to the poison queue."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_type

import pytest
from azure.storage.queue import QueueClient
from azure.storage.queue.aio import QueueClient as AsyncQueueClient

from lazulite_patterns.aio.tasks import Tasks as AsyncTasks
from lazulite_patterns.transactions import FunctionTask, Task
from lazulite_patterns.transactions.tasks import Tasks


@dataclass(frozen=True)
class Payslip:
    employee: str
    paid: datetime
    hours: dict[int, float]


JULY = Payslip("Ann", datetime(2014, 7, 31, 12, tzinfo=UTC), {1: 7.5})


def test_the_argument_has_the_type_of_the_parameter(queue_client: QueueClient) -> None:
    seen: list[Payslip] = []
    with Tasks(queue_client) as tasks:

        @tasks.task("print")
        def print_payslip(payslip: Payslip) -> int:
            """Print it."""
            seen.append(payslip)
            return len(seen)

        assert_type(print_payslip, FunctionTask[Payslip, int])
        assert print_payslip.__doc__ == "Print it."
        tasks.start(print_payslip, JULY)
        assert tasks.drain() == 1
        assert print_payslip(JULY) == 2, "it is called without a message"
    assert seen == [JULY, JULY]


def test_a_parameter_without_a_type_takes_what_json_has(queue_client: QueueClient) -> None:
    seen: list[Any] = []
    with Tasks(queue_client) as tasks:
        append: Task[Any] = tasks.task("append")(seen.append)
        tasks.start(append, {"n": [1, None]})
        tasks.drain()
        with pytest.raises(TypeError):
            tasks.start(append, object())
    assert seen == [{"n": [1, None]}]


def test_wrong_programs_are_found(queue_client: QueueClient) -> None:
    with Tasks(queue_client) as tasks:

        @tasks.task("one")
        def one(number: int) -> None: ...

        with pytest.raises(ValueError, match="the same name: one"):
            tasks.task("one")(len)
        with pytest.raises(TypeError, match="takes 2"):
            tasks.task("two")(lambda one, two: one + two)  # type: ignore[misc, arg-type] # it is the point
        with pytest.raises(TypeError, match="task one: Expected `int`, got `str`"):
            tasks.start(one, "1")  # type: ignore[misc] # it is the point
        assert queue_client.peek_messages() == [], "no worker could read it"


def test_a_message_of_another_type_goes_to_the_poison_queue(queue_client: QueueClient) -> None:
    seen: list[int] = []
    with Tasks(queue_client, max_dequeue=1) as tasks:

        @tasks.task("count")
        def count(number: int) -> None:
            seen.append(number)

        queue_client.send_message('{"task":"count","id":"1","body":"many"}')
        tasks.start(count, 2)
        assert tasks.drain() == 2
        assert [each.content for each in tasks.poison.peek_messages()] == ['{"task":"count","id":"1","body":"many"}']
        tasks.poison.delete_queue()
    assert seen == [2]


def test_asynchronous_functions_are_awaited_by_asynchronous_tasks_only(
    queue_client: QueueClient, connection_string: str
) -> None:
    seen: list[str] = []

    async def wait(text: str) -> None:
        await asyncio.sleep(0)
        seen.append(text)

    async def drained() -> int:
        client = AsyncQueueClient.from_connection_string(connection_string, queue_client.queue_name)
        async with client, AsyncTasks(client) as tasks:
            await tasks.start(tasks.task("wait")(wait), "a")
            await tasks.start(tasks.task("append")(seen.append), "b")
            return await tasks.drain()

    assert asyncio.run(drained()) == 2
    assert sorted(seen) == ["a", "b"]
    with Tasks(queue_client, max_dequeue=1) as tasks:
        tasks.start(tasks.task("wait")(wait), "c")
        tasks.drain()
        assert len(tasks.poison.peek_messages()) == 1, "it is not taken for done"
        tasks.poison.delete_queue()
    assert len(seen) == 2
