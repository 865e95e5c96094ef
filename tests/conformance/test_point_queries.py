"""Reference §9.1: one entity read."""

import pytest

from .client import FULL, MINIMAL, NONE
from .tables import STALE, Table, entity


@pytest.mark.parametrize("level", [NONE, MINIMAL, FULL])
def test_point_query_returns_the_entity(table: Table, level: str) -> None:
    tag = table.insert(entity("p", "r", A=1)).expect(201).etag
    answer = table.get("p", "r", accept=level).expect(200)
    assert answer.etag == tag
    assert answer.json()["A"] == 1


@pytest.mark.parametrize(("partition", "row"), [("p", "x"), ("x", "r"), ("P", "r"), ("p", "R"), ("", ""), ("r", "p")])
def test_point_query_of_a_missing_entity(table: Table, partition: str, row: str) -> None:
    table.add(entity("p", "r"))
    rejection = table.get(partition, row).rejection
    assert rejection == (404, "ResourceNotFound", "The specified resource does not exist.")


def test_point_query_of_a_missing_table(missing: Table) -> None:
    assert missing.get("p", "r").rejection == (404, "TableNotFound", "The table specified does not exist.")


def test_point_query_with_select(table: Table) -> None:
    table.add(entity("p", "r", A=1, B=2))
    answer = table.get("p", "r", "$select=B", accept=NONE).expect(200)
    assert answer.json() == {"B": 2}
    assert answer.etag


@pytest.mark.unverified
@pytest.mark.parametrize("query", ["$filter=A%20eq%202", "$top=1", "$top=0"])
def test_options_of_collections_are_ignored_or_rejected(table: Table, query: str) -> None:
    table.add(entity("p", "r", A=1))
    assert table.get("p", "r", query).status in {200, 400}


@pytest.mark.unverified
@pytest.mark.parametrize("tag", ["*", STALE])
def test_conditions_do_not_break_a_read(table: Table, tag: str) -> None:
    table.add(entity("p", "r"))
    for header in ("If_Match", "If_None_Match"):
        assert table.write("GET", table.at("p", "r"), None, **{header: tag}).status in {200, 304, 400, 412}
