"""The limits are the service's: an entity is rejected before it is sent exactly where the service rejects it."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import EntityProperty, TableClient, UpdateMode
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lazulite_patterns.entities import EntityValueError
from lazulite_patterns.entities.limits import ENTITY_BYTES_MAX, check, entity_size

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


def test_a_message_names_the_property() -> None:
    with pytest.raises(EntityValueError, match=r"Employee\.Photo: 65537 bytes, 65536 are allowed"):
        check("Employee", {**KEYS, "Photo": bytes(65_537)})
    with pytest.raises(EntityValueError, match=r"Employee: 1048577 bytes by the service's formula"):
        check("Employee", {**KEYS, **filled(1)})
