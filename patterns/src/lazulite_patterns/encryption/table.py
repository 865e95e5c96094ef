# Generated from lazulite_patterns/aio/encryption.py. Do not edit this module: edit that one, and run `make twins`.
"""Tables with encrypted properties, with a synchronous client."""

from collections.abc import Sequence
from types import UnionType
from typing import Self, TypeVar

from azure.data.tables import TableClient

from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.runtime import Runtime
from lazulite_patterns.effects.tables import Continuation
from lazulite_patterns.encryption.ciphers import Ciphers
from lazulite_patterns.encryption.session import confirmed, encrypted, reencrypted
from lazulite_patterns.entities.conditions import Condition
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.table.clients import Client, Clients, Credential, Source, name_of
from lazulite_patterns.table.query import Query
from lazulite_patterns.table.session import OnError, indexes_of, kinds_of
from lazulite_patterns.table.table import Table

E = TypeVar("E")


class EncryptedTable(Table[E]):
    """A table some of whose properties are encrypted by this process. The service never sees them."""

    def __init__(
        self,
        client: TableClient,
        kinds: type[E] | UnionType,
        *,
        cipher: Ciphers,
        clients: Sequence[Client] = (),
        on_error: OnError | None = None,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        runtime: Runtime | None = None,
    ) -> None:
        """Take the SDK's client.

        Args:
            client: of the table. Its own retries are not used.
            kinds: a class that is declared with `entity`, or a union of such; `Bag` for property bags.
            cipher: what encrypts, `Cipher` or `LegacyCipher`.
            clients: of the other tables, the containers and the queue that the indexes of the classes name.
            on_error: called for a row of a query that no class can read, and the error.
            policy: deadlines and marks.
            runtime: clock, randomness and failpoints, for tests.

        Raises:
            SchemaError: an index would show the values of an encrypted property.
        """
        super().__init__(client, kinds, clients=clients, on_error=on_error, policy=policy, runtime=runtime)
        self.cipher = cipher.of(client.table_name)
        self._session = encrypted(self._session, cipher)

    @classmethod
    def open(  # type: ignore[override] # a table that encrypts is not opened without a cipher
        cls,
        source: Source,
        kinds: type[E] | UnionType,
        *,
        cipher: Ciphers,
        table: str | None = None,
        credential: Credential | None = None,
        clients: Sequence[Client] = (),
        on_error: OnError | None = None,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
    ) -> Self:
        """Return the encrypted table of a class, as `Table.open` does. `cipher` encrypts."""
        made = Clients(source, credential, name_of(source, kinds, table), indexes_of(kinds_of(kinds)), clients)
        opened = cls(
            made.table,
            kinds,
            cipher=cipher,
            clients=made.others,
            on_error=on_error,
            policy=policy,
        )
        return opened._created(made)

    def where(self, *conditions: Condition, scan: bool = False) -> Query[E]:
        """Return a query as `Table.where` does. An encrypted property is compared by its blind index.

        Raises:
            QueryError: it would be a table scan, or a condition cannot be asked.
        """
        query = super().where(*conditions, scan=scan)
        query.plan = confirmed(query.plan, self.cipher)
        return query


def reencrypt(
    client: TableClient,
    old: Ciphers,
    new: Ciphers,
    *,
    policy: Policy = Policy(),  # noqa: B008 - it is frozen
    runtime: Runtime | None = None,
) -> Sequence[str]:
    """Encrypt all rows of a table again, and return why some of them cannot be decrypted.

    Programs may write meanwhile, if they can read both. A run that ends early is begun again: rows that are as they
    shall be are only read.

    Args:
        client: of the table.
        old: reads the rows as they are.
        new: writes them.
        policy: deadlines and marks.
        runtime: clock, randomness and failpoints, for tests.
    """
    driver = Driver({client.table_name: client}, runtime)
    failures: list[str] = []
    continuation: Continuation | None = None
    while True:
        found = driver.run(reencrypted(client.table_name, old, new, policy, continuation))
        failures += found.failures
        if (continuation := found.continuation) is None:
            return failures
