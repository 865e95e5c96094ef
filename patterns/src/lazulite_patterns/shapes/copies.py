# Generated from lazulite_patterns/aio/shapes/copies.py. Do not edit this module: edit that one, and run `make twins`.
"""Entities with copies of others, with a synchronous client."""

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any, Generic, TypeVar, cast

from azure.data.tables import TableClient

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.shapes.links import Copied
from lazulite_patterns.shapes.protocols.copies import CopiesProtocol, check_declared
from lazulite_patterns.shapes.protocols.copies_check import CopiesCheck
from lazulite_patterns.table.session import Session, kinds_of

E = TypeVar("E")
S = TypeVar("S")
"""One of several classes."""


class Copies(Generic[E]):
    """Writes entities, of which some have copies of fields of others in the same partition.

    Attributes:
        client: the SDK's client, for everything else.
        driver: what runs the protocols; `audit` needs it.
        policy: deadlines and marks; `audit` has the same.

    Reads and queries are those of a `Table` of the same classes. Writes of these classes must all be done here.
    """

    def __init__(
        self,
        client: TableClient,
        kinds: type[E] | UnionType,
        copied: Sequence[Copied[Any, Any]],
        *,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            kinds: a class that is declared with `entity`, or a union of such.
            copied: the fields that are copies.
            policy: deadlines and marks.
            runtime: clock, randomness and failpoints, for tests.

        Raises:
            SchemaError: a copy is of a copy, or the table has not the classes of a link.
        """
        check_declared(kinds, copied)
        self.client = client
        self.driver, self.policy = Driver({client.table_name: client}, runtime), policy
        session: Session[E] = Session(client.table_name, kinds_of(kinds), policy)
        self._protocol = CopiesProtocol(session, tuple(copied))

    def get(self, key: E | EntityKey) -> E | None:
        """Return an entity by its keys, or by an entity with the same keys; None if it is absent."""
        return self.driver.run(self._protocol.session.get(key))

    def insert(self, entity: E) -> None:
        """Write an entity that must be absent, with copies of what it refers to.

        Raises:
            Exists: the entity is there.
            Absent: an entity that it refers to is absent.
            EntityValueError: the service would reject it, or what it refers to is in another partition.
        """
        self.driver.run(self._protocol.insert(entity))

    def update(self, key: S | EntityKey, change: Callable[[S], S], *, attempts: int = 8) -> None:
        """Read an entity, change it, and write it with all copies of it and in it.

        Args:
            key: keys, or an entity with the same keys.
            change: returns the new entity from the one that was read. It may be called several times.
            attempts: times to read and write, at most.

        Raises:
            Absent: there is no such entity, or one that it refers to is absent.
            Conflict: another writer was faster, each time.
            EntityValueError: the service would reject it, or more than 99 entities have copies of it.
        """
        self.driver.run(self._protocol.update(cast(E | EntityKey, key), cast(Callable[[E], E], change), attempts))

    def delete(self, key: E | EntityKey) -> bool:
        """Delete an entity; False if it is absent. Raises Referred if another one refers to it."""
        return self.driver.run(self._protocol.delete(key))

    def checks(self) -> Sequence[Check]:
        """Return what `audit` examines: copies that differ, and links to absent entities."""
        return [CopiesCheck(self._protocol)]
