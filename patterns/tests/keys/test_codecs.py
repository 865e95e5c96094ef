"""Each codec is injective and keeps order; what it does not make is rejected."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.keys import KeyFormatError, KeyValueError, Ticks, new_uuid7
from lazulite_patterns.keys.characters import utf16_order
from lazulite_patterns.keys.codecs import Codec
from lazulite_patterns.keys.identifiers import OCTETS
from lazulite_patterns.keys.times import TICKS_MAX, date_codec, tick_codec

from .strategies import CASES, FOREIGN, WRONG, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@given(data=st.data())
def test_texts_sort_as_values_and_come_back(case: Case[Any], data: st.DataObject) -> None:
    one, other = data.draw(case.values), data.draw(case.values)
    texts = case.codec.encode(one), case.codec.encode(other)
    assert (case.codec.decode(texts[0]), case.codec.decode(texts[1])) == (one, other)
    if case.reverse:
        one, other = other, one
    as_values = sorted([one, other], key=case.order)
    first, last = (case.codec.encode(each) for each in as_values)
    assert (one == other) is (texts[0] == texts[1])
    assert sorted(texts, key=utf16_order) == ([last, first] if case.reverse else [first, last])


@pytest.mark.parametrize(("codec", "value"), WRONG)
def test_values_without_a_text_are_rejected(codec: Codec[Any], value: object) -> None:
    with pytest.raises(KeyValueError):
        codec.encode(value)


@pytest.mark.parametrize(("codec", "text"), FOREIGN)
def test_texts_of_no_value_are_rejected(codec: Codec[Any], text: str) -> None:
    with pytest.raises(KeyFormatError):
        codec.decode(text)


def test_ticks_are_those_of_dotnet() -> None:
    # `new DateTime(2014, 7, 31, 18, 30, 0).Ticks` and the greatest, DateTime.MaxValue.Ticks.
    time = datetime(2014, 7, 31, 18, 30, tzinfo=UTC)
    assert tick_codec(reverse=False).encode(time) == "0635424282000000000"
    assert tick_codec(reverse=True).encode(time) == "2519954693999999999"
    assert TICKS_MAX == 3155378975999999999
    assert Ticks.of(datetime.max.replace(tzinfo=UTC)) == TICKS_MAX - 9
    assert Ticks(635424282000000007).datetime == time
    with pytest.raises(ValueError, match="no time zone"):
        Ticks.of(datetime(2014, 7, 31))


def test_a_reverse_date_has_a_fixed_length() -> None:
    assert date_codec(reverse=True).encode(date(2014, 7, 31)) == "7985-05-00"
    assert date_codec(reverse=True).encode(date(9999, 12, 1)) == "0000-00-30"


def test_octets_are_base32hex() -> None:
    assert OCTETS.encode(b"foob") == "CPNMUOG"  # RFC 4648 §10, less its padding.


def test_a_uuid_of_version_7_has_its_time_first() -> None:
    # RFC 9562, appendix A.6.
    bits = {12: 0xCC3, 62: 0x18C4DC0C0C07398F}
    assert str(new_uuid7(0x017F22E279B0, bits.__getitem__)) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@pytest.mark.parametrize("reverse", [False, True])
def test_ticks_of_dotnet_are_read_and_written_as_they_were(reverse: bool) -> None:
    codec = tick_codec(reverse=reverse)
    text = "2519954693999999993" if reverse else "0635423182000000007"
    found = codec.decode(text)
    assert codec.encode(found) == text
    assert found == codec.decode(f"{text[:-1]}{9 if reverse else 0}"), "a time of Python has six digits"
    assert codec.encode(found + timedelta(microseconds=1)) != text
