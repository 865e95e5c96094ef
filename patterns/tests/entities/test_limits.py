"""The limits are the service's: an entity is rejected before it is sent exactly where the service rejects it."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EntityProperty, TableClient, UpdateMode
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lazulite_patterns import EntityValueError
from lazulite_patterns.entities.bags import Bag as Rows
from lazulite_patterns.entities.limits import ENTITY_BYTES_MAX, check, entity_size
from lazulite_patterns.table.table import Table

KEYS = {"PartitionKey": "p", "RowKey": "r"}
Bag = dict[str, object]


def service_takes(client: TableClient, properties: Bag) -> bool:
    try:
        client.upsert_entity({**KEYS, **properties}, mode=UpdateMode.REPLACE)
    except HttpResponseError:
        return False
    return True


def library_takes(properties: Bag) -> bool:
    try:
        check("Entity", {**KEYS, **properties})
    except EntityValueError:
        return False
    return True


def filled(over: int) -> Bag:
    """Return properties whose entity has 1 MiB and `over` bytes, by binaries."""
    properties: Bag = {f"P{number:02d}": bytes(65_000) for number in range(16)}
    properties["Rest"] = b""
    missing = ENTITY_BYTES_MAX + over - entity_size({**KEYS, **properties})
    return {**properties, "Rest": bytes(missing)}


@pytest.mark.parametrize(
    ("properties", "taken"),
    [
        ({f"P{number}": 1 for number in range(252)}, True),
        ({f"P{number}": 1 for number in range(253)}, False),
        ({f"P{number}": None for number in range(300)} | {"P": None}, True),
        ({"N" * 255: 1}, True),
        ({"N" * 256: 1}, False),
        ({"T": "x" * 32_768}, True),
        ({"T": "x" * 32_769}, False),
        ({"T": "\U0001f600" * 16_384}, True),
        ({"T": "\U0001f600" * 16_384 + "x"}, False),
        ({"T": EntityProperty("x" * 32_769, "Edm.String")}, False),
        ({"B": bytes(65_536)}, True),
        ({"B": bytes(65_537)}, False),
        ({"T": "\ud800"}, True),
        ({"T": "\x00\x1f\uffff"}, True),
        (filled(0), True),
        (filled(1), False),
        ({"G": EntityProperty("00000000-0000-0000-0000-000000000000", "Edm.Guid")}, True),
    ],
)
def test_a_limit_is_the_service_s(table_client: TableClient, properties: Bag, taken: bool) -> None:
    assert (library_takes(properties), service_takes(table_client, properties)) == (taken, taken)


# The service drops a member with `@` without a word; the library rejects it.
CHARACTERS = st.one_of(
    st.sampled_from("aZ_09-. :·é中µªͅ"), st.characters(exclude_categories=["Cs"], exclude_characters="@")
)
NAMES = st.text(CHARACTERS, min_size=1, max_size=3)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
@example("µ")
@example("ª")
@example("_")
@example("ﬀ")
def test_a_name_is_taken_if_the_service_takes_it(table_client: TableClient, name: str) -> None:
    assert library_takes({name: 1}) is service_takes(table_client, {name: 1})


VALUES = st.one_of(
    st.integers(0, 33_000).map(lambda length: "x" * length),
    st.integers(0, 66_000).map(bytes),
    st.sampled_from([1, True, 1.5, EntityProperty(1, "Edm.Int64"), EntityProperty(1.0, "Edm.Double")]),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(VALUES, max_size=30))
def test_a_bag_is_taken_if_the_service_takes_it(table_client: TableClient, values: list[object]) -> None:
    properties: Bag = {f"P{number}": value for number, value in enumerate(values)}
    assert library_takes(properties) is service_takes(table_client, properties)


def hours(count: int) -> timezone:
    return timezone(timedelta(hours=count))


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        (2**31 - 1, True),
        (2**31, False),
        (EntityProperty(2**63 - 1, "Edm.Int64"), True),
        (EntityProperty(2**63, "Edm.Int64"), False),
        (EntityProperty("12", "Edm.Int64"), True),
        (EntityProperty("twelve", "Edm.Int64"), False),
        (EntityProperty(1.5, "Edm.Int64"), False),
        (EntityProperty(True, "Edm.Int64"), False),
        (float("nan"), True),
        (float("inf"), True),
        (EntityProperty("-Infinity", "Edm.Double"), True),
        (EntityProperty("1e400", "Edm.Double"), False),
        (EntityProperty("many", "Edm.Double"), False),
        (True, True),
        (EntityProperty("true", "Edm.Boolean"), True),
        (EntityProperty(1, "Edm.Boolean"), False),
        (EntityProperty("yes", "Edm.Boolean"), False),
        (datetime(1601, 1, 1, tzinfo=UTC), True),
        (datetime(1600, 12, 31, tzinfo=UTC), False),
        (datetime(1601, 1, 1, tzinfo=hours(1)), False),
        (datetime(1600, 12, 31), False),
        (datetime(9999, 12, 31, 23, tzinfo=hours(-1)), False),
        (EntityProperty("9999-12-31T23:59:59.9999999Z", "Edm.DateTime"), True),
        (EntityProperty("2020-01-01", "Edm.DateTime"), True),
        (EntityProperty("2020-01-01T00:00+02:00", "Edm.DateTime"), True),
        (EntityProperty("2020-W01-1", "Edm.DateTime"), False),
        (EntityProperty("1600-12-31T00:00:00Z", "Edm.DateTime"), False),
        (EntityProperty("2020-02-30T00:00:00Z", "Edm.DateTime"), False),
        (UUID(int=1), True),
        (EntityProperty("ABCDEF00-0000-0000-0000-000000000000", "Edm.Guid"), True),
        (EntityProperty("{00000000-0000-0000-0000-000000000000}", "Edm.Guid"), False),
        (EntityProperty(5, "Edm.String"), True),
        (EntityProperty(None, "Edm.String"), True),
        ([1], False),
        ({"a": 1}, False),
        (Decimal(1), False),
        (bytearray(1), False),
    ],
)
def test_a_value_is_taken_if_the_service_takes_it(table_client: TableClient, value: object, taken: bool) -> None:
    try:
        by_sdk = service_takes(table_client, {"V": value})
    except (TypeError, ValueError, OverflowError):
        by_sdk = False
    assert (library_takes({"V": value}), by_sdk) == (taken, taken)


def test_a_value_is_stored_with_its_type_and_as_it_is(table_client: TableClient) -> None:
    class Number(float): ...

    bag = Rows(**KEYS, T=EntityProperty("true", "Edm.Boolean"), N=Number(1.5), A=EntityProperty(None, "Edm.Guid"))
    Table(table_client, Rows).upsert(bag)
    found = {name: value for name, value in table_client.get_entity("p", "r").items() if name not in {*KEYS, "_Op"}}
    assert found == {"T": True, "N": 1.5}


def test_a_message_names_the_property() -> None:
    with pytest.raises(EntityValueError, match=r"Employee\.Photo: 65537 bytes, 65536 are allowed"):
        check("Employee", {**KEYS, "Photo": bytes(65_537)})
    with pytest.raises(EntityValueError, match=r"Employee: 1048577 bytes by the service's formula"):
        check("Employee", {**KEYS, **filled(1)})
