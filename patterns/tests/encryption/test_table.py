"""Tables with encrypted properties, on the service: all operations, blind indexes, migration, the auditor."""

import secrets
from dataclasses import replace
from uuid import uuid4

import pytest
from azure.data.tables import TableClient, UpdateMode
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns import Column, Index, QueryError, column, columns, entity, partition, row
from lazulite_patterns.aio.encryption import EncryptedTable as AsyncEncryptedTable
from lazulite_patterns.aio.encryption import reencrypt as async_reencrypt
from lazulite_patterns.auditing.run import audit
from lazulite_patterns.effects.sdk import stored
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Stored, Write
from lazulite_patterns.encryption import (
    Cipher,
    EncryptedTable,
    KeyRing,
    LegacyCipher,
    Undecryptable,
    WrappingKey,
    reencrypt,
)
from lazulite_patterns.encryption.checks import UNDECRYPTABLE
from lazulite_patterns.encryption.session import reencrypted
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.entities.errors import EntityValueError, SchemaError
from lazulite_patterns.outcomes import Conflict, Policy
from lazulite_patterns_simulation import Crash, Fault, FaultAt, Simulation, every_fault

from ..declared import indexed

OLD, NEW = secrets.token_bytes(32), secrets.token_bytes(32)
RING = KeyRing({"old": OLD, "new": NEW}, "new", blind=secrets.token_bytes(32))
CIPHER = Cipher(RING, ["email", "salary"], blind=["email"])
LEGACY = LegacyCipher(WrappingKey("k", secrets.token_bytes(32)), ["email"])


@entity
class Person:
    team: Column[str] = partition()
    name: Column[str] = row()
    email: Column[str]
    salary: Column[int]
    note: Column[str] = column(default="")


ANN = Person("Sales", "Ann", "ann@contoso.com", 5000)
BOB = Person("Sales", "Bob", "bob@contoso.com", 4000)


def test_the_service_never_sees_what_is_encrypted(table_client: TableClient) -> None:
    people = EncryptedTable(table_client, Person, cipher=CIPHER)
    people.insert(ANN)
    with people.transaction() as transaction:
        transaction.insert(BOB)
    rows = list(table_client.list_entities())
    assert all(isinstance(each["email"], bytes) and isinstance(each["salary"], bytes) for each in rows)
    assert b"contoso" not in b"".join(each["email"] for each in rows)
    assert people.get(ANN) == ANN
    people.merge(ANN, salary=6000, note="new")
    changed = people.update(ANN, lambda each: replace(each, email="jo@contoso.com"))
    assert changed == people.get(ANN) == Person("Sales", "Ann", "jo@contoso.com", 6000, "new")
    found = people.get(ANN)
    assert found is not None
    people.upsert(BOB)
    people.merge(ANN, note="newer")
    with pytest.raises(Conflict):
        people.replace(found)
    assert people.delete(BOB)
    assert list(people.where(scan=True)) == [replace(changed, note="newer")]


def test_indexes_of_other_properties_are_kept(table_client: TableClient) -> None:
    indexes = [Index("note", "note"), Index("name", "name", within_partition=True)]
    people = indexed(Person, indexes, lambda: EncryptedTable(table_client, Person, cipher=CIPHER))
    people.insert(ANN)
    people.merge(ANN, note="new", salary=1)
    people.update(ANN, lambda each: replace(each, note="newer", email="jo@contoso.com"))
    changed = Person("Sales", "Ann", "jo@contoso.com", 1, "newer")
    assert list(people.by(note="newer")) == list(people.by(name="Ann", team="Sales")) == [changed]
    assert list(people.by(note="new")) == []
    assert list(people.where(scan=True)) == [changed], "entries are no entities"
    assert list(audit(people)) == []
    table_client.delete_entity(*next(each.key for each in _entries(table_client)))
    (finding,) = audit(people, repair=True)
    assert finding.repaired
    assert b"contoso" not in repr(list(table_client.list_entities())).encode()


