import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.table.model import edm
from lazulite.table.model.property_reader import (
    decoded_row_reader,
    literal_reader,
    member_cutter,
    property_reader,
    split_members,
)
from lazulite.table.model.row import (
    DecodedRow,
    Property,
    assemble,
    decode_row,
    encode_keys,
    encode_properties,
    etag_of,
    in_order,
    members_of,
    stored_etag,
    ticks_of,
)
from tests.table.strategies import keys, names, properties

TICKS = edm.parse_datetime("2017-08-30T13:20:33.413914Z")


def _row(partition_key: str, row_key: str, values: dict[str, Property], ticks: int = TICKS) -> bytes:
    return assemble(ticks, encode_keys(partition_key, row_key), encode_properties(values))


def test_the_layout_is_the_documented_one() -> None:
    values = {"Age": Property(edm.INT32, "23"), "Id": Property(edm.INT64, '"5"')}
    value = _row("p", "r", values)
    assert value[:1] == b"\x01"
    assert value[1:9] == TICKS.to_bytes(8, "big")
    assert value[9:].decode() == (
        '"odata.etag":"W/\\"datetime\'2017-08-30T13%3A20%3A33.413914Z\'\\"","PartitionKey":"p","RowKey":"r",'
        '"Timestamp":"2017-08-30T13:20:33.413914Z","Age":23,"Id@odata.type":"Edm.Int64","Id":"5"'
    )
    assert etag_of(TICKS) == "W/\"datetime'2017-08-30T13%3A20%3A33.413914Z'\""


@given(keys, keys, properties, st.integers(0, edm.DATETIME_MAX))
def test_rows_round_trip(partition_key: str, row_key: str, values: dict[str, Property], ticks: int) -> None:
    value = _row(partition_key, row_key, values, ticks)
    assert decode_row(value) == DecodedRow(partition_key, row_key, ticks, values)
    assert ticks_of(value) == ticks
    assert stored_etag(value) == etag_of(ticks)


@given(keys, keys, properties, names)
def test_readers_find_exactly_the_property_of_their_name(
    partition_key: str, row_key: str, values: dict[str, Property], other: str
) -> None:
    value = _row(partition_key, row_key, values)
    for name in {*values, other}:
        found = literal_reader(name)(value)
        assert found == values.get(name)
        decoded = property_reader(name)(value)
        if found is None:
            assert decoded is None
        elif found.literal != '"NaN"' or found.edm is not edm.DOUBLE:
            assert decoded == found.edm.decode(found.literal)
            assert type(decoded) is type(found.edm.decode(found.literal))
    assert property_reader("PartitionKey")(value) == partition_key
    assert property_reader("RowKey")(value) == row_key
    timestamp = property_reader("Timestamp")(value)
    assert timestamp == TICKS
    assert isinstance(timestamp, edm.DateTime)
    assert literal_reader("Timestamp")(value) == Property(edm.DATETIME, f'"{edm.format_datetime(TICKS)}"')


@given(keys, keys, properties, names)
def test_cutters_cut_exactly_the_member_of_their_name(
    partition_key: str, row_key: str, values: dict[str, Property], other: str
) -> None:
    value = _row(partition_key, row_key, values)
    for name in {*values, other, "no name"}:
        held = values.get(name)
        member = held and f"{json.dumps(name)}:{held.literal}"
        whole = held and encode_properties({name: held})[1:]
        for annotated, expected in ((False, member), (True, whole)):
            cut = member_cutter(name, annotated=annotated)(value)
            assert (cut and cut.decode()) == expected


@given(keys, keys, properties)
def test_members_are_the_json_of_minimal_metadata(
    partition_key: str, row_key: str, values: dict[str, Property]
) -> None:
    entity = json.loads(b"{%s}" % members_of(_row(partition_key, row_key, values)))
    assert entity["PartitionKey"] == partition_key
    assert entity["odata.etag"] == etag_of(TICKS)
    assert [name for name in entity if "@" not in name][4:] == list(values)


def test_a_string_that_looks_like_members_is_no_member() -> None:
    trap = '","B":"x","C@odata.type":"Edm.Int64","C":"5'
    value = _row("p,", "r,", {"A": Property(edm.STRING, edm.STRING.literal(trap))})
    assert literal_reader("B")(value) is None
    assert literal_reader("C")(value) is None
    assert property_reader("A")(value) == trap


@pytest.mark.parametrize("text", ["\n,", '",', ",", ",,", '\\,"', '","', 'a",b":c,'])
@pytest.mark.parametrize("last", [True, False])
def test_a_string_may_end_with_a_comma(text: str, last: bool) -> None:
    """And so seem to open a member."""
    values = {"A": Property(edm.STRING, edm.STRING.literal(text))} | ({} if last else {"B": Property(edm.INT32, "1")})
    value = _row(text, text, values)
    assert decode_row(value) == DecodedRow(text, text, TICKS, values)
    assert member_cutter("A", annotated=False)(value) == b'"A":' + values["A"].literal.encode()
    assert split_members(value, annotated=True)[b"A"] == b'"A":' + values["A"].literal.encode()
    assert literal_reader("A")(value) == values["A"]


def test_a_string_named_like_a_type_before_a_string_is_no_annotation() -> None:
    values = {"X": Property(edm.STRING, '"Edm.Int64"'), "A": Property(edm.STRING, '"1"')}
    assert literal_reader("A")(_row("p", "r", values)) == values["A"]


@given(keys, keys, properties, names)
def test_the_other_reader_reads_the_same(
    partition_key: str, row_key: str, values: dict[str, Property], other: str
) -> None:
    value = _row(partition_key, row_key, values)
    reader = decoded_row_reader()
    for name in {*values, other, "PartitionKey", "RowKey", "Timestamp"}:
        assert repr(reader(name)(value)) == repr(property_reader(name)(value))


def test_a_row_of_another_format_is_not_served() -> None:
    for read in (ticks_of, stored_etag):
        with pytest.raises(AssertionError, match="format"):
            read(b"\x02" + bytes(8))


def test_properties_are_put_in_order_by_utf16_units_of_their_names() -> None:
    names = ["z", "é", "A", "\uff41", "_", "\U00020000", "a", "Z"]
    ordered = ["A", "Z", "_", "a", "z", "é", "\U00020000", "\uff41"]
    assert list(in_order(dict.fromkeys(names, Property(edm.INT32, "1")))) == ordered
    assert list(in_order(dict.fromkeys("zAa_", Property(edm.INT32, "1")))) == ["A", "_", "a", "z"]
