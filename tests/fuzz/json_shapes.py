"""Bodies of few shapes and many values: patterns of shapes against the general path.

`python -m tests.fuzz.json_shapes --bodies 1000000` prints how many bodies there were, how many a pattern took, and that
all results are alike. `make test` runs a part of it.
"""

import argparse
import random
from collections.abc import Iterator
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model.entity import EncodedEntity, encode_entity
from lazulite.table.model.row import encode_keys
from lazulite.table.names import check_new_key
from lazulite.table.payload.json_fast_path import encode_plain
from lazulite.table.payload.json_pattern import JsonPattern, MatchedEntity, pattern_of
from lazulite.table.payload.json_reader import read_entity, read_members

_BODIES_PER_SHAPE = 20
_STRINGS = [
    '"x"',
    '"a b"',
    '""',
    '"/"',
    '"#?"',
    '"%s"',
    '"\'{}"',
    '"@odata.type"',
    r'"\u0041"',
    '"é"',
    r'"a\"b"',
    '"\x7f"',
    '"\t"',
]
_INTEGERS = [
    "1", "0", "1700000000", "-0", "-1", "007", "999999999", "1999999999", "2000000000", "2147483647", "2147483648",
    "-2147483648", "-2147483649", "1_0", "+1", "0x1",
]  # fmt: skip
_FLOATS = [
    "1.5", "1.50", "0.3333333333333333", "0.0001", "0.00001", "-0.5", "-0.0", "0.0", "10.0", "1e3", "1E-3", "-0e0",
    "1e400", "-1e400", "1e-400",
    "123456.123456", "9007199254740993.0", "5e-324", "1.7976931348623157e308", "1.", ".5", "1e",
    "00.5", "100000000000000000.0", "1.5e+07", "0.1000000000000000055511151231257827",
]  # fmt: skip
_OTHERS = ["true", "false", "True", "null", "[]", "{}", "NaN", "Infinity", "nul", ""]
_DATES = [
    '"2024-01-02T03:04:05.6789Z"', '"2024-01-02T03:04:05Z"', '"2024-01-02T03:04:05.67890Z"', '"2024-02-30T03:04:05Z"',
    '"1600-12-31T23:59:59Z"', '"1601-01-01T00:00:00Z"', '"0000-01-01T00:00:00Z"', '"9999-12-31T23:59:59.9999999Z"',
    '"2024-01-02T24:04:05Z"', '"2024-01-02"', '"2024-01-02T03:04:05.Z"', '"2024-01-02T03:04:05.0000000Z"',
    '"2024-01-02T03:04:60Z"', '"2024-01-02T03:04:05.12345678Z"', '"2024-01-02T03:04:05z"', '"2024-01-02T03:04:50.10Z"',
    '"2024-13-01T00:00:00Z"', '"2023-02-29T00:00:00.5Z"', '"2024-01-02T03:04:05+01:00"',
]  # fmt: skip
_GUIDS = ['"c9da6455-213d-42c9-9a79-3e9149a57833"', '"C9DA6455-213d-42c9-9a79-3e9149a57833"', '"c9da6455-213d"']
_BINARIES = ['"AAEC"', '"AAECAw=="', '"AAECAx=="', '"AAE="', '"AAF="', '"AAE"', '"A==="', '""', '"===="', '"A-_A"']
_LONGS = [
    '"1"',
    '"-5"',
    '"999999999999999999"',
    '"0"',
    '"-0"',
    '"01"',
    '"9223372036854775807"',
    '"9223372036854775808"',
]
_TYPES = {
    "Edm.String": _STRINGS,
    "Edm.Boolean": ["true", "false", '"true"', "1"],
    "Edm.Int32": [*_INTEGERS, '"5"'],
    "Edm.Int64": [*_LONGS, "1"],
    "Edm.Double": [*_FLOATS, *_INTEGERS, '"NaN"', '"1.5"', "9007199254740993"],
    "Edm.DateTime": _DATES,
    "Edm.Guid": _GUIDS,
    "Edm.Binary": _BINARIES,
    "Edm.Single": ["1.5"],
}
_UNDECLARED = [_STRINGS, _INTEGERS, _FLOATS, _OTHERS[:2]]
_EVERYTHING = [*_STRINGS, *_INTEGERS, *_FLOATS, *_OTHERS, *_DATES, *_GUIDS, *_BINARIES, *_LONGS]
_NAMES = ["A", "B", "C", "b", "N_1", "Pct", "Zoë", "Timestamp", "odata.etag"]
_KEYS = ["PartitionKey", "RowKey"]
_GOOD = 0.9
"""The share of bodies without a mutation, and of annotations before their value."""


