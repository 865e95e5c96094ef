"""Mutations that know a little of what they change: lines, words, brackets, base64 segments, repetition.

Everything comes from the `Random` that is handed in, so a seed repeats a run.
"""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from random import Random

_REPEATS = (2, 3, 10, 40, 101, 300, 3000)
_SEGMENT = re.compile(rb"[A-Za-z0-9_-]{8,}")


def _cut(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + int(random.expovariate(1 / 12)) + 1)


def _flip(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        changed[random.randrange(len(changed))] = random.choice(
            (random.randrange(256), 0x27, 0x22, 0x25, 0x0A, 0x0D, 0x20)
        )
    return bytes(changed)


def _delete(data: bytes, random: Random) -> bytes:
    start, end = _cut(data, random)
    return data[:start] + data[end:]


def _repeat(data: bytes, random: Random) -> bytes:
    start, end = _cut(data, random)
    return data[:start] + data[start:end] * random.choice(_REPEATS) + data[end:]


def _move(data: bytes, random: Random) -> bytes:
    start, end = _cut(data, random)
    rest = data[:start] + data[end:]
    at = random.randrange(len(rest) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def _lines(data: bytes, random: Random) -> bytes:
    lines = data.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(3):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            lines.insert(one, lines[other])
        case _:
            del lines[one]
    return b"\n".join(lines)


def _inside_base64(data: bytes, random: Random) -> bytes:
    """Change what a base64 segment says, and encode it again."""
    found = list(_SEGMENT.finditer(data))
    if not found:
        return _flip(data, random)
    match = random.choice(found[:8])
    try:
        inner = base64.urlsafe_b64decode(match[0] + b"=" * (-len(match[0]) % 4))
    except binascii.Error:
        return _delete(data, random)
    changed = random.choice((_flip, _delete, _repeat))(inner or b"x", random)
    return data[: match.start()] + base64.urlsafe_b64encode(changed).rstrip(b"=") + data[match.end() :]


_SHAPES: tuple[Callable[[bytes, Random], bytes], ...] = (_flip, _delete, _repeat, _move, _lines, _inside_base64)


class Mutator:
    """Changes inputs of one target."""

    def __init__(self, words: Sequence[bytes], corpus: Sequence[bytes]) -> None:
        self._words = words
        self._corpus = corpus

    def __call__(self, data: bytes, bytes_max: int, random: Random) -> bytes:
        """One to four changes, the length kept within bounds."""
        for _ in range(random.choice((1, 1, 2, 4))):
            data = self._change(data or b"\n", random)[:bytes_max]
        return data

    def _change(self, data: bytes, random: Random) -> bytes:
        start, end = _cut(data, random)
        match random.randrange(10):
            case 0 | 1:
                return data[:start] + random.choice(self._words) + data[start:]
            case 2:
                return data[:start] + random.choice(self._words) + data[end:]
            case 3:
                other = random.choice(self._corpus)
                return data[:start] + other[random.randrange(len(other) + 1) :]
            case _:
                return random.choice(_SHAPES)(data, random)