def _entries(client: TableClient) -> list[Stored]:
    rows = map(stored, client.list_entities())
    return [each for each in rows if "_Index" in each.key.partition_key]


@pytest.mark.parametrize(
    "index", [Index("email", "email"), Index("note", "note", copy=["salary"]), Index("e", "email", unique=True)]
)
def test_an_index_that_would_show_what_is_encrypted_is_rejected(table_client: TableClient, index: Index) -> None:
    with pytest.raises(SchemaError, match=r"which is encrypted\. A blind index"):
        indexed(Person, [index], lambda: EncryptedTable(table_client, Person, cipher=CIPHER))


def test_equal_values_are_found_by_the_blind_index(table_client: TableClient) -> None:
    people = EncryptedTable(table_client, Person, cipher=CIPHER)
    for each in (ANN, BOB):
        people.insert(each)
    p = columns(Person)
    assert list(people.where(p.team == "Sales", p.email == "bob@contoso.com")) == [BOB]
    assert list(people.where(p.team == "Sales", p.email == "Bob@contoso.com")) == []
    assert people.where(p.team == "Sales", p.note == "").count() == 2
    for condition in (p.email > "a", p.email != "a", p.salary == 5000, (p.email == "a") | (p.note == "")):
        with pytest.raises(QueryError, match="encrypted"):
            people.where(p.team == "Sales", condition)


def test_a_row_that_another_program_swapped_is_rejected_and_found(table_client: TableClient) -> None:
    people = EncryptedTable(table_client, Person, cipher=CIPHER)
    for each in (ANN, BOB):
        people.insert(each)
    assert list(audit(people)) == []
    bob = table_client.get_entity("Sales", "Bob")
    table_client.update_entity(
        {"PartitionKey": "Sales", "RowKey": "Ann", "salary": bob["salary"]}, mode=UpdateMode.MERGE
    )
    with pytest.raises(Undecryptable, match="salary"):
        people.get(ANN)
    assert [(each.kind, each.key.row_key) for each in audit(people)] == [(UNDECRYPTABLE, "Ann")]


def test_values_that_are_too_large_once_encrypted_are_rejected(table_client: TableClient) -> None:
    with pytest.raises(EntityValueError, match="65536 are allowed"):
        EncryptedTable(table_client, Person, cipher=CIPHER).insert(replace(ANN, email="\u20ac" * 22_000))


def test_old_entities_are_migrated(table_client: TableClient) -> None:
    old = EncryptedTable(table_client, Bag, cipher=LEGACY)
    for number in range(30):
        old.insert(Bag(PartitionKey="p", RowKey=f"{number:02}", email=f"{number}@contoso.com", salary=number))
    with pytest.raises(EntityValueError, match="no merge"):
        old.merge(EntityKey("p", "00"), email="x")
    assert [each["email"] for each in old.where(scan=True)][:2] == ["0@contoso.com", "1@contoso.com"]
    assert list(reencrypt(table_client, LEGACY, CIPHER)) == []
    new = EncryptedTable(table_client, Bag, cipher=CIPHER)
    assert [(each["email"], each["salary"]) for each in new.where(scan=True)] == [
        (f"{number}@contoso.com", number) for number in range(30)
    ]
    etags = [each.metadata["etag"] for each in table_client.list_entities()]
    assert list(reencrypt(table_client, LEGACY, CIPHER)) == []
    assert [each.metadata["etag"] for each in table_client.list_entities()] == etags, "a second run writes nothing"
    table_client.create_entity({"PartitionKey": "p", "RowKey": "x", "email": "plain"})
    (failure,) = reencrypt(table_client, LEGACY, CIPHER)
    assert "not encrypted" in failure


