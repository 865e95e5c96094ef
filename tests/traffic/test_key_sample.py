"""A sample of keys: its numbers are those of the rows."""

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lazulite.traffic.key_sample import KeySample


@given(st.lists(st.text("ab;", max_size=70)), st.integers(0, 70))
def test_the_numbers_are_those_of_the_rows(partitions: list[str], length: int) -> None:
    partitions.sort()
    sample = KeySample()
    for each in partitions:
        sample.add(each)
    rows = Counter(partitions)
    assert sample.rows == len(partitions)
    assert sample.partitions == len(rows)
    assert sample.single == sum(count == 1 for count in rows.values())
    if length <= 64:
        assert sample.partitions_by(length) == len({each[:length] for each in partitions})
    read = KeySample.of(json.loads(json.dumps(sample.as_json())))
    assert read.as_json() == sample.as_json()
    assert len(sample.common) == 65


def test_a_sample_has_no_row_until_one_is_named() -> None:
    assert KeySample().row is None
    assert KeySample.of({**KeySample().as_json(), "row": "2026-11"}).row == "2026-11"
