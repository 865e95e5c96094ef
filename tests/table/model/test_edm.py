import base64
import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.table.model import edm


@pytest.mark.parametrize(
    ("edm_type", "value", "literal"),
    [
        (edm.STRING, "", '""'),
        (edm.STRING, 'a"b\\\n\tô\U0001f600', '"a\\"b\\\\\\n\\t\\u00f4\\ud83d\\ude00"'),
        (edm.BOOLEAN, True, "true"),
        (edm.BOOLEAN, "False", "false"),
        (edm.INT32, -(2**31), "-2147483648"),
        (edm.INT32, "12345", "12345"),
        (edm.INT64, 2**63 - 1, '"9223372036854775807"'),
        (edm.INT64, "-9223372036854775808", '"-9223372036854775808"'),
        (edm.INT64, "+05", '"5"'),
        (edm.DOUBLE, 4, "4.0"),
        (edm.DOUBLE, "3.14", "3.14"),
        (edm.DOUBLE, "NaN", '"NaN"'),
        (edm.DOUBLE, "INF", '"Infinity"'),
        (edm.DOUBLE, "-Infinity", '"-Infinity"'),
        (edm.DOUBLE, 5e-324, "4.94065645841247E-324"),
        (edm.DOUBLE, 1.7976931348623157e308, "1.7976931348623157E+308"),
        (edm.DOUBLE, 123456789012345.12, "123456789012345.12"),
        (edm.DOUBLE, 1e15, "1E+15"),
        (edm.DOUBLE, -0.0, "-0.0"),
        (edm.DATETIME, "2014-05-07T08:20:53.000Z", '"2014-05-07T08:20:53Z"'),
        (edm.DATETIME, "2014-05-07T08:20:53.200Z", '"2014-05-07T08:20:53.2Z"'),
        (edm.DATETIME, "2014-05-07T08:20:53", '"2014-05-07T08:20:53Z"'),
        (edm.DATETIME, "2014-05-07T08:20:53+02:00", '"2014-05-07T06:20:53Z"'),
        (edm.DATETIME, "2014-05-07T08:20:53.123456789Z", '"2014-05-07T08:20:53.1234567Z"'),
        (edm.DATETIME, "2014-05-07", '"2014-05-07T00:00:00Z"'),
        (edm.DATETIME, "1601-01-01T00:00:00Z", '"1601-01-01T00:00:00Z"'),
        (edm.DATETIME, "9999-12-31T23:59:59.9999999Z", '"9999-12-31T23:59:59.9999999Z"'),
        (edm.GUID, "C9DA6455-213D-42C9-9A79-3E9149A57833", '"c9da6455-213d-42c9-9a79-3e9149a57833"'),
        (edm.BINARY, "AQID", '"AQID"'),
        (edm.BINARY, "", '""'),
    ],
)
def test_canonical_literals(edm_type: edm.EdmType, value: edm.Json, literal: str) -> None:
    assert edm_type.literal(value) == literal
    assert edm_type.literal(json.loads(literal)) == literal


@pytest.mark.parametrize(
    ("edm_type", "value"),
    [
        (edm.STRING, 1),
        (edm.BOOLEAN, 1),
        (edm.BOOLEAN, "yes"),
        (edm.INT32, 2**31),
        (edm.INT32, 1.5),
        (edm.INT32, True),
        (edm.INT32, "1" * 41),
        (edm.INT64, 2**63),
        (edm.INT64, "x"),
        (edm.DOUBLE, "1e400"),
        (edm.DOUBLE, math.inf),
        (edm.DOUBLE, 10**400),
        (edm.DOUBLE, "0x10"),
        (edm.DOUBLE, "1_0"),
        (edm.DOUBLE, True),
        (edm.DATETIME, "yesterday"),
        (edm.DATETIME, "2014-02-30T00:00:00Z"),
        (edm.DATETIME, "2014-05-07T24:00:00Z"),
        (edm.DATETIME, 5),
        (edm.DATETIME, "1600-12-31T23:59:59.9999999Z"),
        (edm.GUID, "c9da6455213d42c99a793e9149a57833"),
        (edm.GUID, None),
        (edm.BINARY, "A"),
        (edm.BINARY, "A*=="),
        (edm.BINARY, 1),
    ],
)
def test_rejected_values(edm_type: edm.EdmType, value: edm.Json) -> None:
    with pytest.raises(ValueError, match=r"."):
        edm_type.literal(value)


