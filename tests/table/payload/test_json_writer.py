import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.table.model import edm
from lazulite.table.model.property_reader import SEARCHED_MAX
from lazulite.table.model.row import DecodedRow, Property, assemble, decode_row, encode_keys, encode_properties, etag_of
from lazulite.table.payload.json_writer import JsonEntityWriter, JsonTableWriter, MetadataLevel, error_payload
from lazulite.table.payload.links import entity_link
from tests.table.strategies import keys, properties

BASE = "http://127.0.0.1:10002/acct/"
TICKS = edm.parse_datetime("2017-08-30T13:20:33.413914Z")
ETAG = '"odata.etag":"W/\\"datetime\'2017-08-30T13%3A20%3A33.413914Z\'\\""'
VALUES = {
    "Name": Property(edm.STRING, '"x"'),
    "Id": Property(edm.INT64, '"5"'),
    "Rate": Property(edm.DOUBLE, '"NaN"'),
    "Age": Property(edm.INT32, "23"),
}


def _row(partition_key: str, row_key: str, values: dict[str, Property]) -> bytes:
    return assemble(TICKS, encode_keys(partition_key, row_key), encode_properties(values))


ROW = _row("partition1-ô- -'-\"-%20-%27-pk", "r", VALUES)
PK = '"PartitionKey":"partition1-\\u00f4- -\'-\\"-%20-%27-pk","RowKey":"r"'
LINK = "T(PartitionKey='partition1-%C3%B4-%20-''-%22-%2520-%2527-pk',RowKey='r')"
PROPERTIES = ',"Name":"x","Id@odata.type":"Edm.Int64","Id":"5","Rate@odata.type":"Edm.Double","Rate":"NaN","Age":23'
TIMESTAMP = "2017-08-30T13:20:33.413914Z"


@pytest.mark.parametrize(
    ("level", "body"),
    [
        (MetadataLevel.NONE, f'{{{PK},"Timestamp":"{TIMESTAMP}","Name":"x","Id":"5","Rate":"NaN","Age":23}}'),
        (
            MetadataLevel.MINIMAL,
            f'{{"odata.metadata":"{BASE}$metadata#T/@Element",{ETAG},{PK},"Timestamp":"{TIMESTAMP}"{PROPERTIES}}}',
        ),
        (
            MetadataLevel.FULL,
            f'{{"odata.metadata":"{BASE}$metadata#T/@Element","odata.type":"acct.T","odata.id":"{BASE}{LINK}",'
            f'{ETAG},"odata.editLink":"{LINK}",{PK},'
            f'"Timestamp@odata.type":"Edm.DateTime","Timestamp":"{TIMESTAMP}"{PROPERTIES}}}',
        ),
    ],
)
def test_an_entity_at_each_level(level: MetadataLevel, body: str) -> None:
    assert JsonEntityWriter(level, BASE, "acct", "T").entity(ROW).decode() == body


@pytest.mark.parametrize(
    ("level", "body"),
    [
        (MetadataLevel.NONE, '{"value":[{"Id":"5","Gone":null},{"Id":"5","Gone":null}]}'),
        (
            MetadataLevel.MINIMAL,
            f'{{"odata.metadata":"{BASE}$metadata#T&$select=Id,%20Gone","value":['
            f'{{{ETAG},"Id@odata.type":"Edm.Int64","Id":"5","Gone":null}},'
            f'{{{ETAG},"Id@odata.type":"Edm.Int64","Id":"5","Gone":null}}]}}',
        ),
    ],
)
def test_a_projected_feed(level: MetadataLevel, body: str) -> None:
    writer = JsonEntityWriter(level, BASE, "acct", "T", ["Id", "Gone", "Id"], "Id, Gone")
    assert writer.feed(empty=False).whole([writer.item(ROW), writer.item(ROW)]).decode() == body


def test_system_properties_can_be_selected() -> None:
    names = ["RowKey", "Timestamp"]
    minimal = JsonEntityWriter(MetadataLevel.MINIMAL, BASE, "acct", "T", names, "RowKey,Timestamp")
    assert minimal.item(ROW).decode() == f'{ETAG},"RowKey":"r","Timestamp":"{TIMESTAMP}"'
    full = JsonEntityWriter(MetadataLevel.FULL, BASE, "acct", "T", names, "RowKey,Timestamp")
    assert (
        full.item(ROW)
        .decode()
        .endswith(f'"RowKey":"r","Timestamp@odata.type":"Edm.DateTime","Timestamp":"{TIMESTAMP}"')
    )


@pytest.mark.parametrize("key", ["it's", "a-b_c.d~e", "1(2)", "a+b", "a b", "", "é", 'a"b', "%41"])
def test_an_address_spells_keys_as_ever(key: str) -> None:
    item = JsonEntityWriter(MetadataLevel.FULL, BASE, "acct", "T").item(_row(key, key, {}))
    assert json.loads(b"{%b}" % item)["odata.editLink"] == entity_link("T", key, key)


