"""The lines of keys in TOML, as messages name them."""

import tomllib
from collections.abc import Iterator

import pytest

from lazulite.seed.positions import Path, line_of, long_fraction

TEXT = '''# A comment = [ignored]
own = 1
[tables.Orders]
policies.reader = { permission = "r", expiry = 2030-01-01 00:00:00Z }
rows = [
  { PartitionKey = "a", "odd = key" = [1, [2,
    3]] }, # another
  { PartitionKey = """
two lines "quoted" """, RowKey = 'x' },
]

[[containers.images.blobs]]
name = "a"
[[containers.images.blobs]]
name = "b"
tags.'first.second' = "c"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("own",), 2),
        (("tables",), 1),
        (("tables", "Orders"), 3),
        (("tables", "Orders", "policies", "reader", "expiry"), 4),
        (("tables", "Orders", "rows", 0), 6),
        (("tables", "Orders", "rows", 0, "odd = key", 1, 1), 7),
        (("tables", "Orders", "rows", 1, "RowKey"), 9),
        (("tables", "Orders", "rows", 1, "missing"), 8),
        (("containers", "images", "blobs", 0, "name"), 13),
        (("containers", "images", "blobs", 1), 14),
        (("containers", "images", "blobs", 1, "tags", "first.second"), 16),
    ],
)
def test_a_key_has_its_line_or_that_of_its_nearest_outer_one(path: Path, line: int) -> None:
    assert line_of(TEXT, path) == line


def leaves(value: object, path: Path = ()) -> Iterator[Path]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from leaves(each, (*path, key))
    if not isinstance(value, dict | list):
        yield path


def test_each_value_that_the_parser_finds_has_a_line_at_which_its_key_or_its_text_stands() -> None:
    lines = TEXT.splitlines()
    for path in leaves(tomllib.loads(TEXT)):
        words = [each for each in path if isinstance(each, str)]
        assert any(word in lines[line_of(TEXT, path) - 1] for word in [*words, "3"]), path


def test_a_time_whose_last_digits_would_be_lost_is_found() -> None:
    assert long_fraction("a = 1\nb = 2020-01-01T00:00:00.1234567Z") == 2
    assert long_fraction("b = 2020-01-01 00:00:00.1234567Z") == 1
    assert long_fraction("b = 2020-01-01T00:00:00.123456Z") is None
    assert long_fraction('b = {datetime = "2020-01-01T00:00:00.1234567Z"} # 00:00:00.1234567') is None
