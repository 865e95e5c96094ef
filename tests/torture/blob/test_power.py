"""What the campaign `blob-power` must find; CI has its disks in `tests.torture.power.test_contents`."""

from pathlib import Path

import pytest

from tests.torture.campaign import Budget
from tests.torture.power.recorder import COMPILER, compiler_missing

from .power import run
from .power_mutations import MUTATIONS

SECONDS_MAX = 300
FOUND_WITHIN = 12
"""Power cuts. As a rule the second shows a mutation."""

pytestmark = pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the recorder with")


@pytest.mark.mutation
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_mutation_is_found(mutation: str, tmp_path: Path) -> None:
    report = run(Budget(SECONDS_MAX, FOUND_WITHIN), 1, tmp_path, mutation)
    assert report.problems != ()
