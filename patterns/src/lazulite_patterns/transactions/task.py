"""What a queue delivers: something that is started once, and run at least once."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.effect import Protocol as Steps
from lazulite_patterns.table.session import Session
from lazulite_patterns.transactions.messages import TaskMessage

A_contra = TypeVar("A_contra", contravariant=True)
E = TypeVar("E")


class Source(Protocol[E]):
    """A `Table`, synchronous or asynchronous."""

    @property
    def session(self) -> Session[E]:
        """Makes the protocols of the table."""

    @property
    def clients(self) -> Mapping[str, Any]:
        """The SDK's clients, by the names that protocols use."""

    @property
    def containers(self) -> Mapping[str, Any]:
        """Those of containers."""


class Task(ABC, Generic[A_contra]):
    """Something in several steps.

    Attributes:
        name: in messages; workers know tasks by it.
        clients: the SDK's clients, by the names that its protocols use.
        containers: those of containers.
    """

    def __init__(self, name: str, *tables: Source[Any]) -> None:
        """Take the name and the tables.

        Raises:
            ValueError: two tables have the same name, and are not the same.
        """
        self.name = name
        self.clients: Mapping[str, Any] = merged(*(each.clients for each in tables))
        self.containers: Mapping[str, Any] = merged(*(each.containers for each in tables))

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines: what a lost message leaves."""
        return ()

    @abstractmethod
    def begin(self, argument: A_contra) -> Steps[TaskMessage]:
        """Do what comes before the message, and return what it says."""

    @abstractmethod
    def handle(self, message: TaskMessage) -> Steps[None]:
        """Do all steps. It is called once or more, by several workers even at the same time.

        An error lets the message be delivered again.
        """


def merged(*clients: Mapping[str, Any]) -> dict[str, Any]:
    """Return clients by their names.

    Raises:
        ValueError: a name is that of two tables or containers.
    """
    found: dict[str, Any] = {}
    for each in clients:
        for name, client in each.items():
            if found.setdefault(name, client).url != client.url:
                raise ValueError(f"two tables or containers have the name {name}, in different accounts")
    return found
