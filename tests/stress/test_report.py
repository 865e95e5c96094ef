"""Histograms, reports and plots."""

import csv
import io
import json
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lazulite.stress import samples
from lazulite.stress.histogram import bucket_of, mean, quantile
from lazulite.stress.plan import plan_of
from lazulite.stress.plot import Line, Panel, Plot, Series, Text, png, round_up, shapes, svg
from lazulite.stress.report import csv_text, json_text, plot
from lazulite.stress.verdict import Limit, Outcome, Verdict

from .test_verdict import step


@pytest.mark.parametrize("seconds", [1e-6, 0.000_1, 0.001_7, 0.02, 1.0, 59.0])
def test_a_quantile_is_exact_to_one_percent(seconds: float) -> None:
    counts = {bucket_of(seconds): 9, bucket_of(seconds * 10): 1}
    assert quantile(counts, 0.5) == pytest.approx(seconds, rel=0.011)
    assert quantile(counts, 0.99) == pytest.approx(seconds * 10, rel=0.011)
    assert mean(counts) == pytest.approx(seconds * 1.9, rel=0.011)
    assert quantile({}, 0.5) == mean({}) == 0


def test_a_report_has_a_row_for_each_step() -> None:
    steps = [step(400), step(500, {"partition": 100})]
    read = list(csv.DictReader(io.StringIO(csv_text(steps))))
    assert [(row["step"], row["requests"], row["refused"]) for row in read] == [("1", "400", "0"), ("2", "500", "100")]
    verdict = Verdict(Outcome.FAIL, Limit.PARTITION, "it fails")
    found = json.loads(json_text(steps, plan_of({}), verdict, "http://127.0.0.1/a"))
    assert found["verdict"] == {"outcome": "fail", "limit": "the partition", "sentence": "it fails"}
    assert found["steps"][1]["refused_by"] == {"partition": 100}
    ET.fromstring(svg(plot(steps, plan_of({}), verdict)))


def test_a_plot_has_axes_with_round_ticks_inside() -> None:
    series = [Series("one", [(1, 10.0), (16, 930.0)]), Series("two <&>", [(1, 5.0), (16, 7.0)], is_bars=True)]
    panel = Panel("A", "x", "y", series, shaded=(8, "the end"), marks=[(2, "here")])
    drawn = Plot("P", (panel, Panel("B", "x", "y", [Series("s", [(1, 1), (100, 2)])], is_x_logarithmic=True)))
    texts = [shape.text for shape in shapes(drawn) if isinstance(shape, Text)]
    assert {"0", "250", "500", "1,000", "5", "10", "15", "100", "the end", "two <&>"} <= {*texts}
    root = ET.fromstring(svg(drawn))
    width, height = map(float, (root.attrib["width"], root.attrib["height"]))
    for shape in shapes(drawn):
        points = shape.points if isinstance(shape, Line) else [(shape.x, shape.y)]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in points)
    assert png(drawn).startswith(b"\x89PNG")
    assert [round_up(value) for value in (0, 0.3, 1, 1.1, 2.2, 6)] == [1, 0.5, 1, 2, 2.5, 10]
    assert math.isfinite(width)


def test_empty_series_are_drawn() -> None:
    ET.fromstring(svg(Plot("P", (Panel("A", "x", "y", [Series("none"), Series("bars", is_bars=True)]),))))


def test_what_a_killed_run_left_is_told_from_what_runs(tmp_path: Path) -> None:
    running, killed, elsewhere, old = (samples.new_name(at) for at in (1000, 1000, 1001, -9_000 + 10_000))
    (tmp_path / killed).touch()
    names = [running, killed, elsewhere, "Orders", f"{samples.PREFIX}x"]
    with samples.locked(running, tmp_path):
        assert samples.left_over(names, 1500, tmp_path) == [killed]
        assert samples.left_over([elsewhere, old], 1001 + samples.GRACE_SECONDS, tmp_path) == [old]
    assert not (tmp_path / running).exists()
    samples.forget(killed, tmp_path)
    assert samples.left_over(names, 1500, tmp_path) == []
