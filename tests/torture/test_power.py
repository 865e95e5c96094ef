"""The power campaign, short: nothing acknowledged or shown is lost, and each sabotage is found.

The parts that judge have tests of their own: `test_disk`, `test_hindsight`, `test_witness`.
"""

from pathlib import Path

import pytest

from .campaign import Budget
from .power import DEFAULT_MIX, power
from .power_life import Mix
from .recorder import COMPILER, compiler_missing

SECONDS_MAX = 300
CUTS = 3
SEED, CUTS_MAX = 2, 60
"""A sabotage is found by the third cut, as a rule, and by the twentieth on a busy machine."""

pytestmark = pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the recorder with")


ALONE = Mix(early=0, accounts=0, backups=0, workers=0)
"""A service without commands beside it, whose start is not cut."""
IN_SYNC = ALONE._replace(in_sync=1, long=0, hindsight=0)
"""The same, cut in a sync, while readers look."""


@pytest.mark.parametrize(
    "mix",
    [
        pytest.param(DEFAULT_MIX, id="as in the campaign"),
        pytest.param(ALONE._replace(small=1, workers=1, hindsight=1), id="workers on small buffers, in hindsight"),
    ],
)
def test_nothing_acknowledged_or_shown_is_lost(mix: Mix, tmp_path: Path) -> None:
    report = power(Budget(SECONDS_MAX, CUTS), 1, tmp_path, mix=mix)
    assert report.problems == ()
    assert report.counts["power cuts"] == CUTS
    assert int(report.counts["acknowledgements"]) > 0
    assert int(report.counts["states shown to readers"]) > 0
    if mix.hindsight == 1:
        assert int(report.counts["in hindsight"]) > 0
        assert int(report.counts["tables flushed"]) > 0


@pytest.mark.parametrize(
    ("sabotage", "mix"),
    [
        ("sync-nothing", ALONE),
        ("leave-out-syncs", ALONE._replace(long=1, hindsight=1)),
        ("answer-early", IN_SYNC),
        ("show-unsynced", IN_SYNC),
        ("show-unsynced-ranges", IN_SYNC),
        ("forget-names", ALONE._replace(fresh=1, strict=1)),
        ("accounts-unsynced", ALONE._replace(accounts=1)),
    ],
)
def test_it_finds(sabotage: str, mix: Mix, tmp_path: Path) -> None:
    budget = Budget(SECONDS_MAX, CUTS_MAX)
    report = power(budget, SEED, tmp_path, sabotage, mix)
    assert report.problems, report.counts
