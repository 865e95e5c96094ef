"""Patterns are made now and then, kept by account and table, and bounded."""

from unittest.mock import Mock

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model.entity import EncodedEntity
from lazulite.table.payload import pattern_cache
from lazulite.table.payload.json_pattern import pattern_of
from lazulite.table.payload.json_reader import read_encoded, read_members
from lazulite.table.payload.pattern_cache import (
    ACCOUNTS_MAX,
    BODIES_PER_PATTERN,
    BODY_BYTES_MAX,
    CHARACTERS_MAX,
    TABLES_MAX,
    PatternCache,
    TablePatterns,
)
from tests.fuzz.json_shapes import general

BODY = b'{"PartitionKey":"p","RowKey":"r","A":1}'


def teach(patterns: TablePatterns, body: bytes, times: int = BODIES_PER_PATTERN) -> None:
    """Read a body that often."""
    for _ in range(times):
        finish(read_encoded(body, False, patterns))


def test_a_pattern_is_made_of_bodies_that_repeat() -> None:
    patterns = TablePatterns()
    teach(patterns, BODY, BODIES_PER_PATTERN - 1)
    assert patterns.encode(BODY, by_name=False) is None
    teach(patterns, BODY, 1)
    assert patterns.encode(BODY, by_name=False) == general(BODY, by_name=False)
    assert patterns.encode(BODY.replace(b"1", b"25"), by_name=True) is not None


def test_the_read_entity_is_the_one_of_the_general_path_before_and_after() -> None:
    patterns = TablePatterns()
    for number in range(2 * BODIES_PER_PATTERN):
        for body in (BODY.replace(b"1", b"%d" % number), BODY.replace(b"1", b"%d.5" % number), BODY[:-1]):
            expected = general(body, by_name=False)
            found: EncodedEntity | str | None = patterns.encode(body, by_name=False)
            if found is None:
                try:
                    found = finish(read_encoded(body, False, patterns))
                except ServiceError as error:
                    found = f"{error.code}: {error.message}"
                else:
                    assert isinstance(expected, EncodedEntity)
                    expected = expected._replace(keys="")
            assert found == expected
    assert len(patterns) == 1


def test_shapes_of_one_table_have_their_own_patterns() -> None:
    patterns = TablePatterns()
    other = b'{"PartitionKey":"p","RowKey":"r","A":1,"B":"x"}'
    teach(patterns, BODY)
    teach(patterns, other)
    assert len(patterns) == 2
    assert all(patterns.encode(body, by_name=False) is not None for body in (BODY, other))


def test_a_shape_takes_the_place_of_another_with_as_many_quotes() -> None:
    patterns = TablePatterns()
    other = BODY.replace(b'"A"', b'"B"')
    teach(patterns, BODY)
    teach(patterns, other)
    assert len(patterns) == 1
    assert patterns.encode(other, by_name=False) is not None


def test_bodies_that_are_long_or_not_ascii_are_not_matched() -> None:
    patterns = TablePatterns()
    text = b'{"PartitionKey":"p","RowKey":"r","A":"%b"}'
    teach(patterns, text % "é".encode())
    teach(patterns, text % (b"x" * BODY_BYTES_MAX))
    assert len(patterns) == 0
    teach(patterns, text % b"x")
    assert patterns.encode(text % b"y", by_name=False) is not None
    assert patterns.encode(text % "é".encode(), by_name=False) is None
    assert patterns.encode(text % (b"x" * BODY_BYTES_MAX), by_name=False) is None


def test_the_expressions_of_a_table_are_bounded() -> None:
    patterns = TablePatterns()
    for count in range(1, 40):
        members = b",".join(b'"%b%02d":1' % (b"P" * 30, number) for number in range(count % 20 + 1))
        teach(patterns, b'{"PartitionKey":"p","RowKey":"%b",%b}' % (b"r", members))
    characters = [len(pattern.expression) for pattern in patterns._by_quotes.values()]
    assert 0.5 * CHARACTERS_MAX < sum(characters) <= CHARACTERS_MAX


def test_other_accounts_and_tables_evict_nothing() -> None:
    cache = PatternCache()
    known = cache.of("victim", "Table")
    teach(known, BODY)
    for number in range(10 * TABLES_MAX):
        cache.of("hostile", f"Table{number}")
    assert cache.of("victim", "Table") is known
    assert cache.of("hostile", "Table") is not known
    assert cache.of("victim", "Other") is not known


def test_the_number_of_tables_and_accounts_is_bounded() -> None:
    cache = PatternCache()
    for number in range(5 * TABLES_MAX):
        cache.of("a", f"Table{number}")
        cache.of(f"a{number}", "Table")
    assert len(cache._accounts) <= ACCOUNTS_MAX
    for number in range(5 * TABLES_MAX):
        cache.of("a", f"Table{number}")
    tables = cache._accounts.get("a")
    assert tables is not None
    assert len(tables) <= TABLES_MAX


def test_making_patterns_is_bounded_by_the_bodies_read(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = TablePatterns()
    made = Mock(side_effect=pattern_of)
    monkeypatch.setattr(pattern_cache, "pattern_of", made)
    for number in range(10 * BODIES_PER_PATTERN):
        body = BODY.replace(b'"A"', b'"A%d"' % number)
        patterns.learn(body, finish(read_members(body)))
    assert made.call_count == 10
