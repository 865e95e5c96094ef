"""Identifiers, octets and decimals as texts that sort."""

import base64
import secrets
import time
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from uuid import UUID

from lazulite_patterns.keys.characters import KeyValueError
from lazulite_patterns.keys.codecs import FunctionCodec, Integers

_UUID7_MARKS = (7 << 76) | (2 << 62)


def new_uuid7(milliseconds: int | None = None, random: Callable[[int], int] = secrets.randbits) -> UUID:
    """Return a UUID of version 7 (RFC 9562 §5.7): the time in milliseconds, then 74 random bits.

    Args:
        milliseconds: since 1970; None for now.
        random: returns that many random bits.
    """
    milliseconds = time.time_ns() // 1_000_000 if milliseconds is None else milliseconds
    return UUID(int=(milliseconds << 80) | (random(12) << 64) | random(62) | _UUID7_MARKS)


def uuid_codec(version: int | None = None) -> FunctionCodec[UUID]:
    """Return the codec of a UUID, in lower case with hyphens; of one version, or of any."""

    def write(value: UUID) -> str:
        if version is not None and value.version != version:
            raise KeyValueError(f"{value} is not of version {version}")
        return str(value)

    return FunctionCodec(UUID, write, UUID, timed=version == 7)


def _octets_text(value: bytes) -> str:
    return base64.b32hexencode(value).decode().rstrip("=")


def _octets(text: str) -> bytes:
    return base64.b32hexdecode(text + "=" * (-len(text) % 8))


OCTETS = FunctionCodec(bytes, _octets_text, _octets)
"""Octets in base32hex (RFC 4648 §7) without padding: it keeps their order, as base64 does not."""


def decimal_codec(digits: int, scale: int) -> FunctionCodec[Decimal]:
    """Return the codec of a decimal number: `digits` in all, `scale` of them after the point.

    Two decimals that are equal have the same text, so the text's value has `scale` digits after the point.
    """
    if not 0 <= scale <= digits:
        raise ValueError("scale is at most digits")
    integers = Integers(digits, signed=True)
    exact = Context(prec=digits + scale + 2, rounding=ROUND_HALF_EVEN)

    def write(value: Decimal) -> str:
        if not value.is_finite() or value.copy_abs() >= 10 ** (digits - scale):
            raise KeyValueError(f"{value} has not at most {digits - scale} digits before the point")
        scaled = value.scaleb(scale, exact)
        if scaled != scaled.to_integral_value() or scaled.scaleb(-scale, exact) != value:
            raise KeyValueError(f"{value} has more than {scale} digits after the point")
        text = integers.encode(int(scaled))
        return f"{text[:-scale]}.{text[-scale:]}" if scale else text

    def parse(text: str) -> Decimal:
        return Decimal(integers.decode(text.replace(".", "", 1))).scaleb(-scale, exact)

    return FunctionCodec(Decimal, write, parse)
