"""Reads of single entities have what the SDK reads."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty, TableClient

from lazulite_patterns.effects import point_reads, sdk
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.runtime import date_of
from lazulite_patterns.effects.tables import EntityKey, Read, Stored

KEY = EntityKey("it's (a,b) %25 é", "\u4e2d\U0001f600&=+")
VALUES = {
    "Text": "\u4e2d\U0001f600\r\n",
    "Yes": True,
    "Small": -(2**31),
    "Large": EntityProperty(2**53 + 1, EdmType.INT64),
    "Near": EntityProperty(7, EdmType.INT64),
    "Half": 0.5,
    "Whole": EntityProperty(2.0, EdmType.DOUBLE),
    "Most": -math.inf,
    "Time": EntityProperty("2024-02-29T23:59:59.1234567Z", EdmType.DATETIME),
    "First": datetime(1601, 1, 1, tzinfo=UTC),
    "Id": UUID(int=7),
    "Octets": bytes(range(256)),
    "None": b"",
}


def read(client: Any, key: EntityKey = KEY, *select: str) -> Stored | None:
    return Driver({"t": client}).run(perform(Read("t", key, select)))


def comparable(stored: Stored | None) -> object:
    assert stored is not None
    texts = {name: getattr(value, "tables_service_value", None) for name, value in stored.properties.items()}
    kinds = {name: [kind for kind in TYPES if isinstance(value, kind)] for name, value in stored.properties.items()}
    return dict(stored.properties), texts, kinds, stored.etag, stored.timestamp


TYPES = (str, bool, int, float, datetime, UUID, bytes, EntityProperty)


def test_an_entity_is_read_as_the_sdk_reads_it(table_client: TableClient) -> None:
    table_client.create_entity({"PartitionKey": KEY.partition_key, "RowKey": KEY.row_key, **VALUES})
    found = read(table_client)
    assert comparable(found) == comparable(sdk.stored(table_client.get_entity(*KEY)))
    assert found is not None
    assert found.date is not None
    assert found.timestamp is not None
    assert abs((found.date - found.timestamp).total_seconds()) < 60
    assert comparable(read(table_client, KEY, "PartitionKey", "Time", "Absent")) == comparable(
        sdk.stored(table_client.get_entity(*KEY, select=["PartitionKey", "Time", "Absent"]))
    )


def test_not_a_number_is_a_number(table_client: TableClient) -> None:
    table_client.create_entity({"PartitionKey": "p", "RowKey": "r", "N": math.nan})
    found = read(table_client, EntityKey("p", "r"))
    assert found is not None
    assert math.isnan(float(str(found.properties["N"])))


def test_an_absent_entity_is_none_and_an_absent_table_is_an_error(table_client: TableClient) -> None:
    assert read(table_client) is None
    table_client.delete_table()
    with pytest.raises(Rejected, match="TableNotFound"):
        read(table_client)
    table_client.create_table()


def test_an_sdk_that_is_built_in_another_way_reads_itself(table_client: TableClient) -> None:
    class Other:
        get_entity: Callable[..., object] = table_client.get_entity

    table_client.create_entity({"PartitionKey": KEY.partition_key, "RowKey": KEY.row_key, **VALUES})
    assert comparable(read(Other())) == comparable(read(table_client))
    own, other = read(table_client), read(Other())
    assert own is not None
    assert other is not None
    assert own.date is not None
    assert other.date is not None


@pytest.mark.parametrize("content", [b"<html>", b"7", b'{"N@odata.type": "Edm.Int64", "N": "x"}', b"\xff"])
def test_an_answer_that_is_no_entity_does_not_tell(content: bytes) -> None:
    with pytest.raises(ResultUnknown):
        point_reads.stored_of(200, {}, content)


@pytest.mark.parametrize(("text", "year"), [("Wed, 21 Oct 2026 07:28:00 GMT", 2026), ("soon", None), (None, None)])
def test_an_answer_without_a_date_has_no_time(text: str | None, year: int | None) -> None:
    found = date_of(text)
    assert (None if found is None else found.year) == year
