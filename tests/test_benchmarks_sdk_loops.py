"""The requests of the SDKs' loops are answered by templates, once these are learned."""

import pytest
from benchmarks.sdk_loops import HIT, measured


def test_templates_answer_the_loops_of_the_sdks() -> None:
    found = measured(100)
    assert len(found) == 11
    assert {name: each[HIT] / each.total() for name, each in found.items()} == pytest.approx(
        dict.fromkeys(found, 1.0), abs=0.01
    )
