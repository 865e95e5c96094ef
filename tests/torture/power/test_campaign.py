"""The power campaign, short: nothing acknowledged or shown is lost, and each mutation is found.

The parts that judge have tests of their own: `test_disk`, `test_hindsight`, `test_witness`.
"""

from pathlib import Path

import pytest

from tests.torture.campaign import Budget, mutation_cases

from .campaign import DEFAULT_MIX, power
from .life import Mix
from .recorder import COMPILER, compiler_missing

SECONDS_MAX = 600
CUTS = 3
SEED, CUTS_MAX = 2, 60
"""A mutation is found by the third cut, as a rule, and by the twentieth on a busy machine."""

pytestmark = pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the recorder with")


ALONE = Mix(early=0, accounts=0, backups=0, workers=0)
"""A service without commands beside it, whose start is not cut."""
IN_SYNC = ALONE._replace(in_sync=1, long=0, hindsight=0)
"""The same, cut in a sync, while readers look."""


@pytest.mark.parametrize(
    "mix",
    [
        pytest.param(DEFAULT_MIX, id="as in the campaign"),
        pytest.param(
            ALONE._replace(small=1, workers=1, hindsight=1),
            id="workers on small buffers, in hindsight",
            marks=pytest.mark.mutation,
        ),
    ],
)
def test_acknowledged_and_shown_states_survive_power_cuts(mix: Mix, tmp_path: Path) -> None:
    report = power(Budget(SECONDS_MAX, CUTS), 1, tmp_path, mix=mix)
    assert report.problems == ()
    assert report.counts["power cuts"] == CUTS
    assert int(report.counts["acknowledgements"]) > 0
    assert int(report.counts["states shown to readers"]) > 0
    if mix.hindsight == 1:
        assert int(report.counts["in hindsight"]) > 0
        assert int(report.counts["tables flushed"]) > 0


@pytest.mark.parametrize(
    ("mutation", "mix"),
    mutation_cases(
        "sync-nothing",
        [
            ("sync-nothing", ALONE),
            ("leave-out-syncs", DEFAULT_MIX),
            ("answer-early", IN_SYNC),
            ("show-unsynced", IN_SYNC),
            ("show-unsynced-ranges", IN_SYNC),
            ("forget-names", ALONE._replace(fresh=1, strict=1)),
            ("accounts-unsynced", ALONE._replace(accounts=1)),
        ],
    ),
)
def test_mutation_is_found(mutation: str, mix: Mix, tmp_path: Path) -> None:
    budget = Budget(SECONDS_MAX, CUTS_MAX)
    report = power(budget, SEED, tmp_path, mutation, mix)
    assert report.problems, report.counts
