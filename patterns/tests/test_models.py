"""The page of protocols has the counts of the models: `make models` writes them."""

import os
import subprocess
import sys

import pytest

from lazulite_patterns_simulation import Explored

from .models import TESTS, Model, modules, name_of, rows

SMALL = ["indexes/lists_model", "leases/blob_protocol", "shapes/fat_model", "shapes/series", "streams/model"]
"""Models that take seconds. The others are counted by the command only."""


def test_the_page_has_a_row_for_each_model() -> None:
    assert sorted(rows()) == [name_of(each) for each in modules()]


@pytest.mark.parametrize("name", SMALL)
def test_the_page_has_the_counts_of_small_models(name: str) -> None:
    code = f"from tests.models import *; print('row', explored(modules([{name!r}]))[0].row)"
    environment = {key: value for key, value in os.environ.items() if key != "PATTERNS_CAMPAIGN"}  # It counts more.
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.partition("row ")[2].strip() == rows()[name].strip(), "run `make models`"


def test_a_model_is_complete_if_all_its_explorations_are() -> None:
    whole, part = (Model("m", (Explored(7, 1), Explored(1000, 1, complete=each))) for each in (True, False))
    assert (whole.row, part.row) == ("| `m` | 2 | 1,007 | 1,000 | yes |\n", "| `m` | 2 | 1,007 | 1,000 | no |\n")
