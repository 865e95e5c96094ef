"""Entities of every type, as the service sends them."""

import base64
import math
import uuid
from typing import Any

from hypothesis import strategies as st

from lazulite.table.model.edm import DATETIME_MAX, finite_literal, format_datetime
from lazulite.transfer.values import ANNOTATION, Entity

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "=1+1", "a,b", '"', "a\r\nb", "\r", "\n", "null", "true", "007", "'", "@x", "\ufeff", " a ", "\x00", "😀"]
)
NAMES = ("A", "B", "C", "Ünï", "with_9")


def typed(type_name: str, value: Any) -> tuple[str | None, Any]:
    return f"Edm.{type_name}", value


def double(value: float) -> tuple[str | None, Any]:
    if math.isfinite(value):
        return None, float(finite_literal(value))
    return typed("Double", "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")


VALUES = st.one_of(
    TEXT.map(lambda value: (None, value)),
    st.booleans().map(lambda value: (None, value)),
    st.integers(-(1 << 31), (1 << 31) - 1).map(lambda value: (None, value)),
    st.integers(-(1 << 63), (1 << 63) - 1).map(lambda value: typed("Int64", str(value))),
    st.floats().map(double),
    st.integers(0, DATETIME_MAX).map(lambda ticks: typed("DateTime", format_datetime(ticks))),
    st.binary(max_size=9).map(lambda value: typed("Binary", base64.b64encode(value).decode())),
    st.uuids().map(lambda value: typed("Guid", str(value))),
)
"""The annotation, if there is one, and the value."""


def entity(properties: dict[str, tuple[str | None, Any]], keys: tuple[str, str] = ("p", "r")) -> Entity:
    made: Entity = {
        "PartitionKey": keys[0],
        "RowKey": keys[1],
        "Timestamp": "2026-11-28T09:00:00.1234567Z",
    }
    for name, (annotation, value) in properties.items():
        if annotation is not None:
            made[name + ANNOTATION] = annotation
        made[name] = value
    return made


NULLS = st.just((None, None))
ENTITIES = st.lists(
    st.builds(entity, st.dictionaries(st.sampled_from(NAMES), VALUES | NULLS, max_size=4), st.tuples(TEXT, TEXT)),
    max_size=6,
)

EVERY_TYPE: dict[str, tuple[str | None, Any]] = {
    "Text": (None, 'ünïcode, "quoted"\r\nand more'),
    "Empty": (None, ""),
    "Yes": (None, True),
    "Small": (None, -5),
    "Big": typed("Int64", "9007199254740993"),
    "Lowest": typed("Int64", str(-(1 << 63))),
    "Whole": (None, 1.0),
    "Third": (None, 0.1 + 0.2),
    "Huge": (None, 1e300),
    "NaN": typed("Double", "NaN"),
    "Infinite": typed("Double", "-Infinity"),
    "Time": typed("DateTime", "2026-11-28T09:06:43.1234567Z"),
    "First": typed("DateTime", "1601-01-01T00:00:00Z"),
    "Last": typed("DateTime", "9999-12-31T23:59:59.9999999Z"),
    "Id": typed("Guid", str(uuid.UUID(int=1))),
    "Bytes": typed("Binary", "AP8="),
    "NoBytes": typed("Binary", ""),
}
