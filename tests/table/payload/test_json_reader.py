import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.payload.json_reader import read_entity, read_members, read_table_name
from lazulite.table.payload.json_walk import DEPTH_MAX, MEMBERS_MAX


def test_members_come_in_order_with_repetitions() -> None:
    assert list(finish(read_members(b'{"b":1,"a":"x","b":null}'))) == [("b", 1), ("a", "x"), ("b", None)]


def test_a_byte_order_mark_is_no_member() -> None:
    assert list(finish(read_members(b'\xef\xbb\xbf{"a":true}'))) == [("a", True)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b"[]",
        b'[["a",1]]',
        b'"a"',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1',
        b'{"a":1}x',
        b'{"a":"\xff"}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":' + b"[" * 100_000 + b"}",
        b'{"a":' + b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1) + b"}",
        b"[" * 3_000_000,
        '{"a":1}'.encode("utf-16"),
    ],
)
def test_malformed_bodies(body: bytes) -> None:
    with pytest.raises(ServiceError) as caught:
        finish(read_members(body))
    assert (caught.value.status, caught.value.code) == (400, "InvalidInput")


def test_a_body_out_of_all_proportion_is_rejected_before_it_is_read() -> None:
    members = ",".join(f'"a{index}":1' for index in range(MEMBERS_MAX))
    assert len(finish(read_members(f"{{{members}}}".encode()))) == MEMBERS_MAX
    with pytest.raises(ServiceError, match="TooManyProperties"):
        finish(read_members(f'{{"b":"::",{members}}}'.encode()))
    assert list(finish(read_members(b'{"a":"%s"}' % (b":" * 10_000)))) == [("a", ":" * 10_000)]


def test_brackets_in_strings_are_no_depth() -> None:
    text = "[{" * 1000
    assert list(finish(read_members(json.dumps({"a": text, "b": '\\"['}).encode()))) == [("a", text), ("b", '\\"[')]


@given(st.binary(max_size=60))
def test_rubbish_is_rejected_or_read(body: bytes) -> None:
    try:
        finish(read_members(body))
    except ServiceError as error:
        assert error.code == "InvalidInput"


@pytest.mark.parametrize("tail", [b'\\"', b'"', b"\\", b'"\\', b'\\\\"'])
def test_hostile_bodies_are_rejected_in_linear_time(tail: bytes) -> None:
    """With a scanner that tries each quote of an unfinished string again, this does not end."""
    with pytest.raises(ServiceError):
        finish(read_members(b"[" * (DEPTH_MAX + 1) + tail * 1_000_000))


def test_an_entity_has_its_names_once_and_no_members_of_the_services() -> None:
    members = b'"PartitionKey":"p","Timestamp":"t","odata.etag":"e","x@y":1,"A@odata.type":"Edm.Int64","A":"5"'
    entity = finish(read_entity(b"{%b}" % members))
    assert (entity.partition_key, entity.row_key) == ("p", None)
    assert {name: (value.edm.name, value.literal) for name, value in entity.properties.items()} == {
        "A": ("Edm.Int64", '"5"')
    }
    with pytest.raises(ServiceError, match="DuplicatePropertiesSpecified"):
        finish(read_entity(b'{%b,"A":"5"}' % members))


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"TableName":"people"}', "people"),
        (b'{"odata.type":"x","TableName@odata.type":"Edm.String","TableName":"people"}', "people"),
        (b"{}", None),
        (b'{"TableName":""}', None),
        (b'{"TableName":5}', None),
        (b'{"tablename":"people"}', None),
        (b'{"TableName":"people","Other":1}', None),
        (b'{"TableName":"people","TableName":"people"}', None),
    ],
)
def test_a_new_table_has_a_name_and_nothing_else(body: bytes, name: str | None) -> None:
    if name is not None:
        assert finish(read_table_name(body)) == name
        return
    with pytest.raises(ServiceError, match="InvalidInput"):
        finish(read_table_name(body))
