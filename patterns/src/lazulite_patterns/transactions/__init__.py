"""Transactions over several partitions, tables or services: a message carries them on until all steps are done."""

from lazulite_patterns.transactions.indexing import IndexTask
from lazulite_patterns.transactions.letters import Letter, MessageTooLargeError
from lazulite_patterns.transactions.move import Move
from lazulite_patterns.transactions.outbox import Outbox, SideEffect
from lazulite_patterns.transactions.saga import Progress, Saga, Step
from lazulite_patterns.transactions.task import Source, Task

__all__ = [
    "IndexTask",
    "Letter",
    "MessageTooLargeError",
    "Move",
    "Outbox",
    "Progress",
    "Saga",
    "SideEffect",
    "Source",
    "Step",
    "Task",
]
