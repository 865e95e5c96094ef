"""The figures of the study over HTTP: its client, its targets, and a clock that goes by as the client lives."""

import pytest
from benchmarks.study import append_only, figure_8, figure_15


@pytest.mark.parametrize(("threads", "share"), [(20, 0), (30, 0.08), (50, 0.23)])
def test_figure_15(threads: int, share: float) -> None:
    found = figure_15(threads, 15, warm_share=0.4)
    assert found.share == pytest.approx(share, abs=0.04)
    assert found.passed == pytest.approx(min(2_500, threads * 100 / 0.87), rel=0.04)


def test_figure_8() -> None:
    single = [figure_8(machines, single=True, seconds=2) for machines in (1, 2, 4)]
    several = [figure_8(machines, single=False, seconds=2) for machines in (1, 2, 4)]
    assert [found.passed for found in single] == pytest.approx([300, 600, 1_000], rel=0.03)
    assert [found.passed for found in several] == pytest.approx([300, 600, 1_200], rel=0.03)
    assert {found.refused for found in (*single, *several)} == {0}


def test_a_hash_before_keys_that_rise_uses_all_servers() -> None:
    rising, hashed = (append_only(hashed=hashed, seconds=20, time_scale=120) for hashed in (False, True))
    assert rising.passed <= 600
    assert hashed.passed >= 3 * rising.passed
