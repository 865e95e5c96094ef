"""Groups keep their limits, and lose no row."""

from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.bulk.groups import Group, Groups, Row
from lazulite_patterns.bulk.sizes import FRAME, operation_octets
from lazulite_patterns.effects.changesets import BYTES_MAX, body
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation
from lazulite_patterns.outcomes.verdict import Planned

URL = "https://account.table.core.windows.net/" + 63 * "t"


def row(number: int, partition: int, key: int, octets: int = 10) -> Row:
    operation = Operation(Kind.PUT, EntityKey(f"p{partition}", f"{key}"), {"N": number})
    return Row(number, Planned(operation), octets)


def sent(groups: list[Group]) -> list[int]:
    return [each.number for group in groups for each in group.rows.values()]


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 60)), max_size=200),
    st.integers(1, 10),
    st.integers(4, 50),
)
def test_memory_is_bounded_and_no_row_is_lost(
    rows: list[tuple[int, int, int]], entities_max: int, buffer_max: int
) -> None:
    groups = Groups(entities_max, buffer_max, 20 * buffer_max)
    closed: list[Group] = []
    for number, each in enumerate(rows):
        closed += groups.add(row(number, *each))
        assert groups.entities == len(sent(list(groups.opened))) <= buffer_max
        assert groups.octets <= 20 * buffer_max
        oldest = min(sent(list(groups.opened)), default=number)
        assert oldest >= number - 5 * buffer_max, "a resumed load begins not long ago"
    closed += groups.close()
    assert (groups.entities, groups.octets) == (0, 0)
    assert sorted(sent(closed)) == list(range(len(rows)))
    latest = {row(0, *each).key: number for number, each in enumerate(rows)}
    written: dict[EntityKey, int] = {}
    for group in closed:
        assert len({key.partition_key for key in group.rows}) == 1
        assert len(group.rows) <= entities_max
        written |= {key: each.number for key, each in group.rows.items()}
    assert written == latest, "the last row with a key is sent last"


def test_the_largest_groups_close_early() -> None:
    groups = Groups(100, 100, 10**9)
    assert groups.add(row(0, 0, 0)) == []
    closed = [group for number in range(1, 101) for group in groups.add(row(number, 1 + number % 4, number))]
    assert [len(each.rows) for each in closed] == [25, 25]
    assert 0 in sent(list(groups.opened))


def test_a_row_does_not_wait_for_ever() -> None:
    groups = Groups(100, 10, 10**9)
    groups.add(row(0, 0, 0))
    closed = [group for number in range(1, 60) for group in groups.add(row(number, number % 2 + 1, number))]
    assert 0 in sent(closed)


def test_a_group_closes_at_4_mib_as_it_is_sent() -> None:
    octets = (BYTES_MAX - FRAME) // 3
    groups = Groups(100, 1000, 10**9)
    closed = [group for number in range(8) for group in groups.add(row(number, 0, number, octets))]
    assert [sent([each]) for each in [*closed, *groups.close()]] == [[0, 1, 2], [3, 4, 5], [6, 7]]


VALUES = (
    st.text()
    | st.binary(max_size=200)
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.floats()
    | st.sampled_from(
        [
            EntityProperty(-(2**63), EdmType.INT64),
            EntityProperty("2014-07-31T18:00:00.1234567Z", EdmType.DATETIME),
            UUID(int=1),
            None,
        ]
    )
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.builds(EntityKey, KEYS, KEYS), st.dictionaries(KEYS, VALUES), st.sampled_from(Kind))
def test_an_operation_takes_no_more_than_its_size(key: EntityKey, properties: dict[str, object], kind: Kind) -> None:
    etag = "W/\"datetime'2026-11-23T17%3A41%3A25.1234567Z'\""
    operation = Operation(kind, key, properties, etag)
    assert len(body(Batch("t", (operation,)), URL, "0" * 36)) <= FRAME + operation_octets(key, properties)


@pytest.mark.parametrize("value", ["x" * 30_000, "\u20ac" * 30_000, '"' * 30_000, "\U0001f600" * 15_000, b"x" * 60_000])
def test_the_size_of_a_large_value_is_nearly_exact(value: object) -> None:
    key = EntityKey("\u4e2d" * 1024, "'" * 1024)
    exact = len(body(Batch("t", (Operation(Kind.PUT, key, {"A": value}),)), URL, "0" * 36))
    assert exact <= FRAME + operation_octets(key, {"A": value}) <= exact + 10 * FRAME
