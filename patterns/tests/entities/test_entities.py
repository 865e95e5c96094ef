"""Entities of each kind of class come back from the service as they were."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any
from uuid import UUID

import pytest
from azure.data.tables import EntityProperty, TableClient, UpdateMode
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lazulite_patterns import (
    Column,
    EntityFormatError,
    EntityValueError,
    SchemaError,
    Ticks,
    column,
    entity,
    partition,
    row,
    text,
    upgrade,
)
from lazulite_patterns.effects.sdk import stored
from lazulite_patterns.effects.tables import EntityKey, Stored
from lazulite_patterns.entities import Schema, Schemas, schema_of, stored_of
from lazulite_patterns.keys import bucket, integer
from lazulite_patterns.keys.times import TICKS_MAX

from .classes import Address, Colour, Department, Employee, Everything, Level, Note, Open, Place

JONES = Employee("Sales", 42, "jones@example.org", 35, Address("Rome", Place("Appia", 7)), ["a", "b"])


def service_value(row: Stored, name: str) -> str:
    """Return the text that the service has for a time."""
    return str(getattr(row.properties.get(name), "tables_service_value", None))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TIME_MIN = datetime(1601, 1, 1)
TICKS_MIN = Ticks.of(TIME_MIN.replace(tzinfo=UTC))


def there_and_back(client: TableClient, value: Any) -> tuple[Stored, Any]:
    """Write an entity, and return the row that the service has and the entity that is read from it."""
    properties = schema_of(type(value)).encode(value)
    client.upsert_entity(properties, mode=UpdateMode.REPLACE)
    row = stored(client.get_entity(str(properties["PartitionKey"]), str(properties["RowKey"])))
    return row, schema_of(type(value)).decode(row)


def test_a_dataclass_with_flattened_and_json_fields(table_client: TableClient) -> None:
    row, found = there_and_back(table_client, JONES)
    assert found == JONES
    assert dict(row.properties) == {
        "PartitionKey": "dept!Sales",
        "RowKey": "empid!000042",
        "_Type": "Employee",
        "_Version": 3,
        "email": "jones@example.org",
        "age": 35,
        "address_city": "Rome",
        "address_place_street": "Appia",
        "address_place_number": EntityProperty(7, "Edm.Int64"),
        "notes": '["a","b"]',
    }
    assert stored_of(found) == row
    assert stored_of(JONES) is None


EVERYTHING = st.builds(
    Everything,
    st.text(st.sampled_from("ab/! "), max_size=4),
    TEXTS,
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.binary(max_size=20),
    st.one_of(st.none(), st.datetimes(min_value=TIME_MIN, timezones=st.just(UTC))),
    st.one_of(st.none(), st.integers(TICKS_MIN, TICKS_MAX).map(Ticks)),
    st.one_of(st.none(), st.uuids()),
    st.sampled_from(Colour),
    st.sampled_from(Level),
    st.dates(),
    st.sampled_from(["new", "done"]),
    TEXTS,
    st.dictionaries(TEXTS, st.lists(st.integers(-9, 9)), max_size=2),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # Each case replaces its entity.
@given(value=EVERYTHING)
def test_every_type_comes_back_and_is_written_the_same_again(table_client: TableClient, value: Everything) -> None:
    row, found = there_and_back(table_client, value)
    assert found == value
    again, _ = there_and_back(table_client, found)
    assert again.properties == row.properties
    for name in ("time", "ticks"):
        assert service_value(row, name) == service_value(again, name), "all seven digits stay"


def test_seven_digits_of_another_writer_stay(table_client: TableClient) -> None:
    properties = schema_of(Everything).encode(Everything("x"))
    time = EntityProperty("2014-07-31T18:30:00.1234567Z", "Edm.DateTime")
    table_client.create_entity({**properties, "time": time, "ticks": time, "foreign": time})
    row = stored(table_client.get_entity(str(properties["PartitionKey"]), "x"))
    found = schema_of(Everything).decode(row)
    assert found.ticks == Ticks(635424282001234567)
    again, _ = there_and_back(table_client, found)
    for name in ("time", "ticks", "foreign"):
        assert service_value(again, name) == time.value


def test_a_typed_dict_is_a_mapping(table_client: TableClient) -> None:
    note = Note(owner="ann", number=7, title="t")
    schemas = Schemas(Note)
    properties = schemas.of(note).encode(note)
    table_client.create_entity(properties)
    assert schemas.decode(stored(table_client.get_entity("ann", "0007"))) == note


def test_times_are_stored_in_utc(table_client: TableClient) -> None:
    local = datetime(2014, 7, 31, 20, 30, tzinfo=timezone(timedelta(hours=2)))
    row, found = there_and_back(table_client, Everything("x", time=local))
    assert service_value(row, "time").startswith("2014-07-31T18:30:00")
    assert found.time == local


def row_of(value: Any, **changed: object) -> Stored:
    properties = {**schema_of(type(value)).encode(value), **changed}
    return Stored({name: each for name, each in properties.items() if each is not None}, "etag")


def test_unknown_properties_survive() -> None:
    found = schema_of(Employee).decode(row_of(JONES, Foreign="x", _Op="ring"))
    assert found == JONES
    again = schema_of(Employee).encode(found)
    assert again["Foreign"] == "x"
    assert "_Op" not in again
    opened = schema_of(Open).decode(row_of(Open("o", "n"), Foreign="x"))
    assert opened.rest == {"Foreign": "x"}
    assert schema_of(Open).encode(replace(opened, name="m"))["Foreign"] == "x", "a field survives dataclasses.replace"
    with pytest.raises(EntityValueError, match=r"Open\._Type"):
        schema_of(Open).encode(Open("o", "n", {"_Type": "x"}))


def test_none_is_absent_and_absent_is_the_default() -> None:
    assert "manager" not in schema_of(Employee).encode(JONES)
    bare = row_of(JONES, age=None, notes=None, address_city=None, address_place_street=None, address_place_number=None)
    assert schema_of(Employee).decode(bare) == Employee("Sales", 42, JONES.email)
    with pytest.raises(EntityFormatError, match=r"Employee\.email: the row has no such property"):
        schema_of(Employee).decode(row_of(JONES, email=None))
    with pytest.raises(EntityValueError, match=r"Employee\.email: None is not allowed"):
        schema_of(Employee).encode(replace(JONES, email=None))  # type: ignore[arg-type] # it is the mistake
    with pytest.raises(EntityValueError, match=r"Employee\.address: None is not allowed"):
        schema_of(Employee).encode(replace(JONES, address=None))  # type: ignore[arg-type] # it is the mistake


def test_older_versions_are_lifted() -> None:
    first = row_of(JONES, _Version=None, email=None, user="Jones", host="Example.org")
    assert schema_of(Employee).decode(first).email == "jones@example.org"
    assert schema_of(Employee).decode(row_of(JONES, _Version=2, email="A@B")).email == "a@b"
    for wrong in (4, 0, "3"):
        with pytest.raises(EntityFormatError, match=r"is not from 1 to 3"):
            schema_of(Employee).decode(row_of(JONES, _Version=wrong))
    with pytest.raises(SchemaError, match="version 2"):
        upgrade(Employee, 2)

    @entity(version=2)
    class Unready:
        name: Column[str] = partition()
        row: Column[str] = row()

    with pytest.raises(EntityFormatError, match="nothing upgrades version 1"):
        schema_of(Unready).decode(row_of(Unready("a", "b"), _Version=1))


def test_several_classes_in_one_table() -> None:
    schemas = Schemas[Employee | Department](Employee | Department)
    sales = Department("Sales")
    for value in (JONES, sales):
        assert schemas.decode(row_of(value)) == value
        assert schemas.decode(row_of(value, _Type=None)) == value, "its keys tell the class"
        assert schemas.of(value).key(value).partition_key == "dept!Sales"
    with pytest.raises(EntityFormatError, match="no class of the table: type 'Other'"):
        schemas.decode(row_of(sales, _Type="Other"))
    with pytest.raises(EntityFormatError, match="no class"):
        schemas.decode(row_of(sales, _Type=None, RowKey="other!x"))
    with pytest.raises(EntityFormatError, match="several classes"):
        Schemas[Note | Open](Note | Open).decode(Stored({"PartitionKey": "a", "RowKey": "0001"}, ""))
    with pytest.raises(EntityValueError, match="no entities of class Open"):
        schemas.of(Open("a", "b"))  # type: ignore[arg-type] # it is the mistake
    with pytest.raises(EntityFormatError, match="the row is of type 'Department'"):
        schema_of(Employee).decode(row_of(sales))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"email": 5}, "Employee.email"),
        ({"age": EntityProperty(5, "Edm.Int64")}, "Employee.age"),
        ({"age": True}, "Employee.age"),
        ({"notes": "{"}, "Employee.notes"),
        ({"notes": "[1]"}, "Employee.notes"),
        ({"address_place_number": 1.5}, "Place.address_place_number"),
        ({"RowKey": "empid!42"}, "Employee.RowKey"),
        ({"PartitionKey": "Sales"}, "Employee.PartitionKey"),
    ],
)
def test_foreign_rows_are_rejected(changed: dict[str, object], message: str) -> None:
    with pytest.raises(EntityFormatError, match=re.escape(message)):
        schema_of(Employee).decode(row_of(JONES, **changed))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"email": 5}, "Employee.email: 5 is no str"),
        ({"age": 2**31}, "Employee.age: 2147483648 has more than 32 bits"),
        ({"age": True}, "Employee.age: True is no int"),
        ({"department": "a\n"}, "Employee.department: the character U+000A"),
        ({"id": 10**6}, "Employee.id: 1000000 is not from 0 to 999999"),
        ({"notes": [object()]}, "Employee.notes"),
    ],
)
def test_values_of_other_types_are_rejected(change: dict[str, Any], message: str) -> None:
    with pytest.raises(EntityValueError, match=re.escape(message)):
        schema_of(Employee).encode(replace(JONES, **change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"int64": 2**63}, "more than 64 bits"),
        ({"time": datetime(2020, 1, 1)}, "no time zone"),
        ({"time": datetime(1600, 12, 31, tzinfo=UTC)}, "before 1601"),
        ({"ticks": Ticks(0)}, "before 1601"),
        ({"colour": "red"}, "no Colour"),
        ({"state": "old"}, "Everything.state"),
        ({"day": "2020"}, "Everything.day"),
    ],
)
def test_values_that_the_service_has_not_are_rejected(change: dict[str, Any], message: str) -> None:
    with pytest.raises(EntityValueError, match=message):
        schema_of(Everything).encode(Everything("x", **change))


def test_another_writers_int32_is_an_int64() -> None:
    assert schema_of(Everything).decode(row_of(Everything("x"), int64=7, real=7)).int64 == 7


def test_a_bucket_of_another_key() -> None:
    keys = [schema_of(Everything).key(Everything(str(number))) for number in range(50)]
    assert {each.partition_key for each in keys} == {"0", "1", "2", "3"}
    assert keys[7] == EntityKey(keys[7].partition_key, "7")


def declare(**fields: object) -> Callable[[], object]:
    return lambda: entity()(type("Wrong", (), {"__annotations__": fields}))


KEYS = {"a": Annotated[str, partition()], "b": Annotated[str, row()]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (declare(a=Annotated[str, partition()]), "no column is part of the RowKey"),
        (declare(**KEYS, c=list[str]), "Wrong.c: list[str] is no type of a property"),
        (declare(**KEYS, c=Annotated[list[str], column(form="flat")]), "only a class can be flat"),
        (declare(**KEYS, c=Annotated[Open, column(form="flat")]), "a flat class has no keys"),
        (declare(**KEYS, Timestamp=str), "no property can have the name Timestamp"),
        (declare(**KEYS, d="NoSuchType"), "NoSuchType"),
        (lambda: partition(integer(2), integer(3)), "one component of a key"),
        (lambda: row(4), "4 is no component"),
        (lambda: entity(version=0)(Place), "versions begin with 1"),
        (lambda: entity(partition=[bucket(4)])(Place), "random bucket|RowKey"),
        (lambda: schema_of(Place), "is not declared with @entity"),
        (lambda: Schemas(Employee | entity(type="Employee")(type("Other", (Department,), {}))), "the same type"),
        (lambda: entity(Department), "is declared already"),
    ],
)
def test_wrong_classes_are_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(message) if "|" not in message else message):
        make()


def test_a_pydantic_model_is_an_entity() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = type(
        "Model", (pydantic.BaseModel,), {"__annotations__": {**KEYS, "c": int}, "c": 5, "__module__": __name__}
    )
    declared: Any = entity()(model)
    assert schema_of(declared).decode(row_of(declared(a="x", b="y"))) == declared(a="x", b="y", c=5)


def test_dataclasses_are_made_once() -> None:
    @dataclass(frozen=True)
    class Frozen:
        a: Annotated[str, partition()]
        b: Annotated[str, row()]

    assert entity()(Frozen) is Frozen
    found = schema_of(Frozen).decode(row_of(Frozen("x", "y")))
    assert found == Frozen("x", "y")
    assert stored_of(found) is not None, "what was read stays beside the fields of a frozen class"


@given(st.datetimes(timezones=st.just(UTC)))
def test_ticks_of_a_time_are_that_time(time: datetime) -> None:
    assert Ticks.of(time).datetime == time


@pytest.mark.parametrize("value", [datetime(2014, 7, 31, tzinfo=UTC), UUID(int=7), b"\x00", "a/b"])
def test_a_part_of_a_key_has_the_component_of_its_type(value: object) -> None:
    kind = type(value)
    made: Any = entity(type("Right", (), {"__annotations__": {**KEYS, "b": Annotated[kind, row()]}}))
    schema: Schema[object] = schema_of(made)
    assert schema.row.values(schema.key(made("a", value)).row_key) == {"b": value}


@pytest.mark.parametrize("kind", [int, datetime, UUID, bytes])
def test_a_part_of_a_key_has_no_component_of_another_type(kind: type) -> None:
    """A text for a number would fail at the first write."""
    for fields, message in (
        ({**KEYS, "b": Annotated[int, row()]}, r"Wrong\.b: name its component, as in row\(width=6\)"),
        ({**KEYS, "b": Annotated[kind, row(text())]}, r"Wrong\.b: the component of a key is of str"),
    ):
        with pytest.raises(SchemaError, match=message):
            entity(type("Wrong", (), {"__annotations__": fields}))
