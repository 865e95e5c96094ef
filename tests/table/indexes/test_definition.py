import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.table.indexes.definition import (
    TABLE_INDEXES_MAX,
    DeclarationError,
    Index,
    Scope,
    State,
    check_declaration,
)

names = st.from_regex("[A-Za-z][A-Za-z0-9_-]{0,20}", fullmatch=True)
indexes = st.builds(
    Index,
    names,
    st.lists(names, min_size=1, max_size=2, unique=True).map(tuple),
    st.sampled_from(Scope),
    st.integers(1024, 2**62),
    st.sampled_from(State),
)


@given(indexes)
def test_an_index_is_read_back(index: Index) -> None:
    assert Index.from_fields(json.loads(json.dumps(index.fields()))) == index


@pytest.mark.parametrize("fields", [{}, {"name": "x", "on": "A", "scope": "table", "space": 1, "state": "ready"}])
def test_a_damaged_index_is_rejected(fields: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Index.from_fields(fields)


OTHER = Index("by_mail", ("Mail",), Scope.PARTITION, 2000)


@pytest.mark.parametrize(
    ("name", "on", "others", "message"),
    [
        ("1st", ["A"], [], "the name of an index"),
        ("x" * 64, ["A"], [], "the name of an index"),
        ("By_Mail", ["A"], [OTHER], "the table has an index By_Mail"),
        ("x", ["A"], [OTHER] * TABLE_INDEXES_MAX, "the table has 5 indexes"),
        ("x", [], [], "one property"),
        ("x", ["A", "A"], [], "one property"),
        ("x", ["A", "B", "C"], [], "one property"),
        ("x", ["RowKey"], [], "RowKey is a key"),
        ("x", ["a b"], [], "no property can have the name 'a b'"),
    ],
)
def test_a_declaration_that_is_not_allowed(name: str, on: list[str], others: list[Index], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        check_declaration(name, on, others)


@pytest.mark.parametrize("on", [["Mail"], ["Timestamp"], ["City", "Name"], ["Größe"]])
def test_a_declaration_that_is_allowed(on: list[str]) -> None:
    check_declaration("by-x_1", on, [OTHER])
