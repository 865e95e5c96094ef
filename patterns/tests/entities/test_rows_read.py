"""The version that was read travels with an entity; classes that cannot carry it are rejected."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic
import pytest
from azure.data.tables import TableClient, UpdateMode

from lazulite_patterns import Column, SchemaError, column, entity, partition, row
from lazulite_patterns.entities import stored_of
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.outcomes import Conflict
from lazulite_patterns.table.table import Table


@entity
class Frozen:
    p: Column[str] = partition()
    r: Column[str] = row()
    n: Column[int] = column(default=0)


@entity
@dataclass
class Mutable:
    p: Annotated[str, partition()]
    r: Annotated[str, row()]
    n: int = 0

    def __post_init__(self) -> None:
        self.n = int(self.n)


@entity
class Struct(msgspec.Struct, dict=True):
    p: Annotated[str, partition()]
    r: Annotated[str, row()]
    n: int = 0


@entity
class FrozenStruct(msgspec.Struct, frozen=True, dict=True):
    p: Annotated[str, partition()]
    r: Annotated[str, row()]
    n: int = 0


@entity
class Model(pydantic.BaseModel):
    p: Annotated[str, partition()]
    r: Annotated[str, row()]
    n: int = 0


@entity
class Typed(TypedDict):
    p: Annotated[str, partition()]
    r: Annotated[str, row()]
    n: int


KINDS: list[Any] = [Frozen, Mutable, Struct, FrozenStruct, Model, Typed]


def changed_by_another(client: TableClient) -> None:
    client.upsert_entity({"PartitionKey": "p", "RowKey": "r", "Other": 1}, mode=UpdateMode.MERGE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("copied", [lambda read: read, copy.copy, copy.deepcopy], ids=["read", "copied", "deeply"])
def test_what_was_read_is_written_only_if_the_row_is_the_same(
    table_client: TableClient, kind: Any, copied: Callable[[Any], Any]
) -> None:
    table = Table(table_client, kind)
    table.upsert(kind(p="p", r="r", n=1))
    read = copied(table.get(kind(p="p", r="r", n=0)))
    assert read == kind(p="p", r="r", n=1)
    changed_by_another(table_client)
    with pytest.raises(Conflict):
        table.delete(read)
    with pytest.raises(Conflict):
        table.replace(read)
    again = copied(table.get(read))
    table.replace(again)
    assert table_client.get_entity("p", "r")["Other"] == 1, "what another program added stays"
    assert table.delete(copied(table.get(read))) is True


def test_a_changed_dictionary_is_still_the_one_that_was_read(table_client: TableClient) -> None:
    table: Table[Typed] = Table(table_client, Typed)
    table.upsert(Typed(p="p", r="r", n=1))
    read = table.get(Typed(p="p", r="r", n=0))
    assert read is not None
    changed_by_another(table_client)
    for changed in (read.copy(), read | {"n": 2}):
        for write in (table.replace, table.delete):
            with pytest.raises(Conflict):
                write(changed)
    again = table.get(read)
    assert again is not None
    table.replace(again | {"n": 3})
    entity = table_client.get_entity("p", "r")
    assert (entity["n"].value, entity["Other"]) == (3, 1)


@pytest.mark.parametrize("kind", [Frozen, Mutable])
def test_a_changed_dataclass_is_still_the_one_that_was_read(table_client: TableClient, kind: Any) -> None:
    table: Table[Any] = Table(table_client, kind)

    def get() -> Any:
        return table.get(kind("p", "r"))

    table.upsert(kind("p", "r", 1))
    stale = dataclasses.replace(get(), n=2)
    changed_by_another(table_client)
    for write in (table.replace, table.delete):
        with pytest.raises(Conflict):
            write(stale)
    table.replace(dataclasses.replace(get(), n=3))
    read = get()
    assert dataclasses.asdict(read) == {"p": "p", "r": "r", "n": 3}
    assert [each.name for each in dataclasses.fields(read)] == ["p", "r", "n"]
    assert repr(read).endswith("(p='p', r='r', n=3)")
    for other in (copy.deepcopy(read), pickle.loads(pickle.dumps(read))):
        assert stored_of(dataclasses.replace(other, n=4)) == stored_of(read)


def test_an_updated_entity_is_that_of_the_new_row(table_client: TableClient) -> None:
    table = Table(table_client, Frozen)
    table.upsert(Frozen("p", "r", 1))
    updated = table.update(Frozen("p", "r"), lambda each: dataclasses.replace(each, n=2))
    assert table_client.get_entity("p", "r").metadata["etag"] == getattr(stored_of(updated), "etag", None)
    table.replace(dataclasses.replace(updated, n=3))
    with pytest.raises(Conflict):
        table.delete(updated)


def test_an_entity_with_other_keys_is_not_the_one_that_was_read(table_client: TableClient) -> None:
    table = Table(table_client, Frozen)
    table.upsert(Frozen("p", "r", 1))
    read = table.get(Frozen("p", "r"))
    assert read is not None
    for write in (table.replace, table.delete):
        with pytest.raises(EntityValueError, match="was read as"):
            write(dataclasses.replace(read, r="s"))


def test_a_class_that_derives_from_an_entity_has_its_own_fields() -> None:
    @entity
    class Derived(Mutable):
        more: Column[int] = column(default=1)

        def __post_init__(self) -> None:
            assert self.more, "it is called without a row"

    assert dataclasses.replace(Derived("p", "r"), more=2) == Derived("p", "r", 0, 2)


def test_classes_without_room_are_rejected() -> None:
    with pytest.raises(SchemaError, match="slots=True there is no room"):

        @entity
        @dataclass(slots=True)
        class Slots:
            p: Annotated[str, partition()]
            r: Annotated[str, row()]

    with pytest.raises(SchemaError, match="dict=True there is no room"):

        @entity
        class Plain(msgspec.Struct):
            p: Annotated[str, partition()]
            r: Annotated[str, row()]
