"""The power campaign, short: nothing acknowledged or shown is lost, and each sabotage is found."""

from pathlib import Path

import pytest

from .campaign import Budget
from .power import Mix, power
from .recorder import COMPILER, compiler_missing

SECONDS_MAX = 300
CUTS = 3
SEED, CUTS_MAX = 2, 20
"""A sabotage is found by the third cut, as a rule."""

pytestmark = pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the recorder with")


def test_nothing_acknowledged_or_shown_is_lost(tmp_path: Path) -> None:
    report = power(Budget(SECONDS_MAX, CUTS), 1, tmp_path)
    assert report.problems == ()
    assert report.counts["power cuts"] == CUTS
    assert int(report.counts["acknowledgements"]) > 0
    assert int(report.counts["states shown to readers"]) > 0


@pytest.mark.parametrize(
    ("sabotage", "mix"),
    [
        ("sync-nothing", Mix(early=0, accounts=0, backups=0)),
        ("answer-early", Mix(early=0, accounts=0, backups=0, in_sync=1)),
        ("show-unsynced", Mix(early=0, accounts=0, backups=0, in_sync=1)),
        ("show-unsynced-ranges", Mix(early=0, accounts=0, backups=0, in_sync=1)),
        ("forget-names", Mix(early=0, accounts=0, backups=0, fresh=1, strict=1)),
        ("accounts-unsynced", Mix(early=0, accounts=1, backups=0)),
    ],
)
def test_it_finds(sabotage: str, mix: Mix, tmp_path: Path) -> None:
    budget = Budget(SECONDS_MAX, CUTS_MAX)
    report = power(budget, SEED, tmp_path, ("tests.torture.sabotage", sabotage), mix)
    assert report.problems, report.counts
