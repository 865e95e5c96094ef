"""A unique value that passes between entities of one table in one transaction, in each spelling of the library."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.storage.queue import QueueClient

from lazulite_patterns import (
    Cipher,
    Column,
    Index,
    KeyRing,
    NotUnique,
    Outbox,
    QueryError,
    Tasks,
    column,
    entity,
    partition,
    row,
    unique,
)
from lazulite_patterns.aio import bulk as async_bulk
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.bulk import load
from lazulite_patterns.encryption import EncryptedTable
from lazulite_patterns.table.table import Table
from lazulite_patterns.table.transaction import Transaction

from ..declared import indexed


@entity
class Person:
    team: Column[str] = partition()
    name: Column[str] = row()
    email: Column[str | None] = column(default=None)
    secret: Column[str] = column(default="")


T = TypeVar("T")
ANN, BOB, CAT = (Person("s", name, name) for name in ("ann", "bob", "cat"))
START = (ANN, BOB, CAT)
ROTATED = tuple(replace(each, email=other.email) for each, other in zip(START, (BOB, CAT, ANN), strict=True))
REKEYED = (Person("s", "new", "ann"), BOB, CAT)


def table_of(make: Callable[[], T], within: bool) -> T:
    """Return a table whose class has a unique index."""
    return indexed(Person, [Index("email", "email", unique=True, within_partition=within)], make)


def found(table: Table[Person], email: str) -> list[Person]:
    """Return the entities with an email, by the index across partitions or within the partition."""
    try:
        return list(table.by(email=email))
    except QueryError:
        return list(table.by(email=email, team="s"))


def check(table: Table[Person], everyone: tuple[Person, ...]) -> None:
    """Each entity is found by its value, and no entry is left behind or names two entities."""
    rows = list(table.client.list_entities())
    assert sorted(table.where(scan=True), key=lambda each: each.name) == sorted(everyone, key=lambda each: each.name)
    for each in everyone:
        assert found(table, str(each.email)) == [each]
    entries = [each for each in rows if each["_Type"] == "_Index"]
    assert len(entries) == len(everyone)
    assert not [each for each in entries if "NextRow" in each]


def rotated(name: str) -> Callable[[Transaction[Person], tuple[Person, ...]], None]:
    """Return what rotates the emails of entities that were read."""

    def write(transaction: Transaction[Person], read: tuple[Person, ...]) -> None:
        for each, new in zip(read, ROTATED, strict=True):
            if name in {"merge", "update"}:
                getattr(transaction, name)(each, email=new.email)
            else:
                getattr(transaction, name)(replace(each, email=new.email))

    return write


def rekeyed(transaction: Transaction[Person], read: tuple[Person, ...]) -> None:
    transaction.delete(read[0])
    transaction.insert(REKEYED[0])


SPELLINGS = {
    **{name: (rotated(name), ROTATED) for name in ("upsert", "insert_or_merge", "replace", "merge", "update")},
    "delete and insert": (rekeyed, REKEYED),
}


@pytest.mark.parametrize("within", [False, True])
def test_each_write_of_a_transaction_passes_a_value(
    table_client: TableClient, queue_client: QueueClient, within: bool
) -> None:
    cipher = Cipher(KeyRing({"k": secrets.token_bytes(32)}, "k"), ["secret"])
    plain = table_of(lambda: Table(table_client, Person), within)
    encrypted = table_of(lambda: EncryptedTable(table_client, Person, cipher=cipher), within)
    bound = table_of(lambda: Table(table_client, Person, outbox=True), within)
    with Tasks(queue_client, [mails := Outbox("mails", bound, lambda _: None)]) as tasks:
        for table, begin, names in (
            (plain, plain.transaction, SPELLINGS),
            (encrypted, encrypted.transaction, ["replace"]),
            (bound, partial(tasks.transaction, mails, "x"), ["replace"]),
        ):
            for name in names:
                write, expected = SPELLINGS[name]
                with table.transaction() as transaction:
                    for each in START:
                        transaction.insert(each)
                read = tuple(table.where(scan=True))
                with begin() as transaction:
                    write(transaction, read)
                check(table, expected)
                with table.transaction() as transaction:
                    for each in expected:
                        transaction.delete(each)
    assert list(table_client.list_entities()) == []


@pytest.mark.parametrize("within", [False, True])
def test_a_load_passes_values_though_one_of_its_rows_is_rejected(table_client: TableClient, within: bool) -> None:
    table = table_of(lambda: Table(table_client, Person), within)
    people = [Person("s", f"{number:02}", f"mail{number}") for number in range(10)]
    taken = Person("s", "zoe", "taken")
    assert load(table, [*people, taken]).failures == ()
    turned = tuple(replace(each, email=people[number - 1].email) for number, each in enumerate(people))
    wrong = Person("s", "05a", "taken")
    report = load(table, [*turned[:6], wrong, *turned[6:]])
    assert [(each.number, each.key and each.key.row_key) for each in report.failures] == [(6, "05a")]
    assert report.progress.transactions == 2
    check(table, (*turned, taken))


async def test_asynchronous_programs_have_the_same(table_client: TableClient, connection_string: str) -> None:
    table = table_of(lambda: Table(table_client, Person), within=False)
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        other = table_of(lambda: AsyncTable(client, Person), within=False)
        assert (await async_bulk.load(other, START)).failures == ()
        assert (await async_bulk.load(other, ROTATED)).failures == ()
        check(table, ROTATED)
        async with other.transaction() as transaction:
            for each in START:
                transaction.upsert(each)
    check(table, START)


def test_a_value_passes_to_an_entity_of_a_subclass(table_client: TableClient) -> None:
    @entity
    class Base:
        team: Column[str] = partition()
        name: Column[str] = row()
        email: Column[str] = unique()

    @entity
    class Derived(Base):
        level: Column[int] = column(default=0)

    table = Table(table_client, Base | Derived)
    table.insert(one := Base("s", "a", "1"))
    table.insert(two := Derived("s", "b", "2"))
    with table.transaction() as transaction:
        transaction.upsert(replace(one, email="2"))
        transaction.upsert(replace(two, email="1"))
    assert [table.by(email=each).one().name for each in ("1", "2")] == ["b", "a"]


def test_an_error_names_the_write_whose_value_is_taken(table_client: TableClient) -> None:
    table = table_of(lambda: Table(table_client, Person), within=False)
    table.insert(CAT)
    for last in (CAT.email, "ann"):  # That of another row, or of the same transaction.
        with pytest.raises(NotUnique) as caught, table.transaction() as transaction:  # noqa: PT012 - it ends with the commit
            transaction.insert(ANN)
            transaction.insert(replace(BOB, email=last))
        assert caught.value.index == 1
    with pytest.raises(NotUnique) as caught:
        table.insert(replace(BOB, email="cat"))
    assert caught.value.index is None


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize(("names", "after"), [("ab", "12"), ("ab", "m1"), ("ba", "m1"), ("ba", "12")])
def test_one_transaction_corrects_two_entities_to_which_another_program_gave_one_value(
    table_client: TableClient, within: bool, names: str, after: str
) -> None:
    table = table_of(lambda: Table(table_client, Person), within)
    for name in "ab":
        table.insert(Person("s", name, f"m{name}"))
    table.update(Person("s", names[0], None), lambda each: replace(each, email="m"))
    table_client.update_entity({"PartitionKey": "s", "RowKey": names[1], "email": "m"})
    with table.transaction() as transaction:
        for name, email in zip("ab", after, strict=True):
            transaction.upsert(Person("s", name, email))
    for name, email in zip("ab", after, strict=True):
        assert [each.name for each in found(table, email)] == [name]
