"""Tables of classes and of property bags, on the service."""

from dataclasses import dataclass, replace
from typing import Annotated

import msgspec
import pytest
from azure.data.tables import EntityProperty, TableClient

from lazulite_patterns import Column, EntityValueError, column, entity, partition, row
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.keys import integer, literal
from lazulite_patterns.outcomes import Absent, Conflict, Exists, Policy
from lazulite_patterns.table.table import Table


@dataclass(frozen=True)
class Address:
    city: str
    street: str = ""


@entity
class Member:
    club: Column[str] = partition()
    id: Column[int] = row(literal("member"), integer(4))
    name: Column[str]
    rentals: Column[int] = column(form="int32", default=0)
    address: Column[Address] = column(form="flat", default=Address("Rome"))
    phone: Column[str | None] = column(default=None)


@entity(row=[literal("rental")])
class Rental(msgspec.Struct, frozen=True, dict=True):
    club: Annotated[str, partition()]
    film: Annotated[str, row()]
    member: int = 0


ANN = Member("north", 7, "ann")
KEY = EntityKey("north", "member!0007")


@pytest.fixture
def table(table_client: TableClient) -> Table[Member | Rental]:
    return Table[Member | Rental](table_client, Member | Rental)


def test_an_entity_s_life(table: Table[Member | Rental]) -> None:
    assert table.get(ANN) is None
    table.insert(ANN)
    with pytest.raises(Exists):
        table.insert(ANN)
    found = table.get(KEY)
    assert found == ANN
    assert isinstance(found, Member)
    table.merge(KEY, rentals=3, address=Address("Paris", "Rue"))
    assert table.get(ANN) == replace(ANN, rentals=3, address=Address("Paris", "Rue"))
    with pytest.raises(Conflict):
        table.replace(found)
    with pytest.raises(Conflict):
        table.delete(found)
    table.upsert(replace(ANN, phone="1"))
    assert table.update(ANN, lambda each: replace(each, phone=None) if isinstance(each, Member) else each) == ANN
    assert table.get(ANN) == ANN
    assert table.delete(ANN) is True
    assert table.delete(ANN) is False
    for missing in (lambda: table.update(KEY, lambda each: each), lambda: table.merge(KEY, rentals=1)):
        with pytest.raises(Absent):
            missing()


def test_what_was_read_is_replaced(table: Table[Member | Rental]) -> None:
    table.insert(ANN)
    found = table.get(ANN)
    assert isinstance(found, Member)
    object.__setattr__(found, "name", "anna")
    table.replace(found)
    assert table.get(ANN) == replace(ANN, name="anna")
    with pytest.raises(ValueError, match="only an entity that was read"):
        table.replace(ANN)


def test_an_update_keeps_what_other_programs_added_unless_it_is_removed(table: Table[Member | Rental]) -> None:
    table.insert(ANN)
    table.client.update_entity({"PartitionKey": "north", "RowKey": "member!0007", "Foreign": 1, "Old": 2})
    table.update(ANN, lambda each: replace(each, rentals=1) if isinstance(each, Member) else each, remove=["Old"])
    row = table.client.get_entity(*KEY)
    assert (row["Foreign"], row["rentals"], row.get("Old")) == (1, 1, None)
    with pytest.raises(ValueError, match="cannot change the keys"):
        table.update(ANN, lambda each: replace(each, id=8) if isinstance(each, Member) else each)


def test_a_rival_is_rebased_or_raised(table: Table[Member | Rental]) -> None:
    table.insert(ANN)
    calls: list[int] = []

    def change(each: Member | Rental) -> Member | Rental:
        assert isinstance(each, Member)
        calls.append(each.rentals)
        if len(calls) < 3:
            table.merge(ANN, rentals=each.rentals + 10)
        return replace(each, rentals=each.rentals + 1)

    assert table.update(ANN, change) == replace(ANN, rentals=21)
    assert calls == [0, 10, 20]
    for attempts, policy in ((8, "raise"), (1, "rebase")):
        calls.clear()
        with pytest.raises(Conflict):
            table.update(ANN, change, attempts=attempts, on_conflict=policy)  # type: ignore[arg-type] # literals
        assert len(calls) == 1


