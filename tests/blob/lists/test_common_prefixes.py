"""Common prefixes of odd names against a simple model: of a slice alone, and of pages of lists."""

import asyncio
import itertools
from collections.abc import Sequence, Set

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lazulite.blob.lists.common_prefixes import common_prefixes
from lazulite.blob.model.rows import CURRENT, LEDGER, LIST
from lazulite.engine.contract import LISTED
from lazulite.engine.key_encoding import SPACE_BYTES, decode_text, encode_key, join_keys
from lazulite.engine.ordinal import ordinal
from tests.blob.lists.test_listing import BLOB, Stored, all_pages, expected, fill, grouped
from tests.blob.world import opened

TEXTS = st.text(st.sampled_from("a/-]^\\\uffff\U00010000"), max_size=3)
DELIMITERS = st.sampled_from(["/", "-", "]", "^", "\\", "\0", "\U00010000", "//", "/-", "aa", "\U00010000\uffff"])
NAMES = st.builds(
    lambda delimiter, heads, tails, others: (delimiter, {f"{h}{delimiter}{t}" for h in heads for t in tails} | others),
    DELIMITERS,
    st.sets(TEXTS, min_size=1, max_size=4),
    st.sets(TEXTS, min_size=1, max_size=3),
    st.just(set[str]()) | st.sets(TEXTS.filter(bool), max_size=2),
)
"""A delimiter, and names: most of them contain it."""
ROWS = st.sampled_from([{CURRENT}, {CURRENT}, {CURRENT}, {CURRENT, LIST}, {LEDGER, CURRENT}, {LIST}])


SPACES = st.sampled_from([5, LISTED | 0x04FF, 0x2F2F_612F, 0x00FF_2F00_62FF_FE00])
"""Their numbers have bytes that stand for something else in texts."""


def model(keys: list[tuple[str, str]], prefix: str, delimiter: str) -> list[str]:
    found: list[str] = []
    for name, row in keys:
        head, mark, _ = name[len(prefix) :].partition(delimiter)
        common = prefix + head + mark
        if common not in found:
            if not mark or row != CURRENT:
                break
            found.append(common)
    return found


@given(TEXTS, NAMES, st.lists(ROWS, min_size=1, max_size=20), SPACES)
@example("/", ("//", {"//", "///"}), [{CURRENT}], 5)
@example("", ("/", {"a/b", "a/\0/c", "a/d", "b/c"}), [{CURRENT}], 5)
@example("", ("/", {"a/", "a/\0--space-c/d"}), [{CURRENT}], 5)
def test_prefixes_of_a_slice(prefix: str, named: tuple[str, Set[str]], rows: Sequence[Set[str]], space: int) -> None:
    delimiter, names = named
    stored = zip(sorted(names, key=ordinal), itertools.cycle(rows))
    keys = [(prefix + name, row) for name, some in stored for row in sorted(some)]
    encoded = [encode_key(space, *key) for key in keys]
    joined = [join_keys(encoded, SPACE_BYTES), join_keys([key[SPACE_BYTES:] for key in encoded], 0)]
    found = [prefix + decode_text(each) for each in common_prefixes(joined[0], prefix, delimiter)]
    expected = model(keys, prefix, delimiter)
    if any("\0" in name for name, _ in keys):
        assert expected[: len(found)] == found
    else:
        assert expected == found
    assert common_prefixes(joined[1], prefix, delimiter) == common_prefixes(joined[0], prefix, delimiter)


@settings(max_examples=30, deadline=None)
@given(NAMES, TEXTS, st.integers(1, 5))
def test_pages_of_prefixes(named: tuple[str, Set[str]], prefix: str, most: int) -> None:
    delimiter, names = named
    stored = {f"{prefix}{name}".lstrip("\0") or "a": Stored(BLOB, {}, {}, upload=False, noise=2) for name in names}

    async def run() -> None:
        async with opened() as world:
            await fill(world, stored)
            pages = await all_pages(world, prefix=prefix, delimiter=delimiter, most=most)
            assert pages == grouped(expected(stored, frozenset()), prefix, delimiter)

    asyncio.run(run())


def test_the_time_of_a_long_delimiter_is_linear() -> None:
    name = "a" * 1000
    joined = join_keys([f"{name}b\0{CURRENT}".encode()] * 20000, 0)
    assert common_prefixes(joined, "", "a" * 900 + "b") == [f"{name}b".encode()]
