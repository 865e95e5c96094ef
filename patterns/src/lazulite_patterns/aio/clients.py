"""The SDK's asynchronous clients that a table needs: made from a connection string or an endpoint, or given."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit

from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.credentials_async import AsyncTokenCredential
from azure.data.tables.aio import TableClient, TableServiceClient

from lazulite_patterns.effects.sdk import check_clients
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.indexes import Index

if TYPE_CHECKING:
    from azure.storage.blob.aio import ContainerClient  # Extras: only programs with blobs and queues have them.
    from azure.storage.queue.aio import QueueClient

Source: TypeAlias = str | TableServiceClient | TableClient
"""A connection string or an endpoint; or the client of the account, or of the table."""
Credential: TypeAlias = AzureNamedKeyCredential | AzureSasCredential | AsyncTokenCredential
Client: TypeAlias = "TableClient | ContainerClient | QueueClient"


class Clients:
    """The clients of a table and of what its indexes need.

    Attributes:
        table: the client of the table.
        others: those of the other tables, the containers and the queue of its indexes.
        own: those that are to be closed, as they were made here.
    """

    def __init__(
        self,
        source: Source,
        credential: Credential | None,
        name: str,
        indexes: Sequence[Index],
        given: Sequence[Client],
    ) -> None:
        """Make the clients that are not given.

        Args:
            source: a connection string, an endpoint with a credential, or a client.
            credential: for an endpoint.
            name: of the table.
            indexes: of the table's classes.
            given: clients that are there. From a client of the table, no other one can be made.
        """
        self._source, self._credential = source, credential
        self.own: list[Client] = []
        self.others: list[Client] = list(given)
        self.table: TableClient = source if isinstance(source, TableClient) else self._table(name)
        there = {name for kind in by_kind(given) for name in kind}
        if isinstance(source, TableClient):
            return
        self.others += [self._table(each) for each in _names(indexes, "table") - there - {name}]
        self.others += [self._container(each) for each in _names(indexes, "container") - there]
        self.others += [self._queue(each) for each in _names(indexes, "queue") - there]

    async def close(self) -> None:
        """Close the clients that were made here."""
        for each in self.own:
            await each.close()

    def _table(self, name: str) -> TableClient:
        if isinstance(self._source, TableServiceClient):
            return self._source.get_table_client(name)
        return cast(TableClient, self._made(TableClient, name, "table", table_name=name))

    def _container(self, name: str) -> Client:
        from azure.storage.blob.aio import ContainerClient  # noqa: PLC0415 - an extra, as above

        return cast(Client, self._made(ContainerClient, name, "blob", container_name=name))

    def _queue(self, name: str) -> Client:
        from azure.storage.queue.aio import QueueClient  # noqa: PLC0415 - an extra, as above

        return cast(Client, self._made(QueueClient, name, "queue", queue_name=name))

    def _made(self, kind: Any, name: str, service: str, **named: str) -> Any:
        if not isinstance(self._source, str):
            raise ValueError(f"no client of {name} can be made from a client of tables: clients=[…]")
        if self._credential is None:
            made = kind.from_connection_string(self._source, name)
        else:
            made = kind(endpoint_of(self._source, service), credential=self._credential, **named)
        self.own.append(made)
        return made


class ByKind(NamedTuple):
    """Clients by the names of what they are of."""

    tables: dict[str, TableClient]
    containers: "dict[str, ContainerClient]"
    queues: "dict[str, QueueClient]"


def by_kind(clients: Sequence[Client]) -> ByKind:
    """Return clients by their kinds and names.

    Raises:
        TypeError: a client is not asynchronous.
    """
    check_clients(clients, "asynchronous")
    found = ByKind({}, {}, {})
    for each in clients:
        if isinstance(each, TableClient):
            found.tables[each.table_name] = each
        elif (queue := getattr(each, "queue_name", None)) is not None:
            found.queues[queue] = cast("QueueClient", each)
        else:
            found.containers[cast("ContainerClient", each).container_name] = cast("ContainerClient", each)
    return found


def name_of(source: Source, kinds: object, table: str | None) -> str:
    """Return the name of a table, which is that of its class if nothing else tells.

    Raises:
        TypeError: the source is a client, and not asynchronous.
        ValueError: nothing tells it, or two names are given.
    """
    check_clients([source], "asynchronous")
    if isinstance(source, TableClient):
        if table not in {None, source.table_name}:
            raise ValueError(f"the client is of the table {source.table_name}, not of {table}")
        return source.table_name
    if table is None and (kinds is Bag or not isinstance(kinds, type)):
        raise ValueError("bags and several classes have no name of their table: table=…")
    return getattr(kinds, "__name__", "") if table is None else table


def _names(indexes: Sequence[Index], kind: str) -> set[str]:
    """Return the names of the tables, the containers or the queue of indexes."""
    return {found for each in indexes if (found := getattr(each, kind))}


def endpoint_of(tables: str, service: str) -> str:
    """Return the endpoint of another service of an account, from that of its tables.

    Raises:
        ValueError: it does not follow from that, as for an emulator.
    """
    if service == "table":
        return tables
    account, dot, domain = urlsplit(tables).netloc.partition(".table.")
    if not dot:
        raise ValueError(f"the endpoint {tables} does not tell that of the {service} service: clients=[…]")
    return f"https://{account}.{service}.{domain}"
