"""Values of each kind of component, and keys of several of them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any, Generic, TypeVar
from uuid import UUID

from hypothesis import strategies as st

from lazulite_patterns.keys import codecs, identifiers, times
from lazulite_patterns.keys.characters import utf16_order

T = TypeVar("T")

ALLOWED = st.characters(
    exclude_categories=("Cs", "Cc"),
    exclude_characters="\ufffd\ufffe\uffff",
)
TRICKY = st.sampled_from(" !\"#$%&./0>?@[\\]'_a\ufffc\ue000\U0001f600")
TEXTS = st.text(st.one_of(TRICKY, ALLOWED), max_size=8)
UTC_TIMES = st.datetimes(timezones=st.just(UTC))


@dataclass(frozen=True)
class Case(Generic[T]):
    """A codec, values for it, and what these values sort by."""

    name: str
    codec: codecs.Codec[T]
    values: st.SearchStrategy[T]
    reverse: bool = False

    def order(self, value: T) -> Any:
        """Return what the value sorts by, if not reversed."""
        return utf16_order(value) if isinstance(value, str) else value


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    bound = 10**digits - 1
    return st.integers(-bound, bound).map(lambda scaled: Decimal(scaled).scaleb(-scale))


CASES: list[Case[Any]] = [
    Case("text", codecs.FunctionCodec(str, str, str), TEXTS),
    Case("integer", codecs.Integers(4), st.integers(0, 9999)),
    Case("signed", codecs.Integers(3, signed=True), st.integers(-999, 999)),
    Case("reversed", codecs.Integers(4, reverse=True), st.integers(0, 9999), reverse=True),
    Case("signed reversed", codecs.Integers(2, True, True), st.integers(-99, 99), reverse=True),
    Case("ticks", times.tick_codec(reverse=False), UTC_TIMES),
    Case("reverse ticks", times.tick_codec(reverse=True), UTC_TIMES, reverse=True),
    Case(
        "exact ticks",
        times.exact_tick_codec(reverse=False),
        st.integers(0, times.TICKS_MAX).map(times.Ticks),
    ),
    Case("date", times.date_codec(reverse=False), st.dates()),
    Case("reverse date", times.date_codec(reverse=True), st.dates(), reverse=True),
    Case("uuid", identifiers.uuid_codec(), st.uuids()),
    Case("uuid7", identifiers.uuid_codec(7), st.integers(0, 2**48 - 1).map(identifiers.new_uuid7)),
    Case("octets", identifiers.OCTETS, st.binary(max_size=12)),
    Case("decimal", identifiers.decimal_codec(7, 2), decimals(7, 2)),
    Case("whole decimal", identifiers.decimal_codec(3, 0), decimals(3, 0)),
]

WRONG: list[tuple[codecs.Codec[Any], object]] = [
    (codecs.Integers(2), 100),
    (codecs.Integers(2), -1),
    (codecs.Integers(2), True),
    (codecs.Integers(2), "1"),
    (codecs.Integers(2, signed=True), -100),
    (codecs.Choices(("a", "b")), "c"),
    (times.tick_codec(reverse=False), datetime(2020, 1, 1)),
    (times.exact_tick_codec(reverse=True), times.Ticks(-1)),
    (times.date_codec(reverse=False), datetime(2020, 1, 1, tzinfo=UTC)),
    (times.date_codec(reverse=False), "2020-01-01"),
    (identifiers.uuid_codec(7), UUID(int=0)),
    (identifiers.decimal_codec(4, 2), Decimal("0.001")),
    (identifiers.decimal_codec(4, 2), Decimal("100")),
    (identifiers.decimal_codec(4, 2), Decimal("nan")),
    (identifiers.decimal_codec(4, 2), Decimal("1e-90")),
]

FOREIGN: list[tuple[codecs.Codec[Any], str]] = [
    (codecs.Integers(2), "1"),
    (codecs.Integers(2), "+1"),
    (codecs.Integers(2), "١٢"),
    (codecs.Integers(2, signed=True), "000"),
    (codecs.Choices(("a", "b")), "A"),
    (times.tick_codec(reverse=False), "1"),
    (times.tick_codec(reverse=False), "9" * 19),
    (times.date_codec(reverse=False), "2020-1-1"),
    (times.date_codec(reverse=False), "2020-02-30"),
    (identifiers.uuid_codec(), "{00000000-0000-0000-0000-000000000000}"),
    (identifiers.OCTETS, "C5"),
    (identifiers.OCTETS, "c4"),
    (identifiers.OCTETS, "W0"),
    (identifiers.decimal_codec(4, 2), "1234"),
    (identifiers.decimal_codec(4, 2), "100.000"),
]

_CHARACTERS = " !\"#$%&./0>?@[\\]'_a\ufffc\ue000\U0001f600"


def random_text(random: Random) -> str:
    """Return a short text of characters near the escaped ones."""
    return "".join(random.choices(_CHARACTERS, k=random.randrange(4)))
