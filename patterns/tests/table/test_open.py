"""`Table.open` makes what a class needs, whatever it is opened with; no index of a class can be left out."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    generate_account_sas,
    generate_table_sas,
)
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from lazulite_patterns import (
    Bag,
    Cipher,
    Column,
    Copies,
    EncryptedTable,
    EntityKey,
    Index,
    KeyRing,
    Lease,
    Listing,
    NotUnique,
    Policy,
    Rejected,
    SchemaError,
    Stream,
    Table,
    entity,
    index,
    partition,
    row,
    unique,
)
from lazulite_patterns.aio import Table as AsyncTable
from lazulite_patterns.entities import schema_of
from lazulite_patterns.table.clients import Client, Clients, by_kind, endpoint_of

NAMES = "Lists"


@entity
class Person:
    team: Column[str] = partition()
    id: Column[int] = row(width=4)
    email: Column[str] = unique()


@entity(indexes=[Listing("towns", "town", place="blob", container="open-towns")])
class Traveller:
    team: Column[str] = partition()
    id: Column[int] = row(width=4)
    town: Column[str]
    name: Column[str] = index(table="OpenNames")
    mail: Column[str] = index(queue="open-mails")


ANN = Person("red", 1, "ann@contoso.com")


class Account:
    """What a connection string says."""

    def __init__(self, connection_string: str) -> None:
        self.connection_string = connection_string
        parts = dict(each.split("=", 1) for each in connection_string.split(";") if each)
        self.key = AzureNamedKeyCredential(parts["AccountName"], parts["AccountKey"])
        with TableServiceClient.from_connection_string(connection_string) as service:
            self.endpoint = service.url


@pytest.fixture
def account(connection_string: str) -> Account:
    return Account(connection_string)


@pytest.fixture
def name(connection_string: str) -> Iterator[str]:
    """Yield the name of a table that is absent."""
    found = f"T{uuid4().hex}"
    yield found
    with TableClient.from_connection_string(connection_string, found) as client:
        client.delete_table()


SOURCES: dict[str, Callable[[Account, str], Table[Person]]] = {
    "connection string": lambda account, name: Table.open(account.connection_string, Person, table=name),
    "endpoint": lambda account, name: Table.open(account.endpoint, Person, table=name, credential=account.key),
    "account": lambda account, name: Table.open(
        TableServiceClient.from_connection_string(account.connection_string), Person, table=name
    ),
    "table": lambda account, name: Table.open(
        TableClient.from_connection_string(account.connection_string, name), Person
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_table_is_created_or_found(account: Account, name: str, source: str) -> None:
    with SOURCES[source](account, name) as first:
        first.insert(ANN)
    with SOURCES[source](account, name) as second:
        assert second.client.table_name == name
        assert second.by(email=ANN.email).one() == ANN
        with pytest.raises(NotUnique):
            second.insert(Person("blue", 2, ANN.email))


async def test_an_asynchronous_program_opens_the_same(connection_string: str, name: str) -> None:
    async with await AsyncTable.open(connection_string, Person, table=name) as staff:
        await staff.insert(ANN)
    async with await AsyncTable.open(connection_string, Person, table=name) as staff:
        assert await staff.by(email=ANN.email).one() == ANN
        assert await staff.by(email=ANN.email).count() == 1
        assert [each async for each in staff.where(Person.team == "red")] == [ANN]


def test_the_name_is_that_of_the_class(connection_string: str) -> None:
    with Table.open(connection_string, Person) as staff:
        assert staff.client.table_name == "Person"
        staff.client.delete_table()
    for wrong in (
        lambda: Table.open(connection_string, Bag),
        lambda: Table.open(connection_string, Person | Traveller),
        lambda: Table.open(TableClient.from_connection_string(connection_string, "One"), Person, table="Two"),
    ):
        with pytest.raises(ValueError, match=r"table=…|not of Two"):
            wrong()


def test_what_indexes_need_is_created(connection_string: str, name: str) -> None:
    with Table.open(connection_string, Traveller, table=name) as people:
        people.insert(Traveller("red", 1, "Rome", "Ann", "ann@contoso.com"))
        assert people.by(name="Ann").one() == people.by(town="Rome").one()
        assert len(people.queues["open-mails"].peek_messages()) == 1
        with TableClient.from_connection_string(connection_string, name) as client:
            with pytest.raises(ValueError, match="no client of the table OpenNames"):
                Table.open(client, Traveller)
            given: list[Client] = [
                TableClient.from_connection_string(connection_string, "OpenNames"),
                ContainerClient.from_connection_string(connection_string, "open-towns"),
                QueueClient.from_connection_string(connection_string, "open-mails"),
            ]
            assert Table.open(client, Traveller, clients=given).by(name="Ann").count() == 1
        people.clients["OpenNames"].delete_table()
        people.containers["open-towns"].delete_container()
        people.queues["open-mails"].delete_queue()


def test_endpoints_of_other_services() -> None:
    tables = "https://contoso.table.core.windows.net"
    assert endpoint_of(tables, "table") == tables
    assert endpoint_of(tables, "blob") == "https://contoso.blob.core.windows.net"
    assert endpoint_of(f"{tables}/", "queue") == "https://contoso.queue.core.windows.net"
    with pytest.raises(ValueError, match="clients="):
        endpoint_of("http://127.0.0.1:10002/contoso", "blob")


class Token:
    """A credential as `DefaultAzureCredential` is one."""

    def get_token(self, *scopes: str, **_: object) -> AccessToken:
        assert scopes
        return AccessToken("secret", 2**40)


def test_a_token_is_taken_for_all_services() -> None:
    indexes = schema_of(Traveller).indexes
    made = Clients("https://contoso.table.core.windows.net", Token(), "Staff", indexes, ())
    tables, containers, queues = by_kind([made.table, *made.others])
    urls = [*(each.url for each in tables.values()), containers["open-towns"].url, queues["open-mails"].url]
    assert sorted(urls) == [
        "https://contoso.blob.core.windows.net/open-towns",
        "https://contoso.queue.core.windows.net/open-mails",
        "https://contoso.table.core.windows.net",
        "https://contoso.table.core.windows.net",
    ]
    assert sorted(tables) == ["OpenNames", "Staff"]
    made.close()


def sas(account: Account, name: str, **permissions: bool) -> AzureSasCredential:
    """Return a signature for one table, which may never create it."""
    expiry = datetime.now(UTC) + timedelta(hours=1)
    return AzureSasCredential(
        generate_table_sas(account.key, name, permission=TableSasPermissions(**permissions), expiry=expiry)
    )


def test_a_signature_need_not_create_a_table(account: Account, name: str) -> None:
    absent = sas(account, name, read=True, add=True)
    with pytest.raises(Rejected, match="TableNotFound"):
        Table.open(account.endpoint, Person, table=name, credential=absent)
    with Table.open(account.connection_string, Person, table=name):
        pass
    everything = sas(account, name, read=True, add=True, update=True, delete=True)
    with Table.open(account.endpoint, Person, table=name, credential=everything) as staff:
        staff.insert(ANN)
        assert staff.by(email=ANN.email).one() == ANN
    with Table.open(account.endpoint, Bag, table=name, credential=sas(account, name, add=True)) as bags:
        bags.insert(Bag(PartitionKey="p", RowKey="r"))


def test_a_signature_of_another_account_is_rejected(account: Account) -> None:
    other = Account(account.connection_string)
    expired = generate_account_sas(
        other.key,
        resource_types=ResourceTypes(service=True),
        permission=AccountSasPermissions(read=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    with pytest.raises(Rejected):
        Table.open(account.endpoint, Person, table="_", credential=AzureSasCredential(expired))


def test_an_encrypted_table_is_opened(connection_string: str, name: str) -> None:
    cipher = Cipher(KeyRing({"k": bytes(32)}, current="k"), ["Secret"])

    @entity
    class Safe:
        owner: Column[str] = partition()
        id: Column[str] = row()
        Secret: Column[str]

    with EncryptedTable.open(connection_string, Safe, table=name, cipher=cipher) as safes:
        safes.insert(Safe("ann", "1", "1234"))
        assert safes.where(Safe.owner == "ann").one().Secret == "1234"
        assert "1234" not in repr(safes.client.get_entity("ann", "1"))


def test_no_pattern_writes_a_class_without_its_indexes(table_client: TableClient) -> None:
    for kept in (Table(table_client, Person), Table.open(table_client, Person)):
        assert [type(each).__name__ for each in kept.checks()] == ["RowCheck", "IndexCheck"]
    for wrong in (
        lambda: Lease(table_client, EntityKey("p", "r"), Person),
        lambda: Stream(table_client, "s", Person),
        lambda: Copies(table_client, Person, []),
    ):
        with pytest.raises(SchemaError, match="keeps no indexes"):
            wrong()


def test_a_subclass_cannot_leave_out_an_index(table_client: TableClient) -> None:
    @entity(indexes=[Index("names", "name", "email")])
    class Member(Person):
        name: Column[str]

    @entity
    class Guest(Person):
        host: Column[str]

    both: Table[Member | Guest] = Table.open(table_client, Member | Guest)
    both.insert(Member("red", 1, "ann@contoso.com", "Ann"))
    with pytest.raises(NotUnique, match=r"^Person\.email: 'ann@contoso\.com' is that of \('red', "):
        both.insert(Guest("red", 2, "ann@contoso.com", "Ann"))
    both.insert(Guest("red", 2, "bob@contoso.com", "Ann"))
    assert [type(each) for each in both.by(email="bob@contoso.com")] == [Guest]
    assert [type(each) for each in both.by(name="Ann")] == [Member]
    assert both.where(Person.team == "red").count() == 2
    both.upsert(Guest("red", 2, "sue@contoso.com", "Ann"))
    both.insert(Member("red", 3, "bob@contoso.com", "Bob"))
    assert both.delete(Member("red", 1, "", ""))
    both.insert(Guest("red", 4, "ann@contoso.com", "Bob"))
    assert sorted(each.id for each in both.by(Person.email.starts_with(""))) == [2, 3, 4]


def test_a_class_has_its_indexes_once() -> None:
    with pytest.raises(SchemaError, match="declared already"):
        entity(Person)


def test_a_policy_holds_for_the_table(connection_string: str, name: str) -> None:
    with pytest.raises(ValueError, match="deadline"):
        Table.open(connection_string, Person, table=name, policy=Policy(deadline_seconds=600))
    with Table.open(connection_string, Bag, table=name, policy=Policy(marks=0)) as bags:
        bags.insert(Bag(PartitionKey="p", RowKey="r"))
        assert "_Op" not in bags.client.get_entity("p", "r")
