"""Keys sort as their tuples, are injective, and a prefix is exact."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite_patterns.keys import Key, KeyFormatError, KeyRange, KeyValueError, bucket, choice, integer, literal, text
from lazulite_patterns.keys.characters import escape, units, utf16_order

from .strategies import TEXTS, TRICKY, random_text


class Reviews(Key):
    employee: str = text()
    year: int = integer(4)


class Path(Key):
    first: str = text()
    second: str = text()
    last: str = text()


class Sharded(Key):
    shard: int = bucket(16, by="device")
    kind: str = literal("reading")
    device: str = text()


PATHS = st.builds(Path, TEXTS, TEXTS, TEXTS)


def order(key: Path) -> tuple[bytes, ...]:
    return tuple(map(utf16_order, (key.first, key.second, key.last)))


def test_the_example_of_the_documentation() -> None:
    assert Reviews("000123", 2012).encode() == "000123!2012"
    assert Reviews.decode("000123!2012") == Reviews("000123", 2012)
    assert Reviews.prefix(employee="000123").filter() == "RowKey ge '000123!' and RowKey lt '000123!\ufffd'"


@given(st.lists(PATHS, max_size=10, unique=True))
@example([Path("a", "x", ""), Path("a b", "", ""), Path("a!b", "", ""), Path("a ", "", "!"), Path("a", "", "")])
def test_keys_sort_as_tuples_and_come_back(keys: list[Path]) -> None:
    texts = [key.encode() for key in keys]
    assert [Path.decode(each) for each in texts] == keys
    assert sorted(texts, key=utf16_order) == [key.encode() for key in sorted(keys, key=order)]
    assert not any(set(each) & set("#%/?\\") for each in texts)


def test_many_random_keys_sort_as_tuples_and_come_back() -> None:
    random = Random(19)
    keys = [Path(*(random_text(random) for _ in range(3))) for _ in range(100_000)]
    texts = {key.encode(): key for key in keys}
    assert len(texts) == len(set(keys))
    found = [texts[each] for each in sorted(texts, key=utf16_order)]
    assert found == sorted(set(keys), key=order)
    for number, (encoded, key) in enumerate(texts.items()):
        assert Path.decode(encoded) == key
        other = keys[number]
        assert (other.encode() in Path.prefix(first=key.first)) is (other.first == key.first)


@given(PATHS, PATHS, st.integers(0, 3), st.one_of(st.none(), st.text(TRICKY, max_size=2)))
@example(Path("a", "b", "/c"), Path("a", "b", ".c"), 2, ".")
@example(Path("a ", "b", "c"), Path("a!", "b", "c"), 0, "a ")
def test_a_prefix_is_exact(key: Path, other: Path, count: int, start: str | None) -> None:
    names = ("first", "second", "last")
    values = {name: getattr(key, name) for name in names[:count]}
    if count == 3:
        start = None
    found = Path.prefix(starting_with=start, **values)
    for each in (key, other):
        expected = all(getattr(each, name) == value for name, value in values.items()) and (
            start is None or getattr(each, names[count]).startswith(start)
        )
        assert (each.encode() in found) is expected


@given(PATHS, PATHS, PATHS)
def test_a_range_between_keys_has_both_of_them(first: Path, last: Path, key: Path) -> None:
    found = Path.between(first, last)
    assert (key.encode() in found) is (order(first) <= order(key) <= order(last))


@given(st.text(st.sampled_from(' !".a/\ufffd'), max_size=6))
def test_a_text_is_decoded_only_if_it_is_encoded_so(foreign: str) -> None:
    try:
        key = Path.decode(foreign)
    except KeyFormatError:
        return
    assert key.encode() == foreign


def test_characters_are_replaced_as_described() -> None:
    mark = "\ufffd"
    assert escape("#%/?\\", last=True) == f'"{mark}${mark}.{mark}>{mark}[{mark}'
    assert escape("a b!", last=False) == f"a!{mark}b!{mark}{mark}"
    assert Path("a b", "", "/x y!").encode() == f"a!{mark}b!!.{mark}x y!", "the last component stays readable"


@pytest.mark.parametrize("code", [0x0, 0x1F, 0x7F, 0x9F, 0xD800, 0xDFFF, 0xFFFD, 0xFFFE, 0xFFFF], ids="{:04X}".format)
def test_characters_that_no_key_has_are_rejected(code: int) -> None:
    with pytest.raises(KeyValueError, match=rf"Path\.second: the character U\+{code:04X}"):
        Path("a", f"b{chr(code)}", "c").encode()


def test_a_key_has_1024_units_at_most() -> None:
    assert units(Path("a", "b", "\U0001f600" * 510).encode()) == 1024
    with pytest.raises(KeyValueError, match=r"Path: the key has 1026 units, 1024 are allowed"):
        Path("a", "b", "\U0001f600" * 511).encode()
    with pytest.raises(KeyFormatError):
        Path.decode("a!b!" + "x" * 1021)


def test_a_bucket_is_computed_from_its_field() -> None:
    key = Sharded("d-17")
    assert key == Sharded.decode(key.encode())
    assert key.encode() == f"{key.shard:02d}!reading!d-17"
    wrong = (key.shard + 1) % 16
    with pytest.raises(KeyFormatError, match=r"Sharded.shard: .* is not computed from device"):
        Sharded.decode(f"{wrong:02d}!reading!d-17")
    assert len({Sharded(str(number)).shard for number in range(200)}) == 16


def test_ranges_of_all_buckets_have_each_key_once() -> None:
    ranges = Sharded.buckets(kind="reading")
    for number in range(50):
        assert sum(Sharded(str(number)).encode() in each for each in ranges) == 1
    with pytest.raises(KeyValueError, match="is no bucket"):
        Reviews.buckets()


def test_a_random_bucket_is_in_range() -> None:
    class Appended(Key):
        shard: int = bucket(3)
        number: int = integer(6)

    assert {Appended(1).shard for _ in range(100)} == {0, 1, 2}


def test_a_literal_need_not_be_given_to_a_prefix() -> None:
    class Typed(Key):
        kind: str = literal("emp/id")
        number: int = integer(6)

    assert Typed(7).encode() in Typed.prefix()
    with pytest.raises(KeyFormatError):
        Typed.decode("dept!000007")


@pytest.mark.parametrize(
    ("values", "message"),
    [({"second": "b"}, "without a gap"), ({"other": "b"}, "without a gap")],
)
def test_a_prefix_has_the_first_components(values: dict[str, str], message: str) -> None:
    with pytest.raises(KeyValueError, match=message):
        Path.prefix(**values)
    with pytest.raises(KeyValueError, match="none is left"):
        Path.prefix(starting_with="x", first="", second="", last="")


def declare(**components: object) -> Callable[[], object]:
    return lambda: type("Wrong", (Key,), {"__annotations__": dict.fromkeys(components, Any), **components})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (declare(), "has no components"),
        (declare(year=4), "Wrong.year is no component"),
        (declare(encode=text()), "have an attribute"),
        (declare(shard=bucket(2, by="name")), "no component that is given"),
    ],
)
def test_wrong_classes_are_rejected(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_a_choice_names_its_values() -> None:
    class State(Key):
        state: str = choice("new", "done")

    with pytest.raises(KeyValueError, match=r"State\.state: 'old' is none of new, done"):
        State("old").encode()


def test_filters_quote_apostrophes() -> None:
    assert KeyRange("it's").filter("PartitionKey") == "PartitionKey ge 'it''s'"
