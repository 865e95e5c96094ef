"""The header fields of a request, and which of them clients repeat from request to request."""

from collections.abc import Mapping
from typing import Final

CHANGING: Final = frozenset(
    {"authorization", "x-ms-date", "date", "x-ms-client-request-id", "content-length", "traceparent", "x-forwarded-for"}
)
"""Fields that differ from request to request: each reader of one of them reads it again for every request."""

METADATA_PREFIX: Final = "x-ms-meta-"
"""Begins the name of each field with metadata that a client gives to a resource."""


class SpelledName(str):
    """A field name in lower case that knows how the client spelled it.

    Metadata names keep their case and are compared without regard to it (reference §25.1).
    """

    __slots__ = ("spelled",)

    spelled: str


def lower_name(name: str) -> str:
    """Return a field name in lower case; that of metadata as a `SpelledName`."""
    lower = name.lower()
    if lower == name or not lower.startswith(METADATA_PREFIX):
        return lower
    known = SpelledName(lower)
    known.spelled = name
    return known


def spelling(name: str) -> str:
    """Return a field name as the client spelled it if it is one of metadata, else as it is."""
    return name.spelled if isinstance(name, SpelledName) else name


class JoinedValue(str):
    """The values of a field that came more than once, joined by commas (RFC 9110, 5.3).

    Most services take them for one value; some reject a repetition (reference §25.1).
    """

    __slots__ = ()


def join_values(before: str, value: str) -> JoinedValue:
    """Return the value of a field that came again together with what came before."""
    return JoinedValue(f"{before}, {value}")


class Fields(dict[str, str]):
    """Header values by name in lower case.

    Attributes:
        steady: the lines of all other fields than `CHANGING`, as received, in their order. Two heads with equal
            `steady` say the same in these fields.
    """

    __slots__ = ("steady",)

    steady: tuple[bytes, ...]

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Fields":
        """Return the fields of a head that was not received as lines; `steady` has one for each field."""
        fields = cls(headers)
        fields.steady = tuple(
            f"{name}: {value}".encode("latin-1", "replace") for name, value in headers.items() if name not in CHANGING
        )
        return fields

    def replaced(self, name: str, value: str) -> "Fields":
        """Return these fields with another value of one, which `steady` then has as its last line."""
        fields = Fields(self)
        fields[name] = value
        fields.steady = (*self.steady, f"{name}: {value}".encode("latin-1", "replace"))
        return fields