class _Member(NamedTuple):
    name: str
    values: list[str]
    before: str = ""
    after: str = ""


class _Shape(NamedTuple):
    comma: str
    colon: str
    members: list[_Member]


class Counts(NamedTuple):
    """How many bodies were tried, and how many a pattern took. By both orders of properties."""

    bodies: int
    matched: int


def _shape(rnd: random.Random) -> _Shape:
    comma, colon = rnd.choice([(",", ":"), (", ", ": "), (",", ": ")])
    members = [_Member(name, _STRINGS) for name in _KEYS]
    for name in rnd.sample(_NAMES, rnd.randrange(5)):
        declared = rnd.choice([None, *_TYPES])
        if declared is None:
            members.append(_Member(name, rnd.choice(_UNDECLARED)))
        else:
            annotation = f'"{name}@odata.type"{colon}"{declared}"'
            before, after = (annotation + comma, "") if rnd.random() < _GOOD else ("", comma + annotation)
            members.append(_Member(name, _TYPES[declared], before, after))
    if rnd.random() > _GOOD:
        rnd.shuffle(members)
    return _Shape(comma, colon, members)


def _body(rnd: random.Random, shape: _Shape) -> bytes:
    members = []
    for name, values, before, after in shape.members:
        value = rnd.choice(rnd.choices([values[:3], values, _EVERYTHING], [8, 2, 1])[0])
        members.append(f'{before}"{name}"{shape.colon}{value}{after}')
    text = "{" + shape.comma.join(members) + "}"
    if rnd.random() > _GOOD:
        at = rnd.randrange(len(text))
        text = text[:at] + rnd.choice('"{},:0 \\\n\x00') + text[at + rnd.randrange(2) :]
    return text.encode()


def general(body: bytes, by_name: bool) -> MatchedEntity | EncodedEntity | str:
    """Return what a body means by the general path: as a pattern does if its keys are valid; or its rejection."""
    try:
        entity = encode_entity(finish(read_entity(body)), by_name)
    except ServiceError as error:
        return f"{error.code}: {error.message}"
    keys = entity.partition_key or "", entity.row_key or ""
    try:
        for name, key in zip(_KEYS, keys, strict=True):
            check_new_key(name, key)
    except ServiceError:
        return entity
    return *keys, encode_keys(*keys), entity.members


def pattern_like(body: bytes) -> JsonPattern | None:
    """Return the pattern of a body's shape, made as the service makes it."""
    try:
        members = finish(read_members(body))
    except ServiceError:
        return None
    if not body.isascii() or encode_plain(members, by_name=False) is None:
        return None
    return pattern_of(body, members)


def _groups(rnd: random.Random) -> Iterator[list[bytes]]:
    while True:
        shape = _shape(rnd)
        yield [_body(rnd, shape) for _ in range(_BODIES_PER_SHAPE)]


def compare(bodies: int, seed: int) -> Counts:
    """Compare patterns with the general path.

    Raises:
        AssertionError: a pattern gave another result. It names the body.
    """
    tried = matched = 0
    for group in _groups(random.Random(seed)):
        patterns = [pattern for pattern in map(pattern_like, group) if pattern is not None][:2]
        for body in group:
            for by_name in (False, True):
                expected = general(body, by_name)
                found = [pattern.encode(body, by_name) for pattern in patterns]
                assert all(each in (None, expected) for each in found), f"{body!r} by name: {by_name}"
                matched += any(found)
            tried += 1
        if tried >= bodies:
            return Counts(tried, matched // 2)
    raise AssertionError("groups do not end")


def main() -> None:
    """Compare, and print the counts."""
    parser = argparse.ArgumentParser("json_shapes", description=__doc__.partition("\n")[0])
    parser.add_argument("--bodies", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts = compare(options.bodies, options.seed)
    print(f"{counts.bodies:,} bodies, {counts.matched:,} taken by a pattern, all alike")


if __name__ == "__main__":
    main()
