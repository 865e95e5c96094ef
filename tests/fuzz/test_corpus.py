"""Every stored input through its target: what was found once is found again if it comes back."""

import pytest

from tests.docs_support import table_rows

from . import corpus
from .runner import Runner
from .seeds import SEEDS, seeds
from .targets import TARGETS

_CPU_SECONDS_MAX = 2.0
"""Processor time of an input, with coverage measured on a slow machine."""


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_stored_breaks_a_promise(target: str) -> None:
    runner = Runner(target, cpu_seconds_max=_CPU_SECONDS_MAX)
    try:
        broken = {key: data for data in seeds(target) + corpus.read(target) if (key := runner.broken(data))}
    finally:
        runner.close()
    assert broken == {}


def test_each_target_has_seeds() -> None:
    assert set(SEEDS) == set(TARGETS)


def test_each_target_is_documented() -> None:
    assert {row[0].strip("`") for row in table_rows("docs/fuzzing.md") if row[0][0] == "`"} == set(TARGETS)
