"""Reading JSON value by value gives what the standard decoder gives, in steps that are all short."""

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model.literals import Json
from lazulite.table.payload import json_walk
from lazulite.table.payload.json_walk import DECODER, DEPTH_MAX, MEMBERS_MAX, NUMBER_MAX, walk

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
    monkeypatch.setattr(json_walk, "_PIECE", 16)
    monkeypatch.setattr(json_walk, "_FIRST_PIECE", 7)


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

    monkeypatch.setattr(json_walk, "scanstring", scanstring)
    pauses: list[int] = []
    steps = walk(text)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            assert end.value == expected
            break
        pauses.append(len(read))
    assert max(read) <= json_walk._PIECE + len('"')
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
