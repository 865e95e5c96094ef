"""The figures of the study over HTTP: its client, its targets, and a clock that goes by as the client lives."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.simulated_study import append_only, figure_8, figure_15
from benchmarks.study import EXPERIMENTS, SECONDS_MIN, WITH_TARGETS, Curve, Study, points
from benchmarks.study_page import knee, knee_down, mean_ms_each, write

from lazulite.stress.histogram import bucket_of
from lazulite.stress.plan import Plan
from lazulite.stress.run import Step
from lazulite.stress.window import Window

from .test_words import long_sentences


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


def measured(plan: Plan) -> Step:
    """Return what a service would measure that takes 100 requests a second from each client, up to 1,000 in all."""
    found, load = min(1_000, 100 * plan.loads()[-1].clients), plan.loads()[-1]
    window = Window(requests=found, latencies=Counter({bucket_of(0.01): found}), busy=0.5)
    return Step(load, plan.cost, [window], 1.0, 1.0, True, machine_busy=0.96 if found == 1_000 else 0.5)


def test_the_page_has_each_figure_and_no_curve_of_the_study(tmp_path: Path) -> None:
    curves = Study(1.0, lambda _: iter([measured])).measure()
    assert set(curves) == {*EXPERIMENTS, *(f"{name} with targets" for name in WITH_TARGETS)}
    write(curves, tmp_path, 600, 1.0)
    page = (tmp_path / "study.md").read_text(encoding="utf-8")
    assert re.findall(r"^## Figure (\d+):", page, re.MULTILINE) == [str(number) for number in range(3, 16)]
    assert long_sentences(page) == []
    pictures = sorted((tmp_path / "study").glob("*.svg"))
    assert len(pictures) == 13
    assert sum(path.stat().st_size for path in pictures) <= 500_000
    for path in pictures:
        ET.fromstring(path.read_text(encoding="utf-8"))
    assert len((tmp_path / "study" / "points.csv").read_text(encoding="utf-8").splitlines()) > 100


def test_points_get_shorter_when_time_is_scarce() -> None:
    now = 0.0
    study = Study(3.0, lambda _: iter([measured]), 10, 100, lambda: now)
    assert study.take_seconds() == 3
    now = 60.0
    assert SECONDS_MIN < study.take_seconds() < 1.5
    now = 1000.0
    assert study.take_seconds() == SECONDS_MIN
    assert points() > 100


def test_knees() -> None:
    curve = Curve("a", {x: measured(Plan(clients=(x,))) for x in (1, 2, 5, 9, 10, 20)})
    assert knee(curve) == 9
    each = Curve("b", {1: measured(Plan()), 20: measured(Plan()), 100: measured(Plan())})
    assert knee_down(each, mean_ms_each) == 100
