"""Reading JSON value by value gives what the standard decoder gives, in steps that are all short."""

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model.edm import Json
from lazulite.table.payload import json_reader
from lazulite.table.payload.json_reader import (
    DECODER,
    DEPTH_MAX,
    MEMBERS_MAX,
    NUMBER_MAX,
    read_entity,
    read_members,
    read_table_name,
    walk,
)


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


SPELLINGS: list[Callable[[str], str]] = [
    lambda character: json.dumps(character)[1:-1] if "\ud800" <= character <= "\udfff" else character,
    lambda character: json.dumps(character)[1:-1],
    lambda character: "".join(f"\\u{unit:04X}" for unit in _units(character)),
]
"""Ways to write a character in a string: as it is, which is no JSON for some, and as two kinds of escapes. No UTF-8 has
half a surrogate pair as it is."""
CHARACTERS = st.sampled_from(["a", "\\", '"', "\n", "é", "中", "😀", "\ud83d", "\ude00", "\x7f", "/", "u", "0"])
BLANKS = st.sampled_from(["", "", " ", "\t\n", "\r\n  ", " " * 50])
SCALARS = st.sampled_from(
    ["null", "true", "false", "0", "-1", "12345678901", "1.5", "-0.0", "1e5", "1E-400", "1" * 400]
)
_TOKENS = ["null", "tru", "NaN", "Infinity", "-Infinity", '"a"', '"a":', "\\u12", "\\ud83d", "\n", "\x00", "1" * 5000]
RUBBISH = st.lists(
    st.sampled_from([*'{}[]:,"\\0-.e ', *_TOKENS, '"' + "b" * 40, "\\n" * 20]),
    max_size=12,
).map("".join)


def _units(character: str) -> Iterator[int]:
    data = character.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))


@st.composite
def strings(draw: st.DrawFn) -> str:
    """Draw the JSON of a string, some of which have raw quotes or control characters."""
    one = st.tuples(CHARACTERS, st.sampled_from(SPELLINGS), st.sampled_from([1, 1, 9, 40]))
    return '"' + "".join(spell(character) * count for character, spell, count in draw(st.lists(one, max_size=6))) + '"'


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    elements = st.lists(st.tuples(BLANKS, inner, BLANKS).map("".join), max_size=4)
    named = st.tuples(BLANKS, strings(), BLANKS, st.just(":"), BLANKS, inner, BLANKS).map("".join)
    return elements.map(lambda each: f"[{','.join(each)}]") | st.lists(named, max_size=4).map(
        lambda each: f"{{{','.join(each)}}}"
    )


TEXTS = st.tuples(BLANKS, st.recursive(SCALARS | strings(), _nested, max_leaves=8), BLANKS).map("".join)


def decoded(text: str) -> str:
    """Return what the standard decoder makes of a text, or that it rejects it."""
    bare = text.strip(" \t\r\n")
    try:
        value, end = DECODER.raw_decode(bare)
    except (ValueError, RecursionError):
        return "rejected"
    return repr(value) if end == len(bare) else "rejected"


def walked(text: str) -> str:
    """Return the same of `walk`."""
    try:
        return repr(finish(walk(text)))
    except ValueError:
        return "rejected"


@pytest.fixture(name="small_pieces")
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pieces so small that most strings are cut, at any place."""
    monkeypatch.setattr(json_reader, "_PIECE", 16)
    monkeypatch.setattr(json_reader, "_FIRST_PIECE", 7)


SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)


@SETTINGS
@given(TEXTS)
@example('"' + r"\ud83d\ude00" * 9 + '"')
@example('"' + "\\\\" * 30 + '"')
@example('"' + "\\\\" * 30 + '\\"')
@example('"' + r"\\ud83d" * 9 + '"')
def test_walk_equals_decode(small_pieces: None, text: str) -> None:
    assert walked(text) == decoded(text)


@SETTINGS
@given(RUBBISH)
@example('{"a":1,}')
@example("[1,]")
@example('{"a" 1}')
@example('{,"a":1}')
@example("{1:2}")
@example('"' + "a" * 100)
@example('"' + "a" * 100 + "\\")
@example("1 2")
@example("")
def test_walk_equals_decode_on_rubbish(small_pieces: None, text: str) -> None:
    assert walked(text) == decoded(text)


@pytest.mark.parametrize("unit", ["a", r"\n", r"\\", r"\"", r"\u4e2d", r"\ud83d\ude00", "a\\n", "中", r"\ud83d"])
def test_long_strings_are_read_piece_by_piece(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '"' + unit * 100_000 + '"'
    expected: Json = json.loads(text)
    read: list[int] = []

    def scanstring(piece: str, start: int) -> tuple[str, int]:
        read.append(len(piece))
        return json.decoder.scanstring(piece, start)  # type: ignore[attr-defined,no-any-return]  # typeshed lacks it

    monkeypatch.setattr(json_reader, "scanstring", scanstring)
    pauses: list[int] = []
    steps = walk(text)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            assert end.value == expected
            break
        pauses.append(len(read))
    assert max(read) <= json_reader._PIECE + len('"')
    assert pauses == list(range(1, len(read))), "a pause follows each piece"


@pytest.mark.parametrize("value", ["1", '"a"', "[]", "{}", "null"])
@pytest.mark.parametrize("opening", ["[", '{"a":['])
def test_values_are_counted_before_they_are_read(value: str, opening: str) -> None:
    closing = "]" if opening == "[" else "]}"
    enough = MEMBERS_MAX - opening.count(":")
    finish(walk(opening + ",".join([value] * enough) + closing))
    with pytest.raises(ServiceError, match="TooManyProperties"):
        finish(walk(opening + f"{value}," * enough + "rubbish"))


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded(opening: str, closing: str) -> None:
    finish(walk(opening * DEPTH_MAX + "0" + closing * DEPTH_MAX))
    with pytest.raises(ValueError, match="nested"):
        finish(walk(opening * (DEPTH_MAX + 1) + "rubbish"))


def test_length_of_numbers_is_bounded() -> None:
    fraction = "0." + "1" * (NUMBER_MAX - 2)
    assert finish(walk(fraction)) == float(fraction)
    with pytest.raises(ValueError, match="too long"):
        finish(walk(fraction + "1"))


def test_a_pause_follows_each_value() -> None:
    pauses = sum(1 for _ in walk("[" + ",".join(["1"] * 500) + "]"))
    assert pauses >= 500
