from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.contract import Key
from lazulite.table.indexes.definition import Index, Scope
from lazulite.table.indexes.entries import ENTRY, IndexMaintenance
from lazulite.table.model.edm import INT32
from lazulite.table.model.row import Property, assemble, encode_keys, encode_properties
from tests.table.strategies import properties

INDEXES = [
    Index("a", ("A",), Scope.PARTITION, 2001),
    Index("ab", ("A", "B"), Scope.TABLE, 2002),
    Index("t", ("Timestamp",), Scope.TABLE, 2003),
]
values = properties.filter(bool).flatmap(lambda found: st.sampled_from([*found.values()]))
entities = st.one_of(st.none(), st.dictionaries(st.sampled_from(["A", "B", "C"]), values))
tables = st.dictionaries(st.sampled_from("rst"), entities, min_size=3, max_size=3)


def row_of(name: str, entity: Mapping[str, Property] | None, ticks: int) -> bytes | None:
    return None if entity is None else assemble(ticks, encode_keys("p", name), encode_properties(entity))


def entries_of(rows: Mapping[str, bytes | None]) -> set[tuple[int, Key]]:
    changes = IndexMaintenance(INDEXES).changes("p", dict.fromkeys(rows), rows)
    return {(space, key) for space, key, _, _ in changes}


@given(tables, tables, st.booleans())
def test_changes_lead_from_the_entries_before_to_those_after(
    before: dict[str, Mapping[str, Property] | None], after: dict[str, Mapping[str, Property] | None], same_time: bool
) -> None:
    old = {name: row_of(name, entity, 1) for name, entity in before.items()}
    new = {name: row_of(name, entity, 1 if same_time else 2) for name, entity in after.items()}
    entries = entries_of(old)
    for space, key, value, was in IndexMaintenance(INDEXES).changes("p", old, new):
        assert was == (ENTRY if (space, key) in entries else None)
        assert was != value
        entries ^= {(space, key)}
    assert entries == entries_of(new)


def test_what_stays_the_same_costs_nothing() -> None:
    entity = {"A": integer(1), "C": integer(2)}
    old = {"r": row_of("r", entity, 1)}
    new = {"r": row_of("r", {**entity, "C": integer(3)}, 2)}
    assert list(IndexMaintenance(INDEXES[:2]).changes("p", old, new)) == []


def integer(value: int) -> Property:
    return Property(INT32, str(value))