def test_a_transaction_is_all_or_nothing(table: Table[Member | Rental]) -> None:
    table.insert(ANN)
    member = table.get(ANN)
    assert isinstance(member, Member)
    with table.transaction("north") as partition:
        partition.insert(Rental("north", "Alien", 7))
        partition.update(member, rentals=member.rentals + 1)
    assert partition.written is not None
    assert len(partition.written.etags) == 2
    assert table.get(ANN) == replace(ANN, rentals=1)

    def rent_again() -> None:
        with table.transaction() as partition:
            partition.upsert(Rental("north", "Brazil", 7))
            partition.update(member, rentals=5)

    with pytest.raises(Conflict) as conflict:
        rent_again()
    assert conflict.value.index == 1
    assert table.get(Rental("north", "Brazil")) is None
    with table.transaction() as partition:
        partition.delete(Rental("north", "Alien"))
        partition.merge(ANN, name="anna")
    assert table.get(Rental("north", "Alien")) is None
    with table.transaction() as partition:
        pass
    assert partition.written is None


def test_a_block_that_raises_sends_nothing(table: Table[Member | Rental]) -> None:
    def fail() -> None:
        with table.transaction() as partition:
            partition.insert(ANN)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert table.get(ANN) is None


def test_wrong_transactions_are_rejected_before_sending(table: Table[Member | Rental]) -> None:
    with table.transaction("south") as partition, pytest.raises(ValueError, match="is not in the partition"):
        partition.insert(ANN)

    def write_twice() -> None:
        with table.transaction() as partition:
            partition.insert(ANN)
            partition.delete(ANN)

    def write_many() -> None:
        with table.transaction() as partition:
            for number in range(101):
                partition.insert(replace(ANN, id=number))

    for write, message in ((write_twice, "written twice"), (write_many, "100 operations")):
        with pytest.raises(ValueError, match=message):
            write()
    assert list(table.client.list_entities()) == []


def test_wrong_merges_are_rejected_before_sending(table: Table[Member | Rental]) -> None:
    with pytest.raises(EntityValueError, match=r"Member\.phone: a merge cannot remove it"):
        table.merge(ANN, phone=None)
    with pytest.raises(EntityValueError, match=r"Member\.club: no property"):
        table.merge(ANN, club="south")
    with pytest.raises(EntityValueError, match="are not the keys of one class"):
        table.merge(EntityKey("north", "other"), phone="1")
    with pytest.raises(EntityValueError, match="32768 are allowed"):
        table.merge(ANN, name="x" * 32_769)


def test_property_bags_come_back_typed(table_client: TableClient) -> None:
    table = Table(table_client, Bag)
    bag = Bag(PartitionKey="p", RowKey="r", N=EntityProperty(5, "Edm.Int64"), M=5, B=b"x", None_=None)
    table.insert(bag)
    found = table.get(bag)
    assert found == Bag(PartitionKey="p", RowKey="r", N=EntityProperty(5, "Edm.Int64"), M=5, B=b"x")
    assert found is not None
    found["M"] = 6
    table.replace(found)
    with pytest.raises(Conflict):
        table.replace(found)
    with pytest.raises(EntityValueError, match="a mapping with the texts"):
        table.insert(Bag(PartitionKey="p"))
    with pytest.raises(EntityValueError, match="cannot remove"):
        table.merge(bag, M=None)
    assert set(table_client.get_entity("p", "r")) == {"PartitionKey", "RowKey", "N", "M", "B", "_Op"}


def test_marks_can_be_left_out(table_client: TableClient) -> None:
    Table(table_client, Bag, policy=Policy(marks=0)).insert(Bag(PartitionKey="p", RowKey="r"))
    assert "_Op" not in table_client.get_entity("p", "r")
