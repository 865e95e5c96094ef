"""Transactions over several partitions, tables or services: a message is delivered again until all steps are done."""

from lazulite_patterns.transactions.function_task import FunctionTask
from lazulite_patterns.transactions.indexing import IndexTask
from lazulite_patterns.transactions.messages import MessageTooLargeError, TaskMessage
from lazulite_patterns.transactions.move import Move
from lazulite_patterns.transactions.outbox import Outbox, SideEffect
from lazulite_patterns.transactions.saga import Saga, SagaProgress, Step
from lazulite_patterns.transactions.task import Source, Task

__all__ = [
    "FunctionTask",
    "IndexTask",
    "MessageTooLargeError",
    "Move",
    "Outbox",
    "Saga",
    "SagaProgress",
    "SideEffect",
    "Source",
    "Step",
    "Task",
    "TaskMessage",
]
