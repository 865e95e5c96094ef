"""Tables with encrypted properties, with an asynchronous client."""

from collections.abc import Sequence
from types import UnionType
from typing import TYPE_CHECKING, TypeVar, overload

from azure.data.tables.aio import TableClient

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.aio.query import Query
from lazulite_patterns.aio.table import Table
from lazulite_patterns.effects.ambient import Ambient
from lazulite_patterns.effects.tables import Continuation
from lazulite_patterns.encryption.ciphers import Ciphers
from lazulite_patterns.encryption.session import confirmed, encrypted, reencrypted
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.conditions import Condition
from lazulite_patterns.indexes.index import Index
from lazulite_patterns.outcomes.retries import Policy

if TYPE_CHECKING:
    from azure.storage.blob.aio import ContainerClient  # An extra: only programs with blobs have it.

E = TypeVar("E")


class EncryptedTable(Table[E]):
    """A table some of whose properties are encrypted by this process. The service never sees them."""

    @overload
    def __init__(
        self: "EncryptedTable[Bag]",
        client: TableClient,
        *,
        cipher: Ciphers,
        policy: Policy = ...,
        ambient: Ambient | None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        client: TableClient,
        kinds: type[E] | UnionType,
        *,
        cipher: Ciphers,
        indexes: Sequence[Index] = ...,
        clients: "Sequence[TableClient | ContainerClient]" = ...,
        policy: Policy = ...,
        ambient: Ambient | None = ...,
    ) -> None: ...
    def __init__(
        self,
        client: TableClient,
        kinds: type[E] | UnionType | None = None,
        *,
        cipher: Ciphers,
        indexes: Sequence[Index] = (),
        clients: "Sequence[TableClient | ContainerClient]" = (),
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        ambient: Ambient | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            kinds: a class that is declared with `entity`, or a union of such; None for property bags.
            cipher: what encrypts, `Cipher` or `LegacyCipher`.
            indexes: of properties that are not encrypted; the table has one class then.
            clients: of the other tables, and of the containers, that indexes name.
            policy: deadlines and marks.
            ambient: clock, randomness and failpoints, for tests.

        Raises:
            SchemaError: an index would show the values of an encrypted property.
        """
        super().__init__(
            client,
            kinds,  # type: ignore[arg-type] # None is for bags
            indexes=indexes,
            clients=clients,
            policy=policy,
            ambient=ambient,
        )
        self.cipher = cipher.of(client.table_name)
        self._session = encrypted(self._session, cipher)

    def where(self, *conditions: Condition | tuple[Condition, ...], scan: bool = False) -> Query[E]:
        """Return a query as `Table.where` does. An encrypted property is compared by its blind index.

        Raises:
            QueryError: it would be a table scan, or a condition cannot be asked.
        """
        query = super().where(*conditions, scan=scan)
        query.plan = confirmed(query.plan, self.cipher)
        return query


async def reencrypt(
    client: TableClient,
    old: Ciphers,
    new: Ciphers,
    *,
    policy: Policy = Policy(),  # noqa: B008 - it is frozen
    ambient: Ambient | None = None,
) -> Sequence[str]:
    """Encrypt all rows of a table anew, and return why some of them cannot be decrypted.

    Programs may write meanwhile, if they can read both. A run that ends early is begun again: rows that are as they
    shall be are only read.

    Args:
        client: of the table.
        old: reads the rows as they are.
        new: writes them.
        policy: deadlines and marks.
        ambient: clock, randomness and failpoints, for tests.
    """
    driver = Driver({client.table_name: client}, ambient)
    failures: list[str] = []
    go_on: Continuation | None = None
    while True:
        found = await driver.run(reencrypted(client.table_name, old, new, policy, go_on))
        failures += found.failures
        if (go_on := found.continuation) is None:
            return failures