def test_an_empty_feed() -> None:
    assert JsonEntityWriter(MetadataLevel.NONE, BASE, "acct", "T").feed(empty=True).whole([]) == b'{"value":[]}'


@given(keys, keys, properties)
def test_levels_say_the_same(partition_key: str, row_key: str, values: dict[str, Property]) -> None:
    row = _row(partition_key, row_key, values)

    def read(level: MetadataLevel, select: list[str] | None = None) -> dict[str, object]:
        body = json.loads(JsonEntityWriter(level, BASE, "acct", "T", select).entity(row))
        return {name: value for name, value in body.items() if "odata." not in name}

    plain = read(MetadataLevel.NONE)
    assert list(plain) == ["PartitionKey", "RowKey", "Timestamp", *values]
    for level in MetadataLevel:
        assert str(read(level)) == str(plain)
        assert str(read(level, list(plain))) == str(plain)


def _reported_slowly(level: MetadataLevel, row: DecodedRow, select: list[str] | None) -> str:
    """Serialize an entity from its decoded row."""
    link = entity_link("T", row.partition_key, row.row_key)
    held = {
        "PartitionKey": Property(edm.STRING, json.dumps(row.partition_key)),
        "RowKey": Property(edm.STRING, json.dumps(row.row_key)),
        "Timestamp": Property(edm.DATETIME, f'"{edm.format_datetime(row.ticks)}"'),
        **row.properties,
    }
    full = level is MetadataLevel.FULL
    parts = [f'"odata.type":"acct.T","odata.id":"{BASE}{link}"'] if full else []
    parts += [f'"odata.etag":{json.dumps(etag_of(row.ticks))}'] if level is not MetadataLevel.NONE else []
    parts += [f'"odata.editLink":"{link}"'] if full else []
    for name in held if select is None else dict.fromkeys(select):
        if name not in held:
            parts.append(f'"{name}":null')
            continue
        annotated = full if name == "Timestamp" else edm.needs_annotation(*held[name])
        if annotated and level is not MetadataLevel.NONE:
            parts.append(f'{json.dumps(name)[:-1]}@odata.type":"{held[name].edm.name}"')
        parts.append(f"{json.dumps(name)}:{held[name].literal}")
    return ",".join(parts)


@given(keys, keys, properties, st.sampled_from(MetadataLevel), st.data())
def test_cutting_says_what_decoding_says(
    partition_key: str, row_key: str, values: dict[str, Property], level: MetadataLevel, data: st.DataObject
) -> None:
    row = _row(partition_key, row_key, values)
    some = st.lists(st.sampled_from([*values, "PartitionKey", "RowKey", "Timestamp", "Gone"]), min_size=1, max_size=4)
    few = data.draw(some)
    many = [*few, *(f"Gone{number}" for number in range(SEARCHED_MAX)), "odata.etag"]
    for select in (None, few, many):
        writer = JsonEntityWriter(level, BASE, "acct", "T", select)
        assert writer.item(row).decode() == _reported_slowly(level, decode_row(row), select)
        feed = json.loads(writer.feed(empty=False).whole([writer.item(row)] * 3))["value"]
        assert str(feed) == str([json.loads(b"{%b}" % writer.item(row))] * 3)


@pytest.mark.parametrize(
    ("level", "table", "feed"),
    [
        (MetadataLevel.NONE, '{"TableName":"Abc"}', '{"value":[{"TableName":"Abc"},{"TableName":"Abd"}]}'),
        (
            MetadataLevel.MINIMAL,
            f'{{"odata.metadata":"{BASE}$metadata#Tables/@Element","TableName":"Abc"}}',
            f'{{"odata.metadata":"{BASE}$metadata#Tables","value":[{{"TableName":"Abc"}},{{"TableName":"Abd"}}]}}',
        ),
    ],
)
def test_tables(level: MetadataLevel, table: str, feed: str) -> None:
    writer = JsonTableWriter(level, BASE, "acct")
    assert writer.table("Abc").decode() == table
    assert writer.feed(["Abc", "Abd"]).decode() == feed


def test_a_table_with_full_metadata() -> None:
    assert JsonTableWriter(MetadataLevel.FULL, BASE, "acct").table("Abc").decode() == (
        f'{{"odata.metadata":"{BASE}$metadata#Tables/@Element","odata.type":"acct.Tables",'
        f'"odata.id":"{BASE}Tables(\'Abc\')","odata.editLink":"Tables(\'Abc\')","TableName":"Abc"}}'
    )


def test_an_error() -> None:
    error = ServiceError("TableNotFound")
    assert json.loads(error_payload(error, "id", "2017-08-30T13:20:33.4139140Z")) == {
        "odata.error": {
            "code": "TableNotFound",
            "message": {
                "lang": "en-US",
                "value": "The table specified does not exist.\nRequestId:id\nTime:2017-08-30T13:20:33.4139140Z",
            },
        }
    }
