"""What tests of faults on a service need: a run of a protocol by either driver, and the rows that are left."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from azure.data.tables import TableClient

from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.failpoints import Failpoints
from lazulite_patterns.effects.sdk import stored
from lazulite_patterns.effects.tables import Kind, Operation, Write
from lazulite_patterns.outcomes import Policy
from lazulite_patterns_simulation import World

T = TypeVar("T")
Run: TypeAlias = Callable[[Protocol[Any], Failpoints], Any]
"""Runs a protocol with failpoints. The driver does not wait."""
FAST = Policy(first_wait_seconds=0.001)


def world_of(client: TableClient, name: str = "t") -> World:
    """Return the rows of a table as a world in memory, for the invariants of models."""
    world = World()
    for each in map(stored, client.list_entities()):
        world, _ = world.perform(Write(name, Operation(Kind.PUT, each.key, each.properties)))
    return world


def clear(client: TableClient) -> None:
    """Delete the rows of a table, which are in one partition."""
    if rows := list(client.list_entities(select=["PartitionKey", "RowKey"])):
        client.submit_transaction([("delete", each) for each in rows])


def aside(client: TableClient, protocol: Protocol[T]) -> T:
    """Run a protocol as another process does, even in the middle of an asynchronous one."""
    return Driver({client.table_name: client}).run(protocol)
