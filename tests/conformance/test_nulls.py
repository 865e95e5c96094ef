"""Reference §5.2: a null property is an absent one."""

import json

import pytest

from .client import NONE
from .tables import Table, entity

TYPES = ["String", "Boolean", "Int32", "Int64", "Double", "DateTime", "Guid", "Binary"]


def test_null_property_is_not_stored(table: Table) -> None:
    table.insert(entity("p", "r", A=None, B=1)).expect(201)
    row = table.get("p", "r", accept=NONE).json()
    assert "A" not in row
    assert row["B"] == 1


@pytest.mark.parametrize("name", TYPES)
def test_with_a_type_is_simply_null(table: Table, name: str) -> None:
    declared = {"A@odata.type": f"Edm.{name}", "A": None}
    assert "A" not in table.insert(entity("p", "r") | declared, Accept=NONE).expect(201).json()
    assert "A" not in table.get("p", "r").json()
    assert "A@odata.type" not in table.get("p", "r").json()


def test_on_merge_leaves_the_old_value(table: Table) -> None:
    table.add(entity("p", "r", A=1, B=2))
    for method in ("MERGE", "PATCH"):
        table.write(method, table.at("p", "r"), {"A": None, "B": 3}).expect(204)
        row = table.get("p", "r").json()
        assert (row["A"], row["B"]) == (1, 3)


def test_on_replace_vanishes(table: Table) -> None:
    table.add(entity("p", "r", A=1, B=2))
    table.write("PUT", table.at("p", "r"), {"A": None, "B": 3}).expect(204)
    row = table.get("p", "r").json()
    assert "A" not in row
    assert row["B"] == 3


@pytest.mark.parametrize("text", ["", " ", "  \t ", "\n", "\r\n", " x ", "\u00a0", "null"])
def test_empty_and_blank_strings_are_values(table: Table, text: str) -> None:
    table.insert(json.dumps(entity("p", "r", A=text))).expect(201)
    assert table.get("p", "r").json()["A"] == text