def test_a_datetime_out_of_range_is_shown_as_dotnet_shows_it() -> None:
    with pytest.raises(edm.DateTimeRangeError) as caught:
        edm.DATETIME.literal("0001-01-01T00:00:00Z")
    assert caught.value.text == "01/01/0001 00:00:00"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_round_trip(value: float) -> None:
    literal = edm.format_double(value)
    assert json.loads(literal) == value
    assert edm.type_of_literal(literal) is edm.DOUBLE


@given(
    st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(-10, 10, places=16).map(float)
    | st.integers(-(10**18), 10**18).map(float)
    | st.integers(-(10**18), 10**18).map(lambda number: number / 128)
)
def test_doubles_have_fifteen_digits_or_seventeen(value: float) -> None:
    """As .NET writes them: 17 where 15 do not give the number back."""
    text = f"{value:.15g}"
    if float(text) != value:
        text = f"{value:.17g}"
    text = text.upper()
    assert edm.format_double(value) == (text if "." in text or "E" in text else f"{text}.0")


@given(st.integers(0, edm.DATETIME_MAX))
def test_datetimes_round_trip(ticks: int) -> None:
    assert edm.parse_datetime(edm.format_datetime(ticks)) == ticks
    assert edm.parse_datetime(edm.format_datetime7(ticks)) == ticks


@given(st.datetimes(min_value=datetime(1601, 1, 1)))
def test_datetimes_agree_with_the_standard_library(value: datetime) -> None:
    ticks = edm.parse_datetime(value.isoformat())
    seconds = value.replace(tzinfo=UTC) - datetime(1601, 1, 1, tzinfo=UTC)
    assert ticks == (seconds.days * 86_400 + seconds.seconds) * 10_000_000 + seconds.microseconds * 10


@given(st.text())
def test_strings_round_trip(value: str) -> None:
    literal = edm.STRING.literal(value)
    assert literal.isascii()
    assert edm.STRING.decode(literal) == value
    assert edm.STRING.size(literal) == 2 * len(value.encode("utf-16-le", "surrogatepass")) // 2 + 4


@given(st.binary())
def test_binaries_round_trip(value: bytes) -> None:
    literal = edm.BINARY.literal(base64.b64encode(value).decode())
    assert edm.BINARY.decode(literal) == value
    assert edm.BINARY.size(literal) == len(value) + 4


@given(st.text(max_size=40))
def test_parsers_reject_with_value_errors_only(text: str) -> None:
    for edm_type in edm.TYPES.values():
        try:
            literal = edm_type.literal(text)
        except ValueError:
            continue
        assert literal.isascii()


@pytest.mark.parametrize(
    ("value", "edm_type"),
    [("1", edm.STRING), (True, edm.BOOLEAN), (1, edm.INT32), (1.0, edm.DOUBLE)],
)
def test_types_by_the_shape_of_the_json(value: edm.Json, edm_type: edm.EdmType) -> None:
    assert edm.type_of_json(value) is edm_type


@pytest.mark.parametrize("value", [[], {}, None])
def test_what_is_no_primitive_has_no_type(value: edm.Json) -> None:
    with pytest.raises(ValueError, match="primitive"):
        edm.type_of_json(value)


@given(
    st.sampled_from([0, 21_846]),
    st.text("AQRgx+/=éA", max_size=12) | st.binary(max_size=9).map(lambda data: base64.b64encode(data).decode()),
)
@example(0, "QUFB=")
@example(0, "QUFB====")
@example(21_846, "=")
def test_binaries_are_spelled_canonically_or_rejected(groups: int, text: str) -> None:
    """Too large binaries have another check for base64."""
    before = "QUFB" * groups
    try:
        if len(text) % 4 or len(text) - len(text.rstrip("=")) > 2:
            raise ValueError("base64")  # Python takes superfluous padding.
        canonical = base64.b64encode(base64.b64decode(before + text, validate=True))
    except ValueError:
        with pytest.raises(ValueError, match=r"base64|(?i:ascii)"):
            edm.BINARY.literal(before + text)
        return
    literal = edm.BINARY.literal(before + text)
    assert literal[:-5] == f'"{canonical.decode()}"'[:-5]
    if not before:
        assert literal == f'"{canonical.decode()}"'
    assert (edm.BINARY.size(literal) > edm.BINARY.limit) is (len(base64.b64decode(canonical)) > 65_536)


def test_doubles_in_strings_have_a_bound() -> None:
    digits = "0." + "1" * (edm.DECIMAL_LENGTH_MAX - 2)
    assert edm.DOUBLE.literal(digits) == edm.DOUBLE.literal(float(digits))
    with pytest.raises(ValueError, match="Double"):
        edm.DOUBLE.literal(digits + "1")