@pytest.mark.parametrize("old", [LEGACY, Cipher(KeyRing({"old": OLD}, "old"), ["email"])])
def test_a_migration_that_ends_anywhere_is_begun_again(old: LegacyCipher | Cipher) -> None:
    cipher, old = Cipher(RING, ["email"]).of("t"), old.of("t")

    def attempt(fault: FaultAt) -> None:
        simulation = Simulation()
        for number in range(3):
            key = EntityKey("p", str(number))
            row = old.encrypt(key, {"email": str(number)}, Kind.INSERT)
            simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.INSERT, key, row)))

        def rival() -> None:
            key = EntityKey("p", "1")
            row = old.encrypt(key, {"email": "new"}, Kind.PUT)
            simulation.world, _ = simulation.world.perform(Write("t", Operation(Kind.PUT, key, row)))

        fault.rival = rival
        simulation.runtime.failpoints = fault
        for _ in range(2):
            try:
                found = simulation.run(reencrypted("t", old, cipher, Policy(), None))
            except Crash:
                continue
            assert found.failures == ()
        plain = [cipher.decrypt(each.key, each.properties)["email"] for each in simulation.world.entities("t")]
        rival_wrote = fault.fault is Fault.RIVAL and fault.hit
        assert plain == ["0", "new" if rival_wrote else "1", "2"], "what a rival wrote stays"

    assert sum(1 for _ in every_fault(attempt, rival=lambda: None)) > 7 * 3


async def test_asynchronous_tables_are_encrypted_alike(connection_string: str, table_client: TableClient) -> None:
    rotated = Cipher(KeyRing({"old": OLD}, "old"), ["email", "salary"])
    EncryptedTable(table_client, Person, cipher=rotated).insert(ANN)
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        people = AsyncEncryptedTable(client, Person, cipher=CIPHER)
        assert await people.get(ANN) == ANN, "the old key still reads"
        assert list(await async_reencrypt(client, CIPHER, CIPHER)) == []
        p = columns(Person)
        assert [each async for each in people.where(p.team == "Sales", p.email == ANN.email)] == [ANN]
    with pytest.raises(Undecryptable):
        EncryptedTable(table_client, Person, cipher=rotated).get(ANN)


def test_a_ciphertext_of_another_table_is_rejected(connection_string: str, table_client: TableClient) -> None:
    with TableClient.from_connection_string(connection_string, f"T{uuid4().hex}", retry_total=0) as other:
        other.create_table()
        for client, salary in ((table_client, 5), (other, 999)):
            EncryptedTable(client, Person, cipher=CIPHER).upsert(replace(ANN, salary=salary))
        stolen = other.get_entity("Sales", "Ann")["salary"]
        other.delete_table()
    moved = {"PartitionKey": "Sales", "RowKey": "Ann", "salary": stolen}
    table_client.update_entity(moved, mode=UpdateMode.MERGE)
    with pytest.raises(Undecryptable, match="salary"):
        EncryptedTable(table_client, Person, cipher=CIPHER).get(ANN)


def test_a_hit_of_a_blind_index_is_compared_when_it_is_decrypted(table_client: TableClient) -> None:
    people = EncryptedTable(table_client, Person, cipher=CIPHER)
    for each in (ANN, BOB):
        people.insert(each)
    blind = table_client.get_entity("Sales", "Bob")["email_Blind"]
    foreign = {"PartitionKey": "Sales", "RowKey": "Ann", "email_Blind": blind}
    table_client.update_entity(foreign, mode=UpdateMode.MERGE)
    p = columns(Person)
    query = people.where(p.team == "Sales", p.email == BOB.email)
    assert list(query) == query.first(5) == [BOB]
    assert query.count() == 1
    assert query.exists()


def test_a_value_with_a_blind_index_is_cleared(table_client: TableClient) -> None:
    @entity
    class Loner:
        team: Column[str] = partition()
        name: Column[str] = row()
        email: Column[str | None] = column(default=None)

    people = EncryptedTable(table_client, Loner, cipher=Cipher(RING, ["email"], blind=["email"]))
    people.insert(Loner("Sales", "Eve", "e@x"))
    people.update(Loner("Sales", "Eve"), lambda each: replace(each, email=None))
    assert "email_Blind" not in table_client.get_entity("Sales", "Eve")
