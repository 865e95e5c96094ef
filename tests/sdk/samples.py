"""Property values and keys that must survive the round trip, for the synchronous and the asynchronous SDK alike."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple
from uuid import UUID

from azure.data.tables import EdmType, EntityProperty

_GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")


class Sample(NamedTuple):
    """A property value: what is sent and what must be read back, in value and in type."""

    name: str
    sent: Any
    read: Any


def _plain(**values: Any) -> list[Sample]:
    return [Sample(name, value, value) for name, value in values.items()]


SAMPLES: list[Sample] = [
    *_plain(
        String="text",
        StringEmpty="",
        StringBlank=" \t\r\n ",
        StringUnicode="zażółć 中文 \u2028 \ufeff \uffff",
        StringEmoji="😀👩‍👩‍👧",
        StringQuotes='it\'s "quoted" \\ {json} <xml/> %27 &amp;',
        StringControls="\u0001\u001f\u007f\u0085",
        StringLikeDate="2020-01-01T00:00:00Z",
        StringLikeGuid=str(_GUID),
        StringLikeNumber="007",
        StringLongest="x" * 32_768,
        StringLongestAstral="😀" * 16_384,
        BooleanTrue=True,
        BooleanFalse=False,
        Int32=7,
        Int32Zero=0,
        Int32Least=-(2**31),
        Int32Greatest=2**31 - 1,
        DoubleIntegral=4.0,
        DoubleNegativeZero=-0.0,
        DoubleTenth=0.1,
        DoubleLarge=1e22,
        DoublePrecise=123456789012345.12,
        DoubleGreatest=1.7976931348623157e308,
        DoubleSmallest=5e-324,
        DoubleNan=float("nan"),
        DoubleInfinite=float("inf"),
        DoubleNegativeInfinite=float("-inf"),
        Guid=_GUID,
        GuidZero=UUID(int=0),
        BinaryEmpty=b"",
        BinaryBytes=bytes(range(256)),
        BinaryLongest=b"\xff" * 65_536,
        DateTime=datetime(2024, 2, 29, 23, 59, 59, 123456, UTC),
        DateTimeWhole=datetime(2024, 2, 29, tzinfo=UTC),
        DateTimeLeast=datetime(1601, 1, 1, tzinfo=UTC),
        DateTimeGreatest=datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    ),
    Sample(
        "DateTimeOffset",
        datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
        datetime(2023, 12, 31, 23, tzinfo=UTC),
    ),
    *[
        Sample(f"Int64{index}", EntityProperty(value, EdmType.INT64), EntityProperty(value, EdmType.INT64))
        for index, value in enumerate((0, 5, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)))
    ],
    Sample("TypedString", EntityProperty("s", EdmType.STRING), "s"),
    Sample("TypedBoolean", EntityProperty(value=True, edm_type=EdmType.BOOLEAN), True),
    Sample("TypedInt32", EntityProperty(5, EdmType.INT32), 5),
    Sample("TypedDouble", EntityProperty(5.0, EdmType.DOUBLE), 5.0),
    Sample("TypedDoubleInteger", EntityProperty(5, EdmType.DOUBLE), 5.0),
    Sample("TypedDoubleText", EntityProperty("Infinity", EdmType.DOUBLE), float("inf")),
    Sample("TypedGuid", EntityProperty(str(_GUID).upper(), EdmType.GUID), _GUID),
    Sample("TypedBinary", EntityProperty("text", EdmType.BINARY), b"text"),
    Sample(
        "TypedDateTime",
        EntityProperty("2008-07-10T00:00:00.5Z", EdmType.DATETIME),
        datetime(2008, 7, 10, 0, 0, 0, 500_000, UTC),
    ),
]

KEYS: list[str] = [
    "",
    "simple",
    "O'Neil",
    "''",
    "100%",
    "%25",
    "%27",
    "a%20b",
    " blanks around ",
    "a+b",
    "a&b=c",
    "a,b",
    "(a),RowKey='b'",
    'say "hi"',
    "a;b:c@d!$*~_-.",
    "..",
    "<xml>&amp;",
    "{json}[0]",
    "|^`",
    "zażółć",
    "中文",
    "😀",
    "\uffff",
    "k" * 512,
]


def same(one: Any, other: Any) -> bool:
    """Whether two property values are equal in type and value, NaN, the sign of zero and the time zone included."""
    if isinstance(other, datetime):
        return isinstance(one, datetime) and one == other and one.utcoffset() == other.utcoffset()
    return type(one) is type(other) and repr(one) == repr(other)
