"""The page `docs/study.md` and its plots, made of measured curves alone: nothing of the study is drawn.

Each figure has what the study's text states, and one comparison, which is computed from the curves. What follows from
numbers is a sentence with these numbers; the reasons are texts of this module.
"""

import csv
import io
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeAlias

from benchmarks.study import TARGETS, Curve
from lazulite import __version__
from lazulite.stress.histogram import mean, middle, quantile
from lazulite.stress.plot import Panel, Plot, Series, svg
from lazulite.stress.run import Step

KNEE_SHARE = 0.9
"""A curve is at its knee where it first reaches this share of its peak."""
MACHINE_BUSY = 0.95
"""The CPUs of the machine are all busy above this share."""
BINS = 40
Curves: TypeAlias = Mapping[str, Sequence[Curve]]
Value: TypeAlias = Callable[[float, Step], float]


class Finding(NamedTuple):
    """A comparison with the study."""

    is_alike: bool
    sentences: str


class Figure(NamedTuple):
    """A figure of the page."""

    number: int
    title: str
    states: str
    """What the study's text says about its figure."""
    draw: Callable[[Curves], Sequence[Panel]]
    compare: Callable[[Curves], Finding]
    why: str


def rate(_: float, step: Step) -> float:
    """Return the entities per second that were read or written."""
    return step.rate


def mean_ms(_: float, step: Step) -> float:
    """Return the mean latency."""
    return mean(step.sum.latencies) * 1000


def mean_ms_each(batch: float, step: Step) -> float:
    """Return the mean latency of an entity of a batch."""
    return mean_ms(batch, step) / batch


def refused_percent(_: float, step: Step) -> float:
    """Return the percentage of requests that were throttled."""
    return 100 * step.refused_share


def values(curve: Curve, value: Value) -> dict[float, float]:
    """Return the y values of a curve by x."""
    return {x: value(x, step) for x, step in curve.steps.items()}


def knee(curve: Curve, value: Value = rate) -> float:
    """Return the least x at which a curve has `KNEE_SHARE` of its peak."""
    found = values(curve, value)
    return min(x for x, y in found.items() if y >= KNEE_SHARE * max(found.values()))


def knee_down(curve: Curve, value: Value) -> float:
    """Return the least x at which a falling curve is within a tenth of its least value."""
    found = values(curve, value)
    return min(x for x, y in found.items() if y <= min(found.values()) / KNEE_SHARE)


def peak(curve: Curve, value: Value = rate) -> float:
    """Return the greatest y of a curve."""
    return max(values(curve, value).values())


def last(curve: Curve, value: Value = rate) -> float:
    """Return the y at the greatest x."""
    return list(values(curve, value).values())[-1]


def rises(curve: Curve, value: Value = rate) -> bool:
    """Return whether a curve rises from its first to its last point, by a tenth or more."""
    found = list(values(curve, value).values())
    return found[-1] > found[0] * 1.1


def _shade(curves: Sequence[Curve]) -> tuple[float, str] | None:
    """Return from where on all CPUs of the machine are busy."""
    busy = [x for each in curves for x, step in each.steps.items() if (step.machine_busy or 0) >= MACHINE_BUSY]
    return (min(busy), "grey: the CPUs of this machine are all busy") if busy else None


def _panel(title: str, x_name: str, y_name: str, curves: Sequence[Curve], value: Value = rate) -> Panel:
    series = [Series(each.name, list(values(each, value).items())) for each in curves]
    ticks = sorted({x for each in curves for x in each.steps})
    return Panel(title, x_name, y_name, series, shaded=_shade(curves), x_ticks=_apart(ticks))


def _apart(ticks: Sequence[float]) -> Sequence[float]:
    """Return ticks, each far enough from the one before."""
    found = list[float]()
    for tick in ticks:
        if not found or tick - found[-1] >= (ticks[-1] - ticks[0]) / 18:
            found.append(tick)
    return found


def _histogram(title: str, curves: Sequence[Curve]) -> Panel:
    """Return latencies and how many requests had them, in bins of one width, up to the 99th percentile."""
    steps = {each.name: next(iter(each.steps.values())) for each in curves}
    most = max(quantile(step.sum.latencies, 0.99) for step in steps.values()) * 1000
    series = []
    for name, step in steps.items():
        counts = [0] * BINS
        for bucket, count in step.sum.latencies.items():
            place = int(middle(bucket) * 1000 / most * BINS)
            if place < BINS:
                counts[place] += count
        points = [(index * most / BINS, float(count)) for index, count in enumerate([*counts, 0])]
        series.append(Series(name, points, is_bars=True))
    return Panel(title, "latency in ms, up to the 99th percentile", "transactions", series)


def _median(curve: Curve) -> float:
    return next(iter(curve.steps.values())).quantile_ms(0.5)


def _three(curves: Curves) -> Finding:
    get, insert = map(_median, curves["3"])
    return Finding(get < insert, f"The median of gets is {get:.2f} ms, and {insert:.2f} ms of inserts.")


def _four(curves: Curves) -> Finding:
    batch, single = curves["4"]
    step = next(iter(batch.steps.values()))
    share = _median(batch) / (100 * _median(single))
    text = (
        f"The median of a batch is {_median(batch):.1f} ms, and 99 % take at most {step.quantile_ms(0.99):.1f} ms. "
        f"That is {share:.0%} of the time of 100 single inserts."
    )
    return Finding(share < 0.5, text)


def _five(curves: Curves) -> Finding:
    small, large = (values(each, mean_ms) for each in curves["5"])
    text = " ".join(
        f"With {name}, the mean latency is {found[1]:.2f} ms at 1 and {found[100]:.1f} ms at 100."
        for name, found in (("small", small), ("XL", large))
    )
    return Finding(all(rises(each, mean_ms) for each in curves["5"]), text)


def _six(curves: Curves) -> Finding:
    knees = [knee_down(each, mean_ms_each) for each in curves["5"]]
    least = [min(values(each, mean_ms_each).values()) for each in curves["5"]]
    text = (
        f"The latency per entity is within a tenth of its least from {knees[0]:.0f} entities on (small), and from "
        f"{knees[1]:.0f} (XL). It is {least[0]:.2f} ms and {least[1]:.2f} ms at best."
    )
    return Finding(max(knees) <= 40, text)


def _seven(curves: Curves) -> Finding:
    small, large = curves["7"]
    ratio = peak(large) / peak(small)
    text = (
        f"A batch of {knee(small):.0f} has {KNEE_SHARE:.0%} of the peak of {peak(small):,.0f} entities/s (small), and "
        f"one of {knee(large):.0f} that of {peak(large):,.0f} (XL). XL is {ratio:.2f} × small."
    )
    return Finding(knee(small) <= 40 and ratio > 1.2, text)


def _pair(curves: Curves, number: str) -> str:
    """Return the sentences about one partition and many, without targets and with them."""
    texts = []
    for key, name in ((number, "Without targets"), (f"{number} with targets", "With targets")):
        one, many = curves[key]
        texts.append(
            f"{name}, one partition has {last(one):,.0f} per second at the end, and many have {last(many):,.0f}: "
            f"{last(many) / (last(one) or 1):.1f} × as much."
        )
    return " ".join(texts)


def _eight(curves: Curves) -> Finding:
    one, many = curves["8 with targets"]
    percent = max(values(one, refused_percent).values())
    text = f"{_pair(curves, '8')} At most {percent:.2f} % of the inserts into one partition were throttled."
    return Finding(last(many) > 1.2 * last(one) and last(one) < 1.3 * peak(one), text)


def _nine(curves: Curves) -> Finding:
    one, many = curves["9 with targets"]
    text = f"{_pair(curves, '9')} Gets without targets reach {peak(curves['9'][1]):,.0f} per second, "
    text += f"and inserts {peak(curves['8'][1]):,.0f}."
    return Finding(last(many) > last(one) and peak(curves["9"][1]) > peak(curves["8"][1]), text)


def _knees(number: str, study_knee: int) -> Callable[[Curves], Finding]:
    def compare(curves: Curves) -> Finding:
        small, large = curves[number]
        busy = small.steps[knee(small)].sum.busy
        text = (
            f"{KNEE_SHARE:.0%} of the peak is reached at {knee(small):.0f} threads (small, {peak(small):,.0f}/s) and "
            f"{knee(large):.0f} (XL, {peak(large):,.0f}/s). The study's knee is at {study_knee}. "
            f"The client process used or wanted {busy:.0%} of a CPU there."
        )
        return Finding(knee(small) <= study_knee, text)

    return compare


def _more_machines(number: str) -> Callable[[Curves], Finding]:
    def compare(curves: Curves) -> Finding:
        small, large = curves[number]
        text = (
            f"One small machine has {values(small, rate)[1]:,.0f} per second. Small ones have {KNEE_SHARE:.0%} of "
            f"their peak of {peak(small):,.0f} with {knee(small):.0f} or more. XL machines have {KNEE_SHARE:.0%} of "
            f"their peak of {peak(large):,.0f} with {knee(large):.0f} or more."
        )
        return Finding(rises(small) and rises(large), text)

    return compare


def _fifteen(curves: Curves) -> Finding:
    limited, free = curves["15 with targets"][0], curves["15"][0]
    good, percent = values(limited, rate), values(limited, refused_percent)
    rows = " ".join(
        f"With {x:.0f} threads, {good[x]:,.0f}/s are written and {percent[x]:.0f} % throttled." for x in good
    )
    text = (
        f"These are the numbers with targets. {rows} "
        f"Without targets nothing is throttled, and 50 threads write {last(free):,.0f} per second."
    )
    return Finding(last(limited, refused_percent) > 0 and 2_000 < last(limited) < 3_000, text)


_MACHINE_END = "Server and clients share the CPUs of this machine, so more clients leave less for the server."
_ONE_SERVER = "Here one process is the whole service, and what it can do ends at one CPU."


def _two(number: str, x_name: str, y_name: str) -> Callable[[Curves], Sequence[Panel]]:
    def draw(curves: Curves) -> Sequence[Panel]:
        return (
            _panel("without targets", x_name, y_name, curves[number]),
            _panel(f"with --targets {TARGETS}", x_name, y_name, curves[f"{number} with targets"]),
        )

    return draw


def _one(key: str, x_name: str, y_name: str, value: Value = rate) -> Callable[[Curves], Sequence[Panel]]:
    return lambda curves: (_panel("", x_name, y_name, curves[key], value),)


def _draw_fifteen(curves: Curves) -> Sequence[Panel]:
    both = [
        Curve(f"with --targets {TARGETS}", curves["15 with targets"][0].steps),
        Curve("without targets", curves["15"][0].steps),
    ]
    x_name = "threads, ten on each machine"
    return (
        _panel("Entities written", x_name, "entities/s", both),
        _panel("Throttled", x_name, "% of requests", both, refused_percent),
    )


_SIZES = "machines"
FIGURES = (
    Figure(
        3,
        "Latency of gets and inserts",
        "One XL machine. Most gets take less than 40 ms, and most inserts less than 50 ms.",
        lambda curves: [_histogram(f"{each.name}, one XL machine, 15 threads", [each]) for each in curves["3"]],
        _three,
        "Client and server are on one machine, so no network is between them. Data have one copy, not three.",
    ),
    Figure(
        4,
        "Latency of batches of 100",
        "One thread on a small machine. Most batches take at most 1.2 s.",
        lambda curves: (_histogram("one small machine, one thread", curves["4"][:1]),),
        _four,
        "A batch is one commit and one request. The study's 8 ms for each entity are its service's, "
        "[as derived](operations/targets.md#the-targets).",
    ),
    Figure(
        5,
        "Latency by the size of a batch",
        "One thread. Latency rises with the size.",
        _one("5", "entities of a batch", "mean latency in ms", mean_ms),
        _five,
        "Parsing and writing take time for each entity, here and there. One thread uses one process, "
        "so XL is as small.",
    ),
    Figure(
        6,
        "Latency per entity",
        "Figure 5, divided by the size. The gain is spent at 20 entities.",
        _one("5", "entities of a batch", "mean latency of an entity in ms", mean_ms_each),
        _six,
        "What a request costs by itself, above all the commit, is shared by its entities. "
        "Where that ends depends on the disk.",
    ),
    Figure(
        7,
        "Entities per second by the size of a batch",
        "30 threads on one machine. The rate peaks at about 20 entities, and XL has a little over 1.5 × small.",
        _one("7", "entities of a batch", "entities/s"),
        _seven,
        f"{_ONE_SERVER} So a second process of clients adds little.",
    ),
    Figure(
        8,
        "Inserts by machines",
        "15 threads on each XL machine. One partition has about 600 per second with 2 machines, and about 1,000 with "
        "5. Throttled are 0, then 0.0004 %, and 0.2 % with 16 machines. Many partitions go on rising.",
        _two("8", "XL machines, 15 threads on each", "inserts/s"),
        _eight,
        "Targets make a partition serve one insert after the other, in 1 ms, as the study's did. Without them, "
        f"partitions do not matter. {_MACHINE_END}",
    ),
    Figure(
        9,
        "Gets by machines",
        "As figure 8. Many partitions have more than one, and gets more than inserts.",
        _two("9", "XL machines, 15 threads on each", "gets/s"),
        _nine,
        f"A get needs no commit. With targets, a partition serves gets one after the other, too. {_MACHINE_END}",
    ),
    Figure(
        10,
        "Batches of 100 by threads",
        "A small machine is at its peak at 15 threads, by the CPU of the client. XL rises on.",
        _one("10", "threads on one machine", "entities/s"),
        _knees("10", 15),
        "The study's threads waited 0.87 s for a batch, so it took many of them. Here a few threads keep the server "
        "busy, and then the server is the limit.",
    ),
    Figure(
        11,
        "Gets by threads",
        "A small machine is at its peak at 6 threads.",
        _one("11", "threads on one machine", "gets/s"),
        _knees("11", 6),
        f"A get takes far less than a millisecond here. {_MACHINE_END}",
    ),
    Figure(
        12,
        "Batches of 100 by machines, 15 threads on each",
        "The rate rises throughout.",
        _one("12", _SIZES, "entities/s"),
        _more_machines("12"),
        f"{_ONE_SERVER} {_MACHINE_END}",
    ),
    Figure(
        13,
        "Batches of 100 by machines, 30 threads on each",
        "The rate rises, up to 17,000 entities/s, 3.4 × the target of an account.",
        _one("13", _SIZES, "entities/s"),
        _more_machines("13"),
        f"{_ONE_SERVER} {_MACHINE_END}",
    ),
    Figure(
        14,
        "Gets by machines, 30 threads on each",
        "More machines and larger ones have more.",
        _one("14", _SIZES, "gets/s"),
        _more_machines("14"),
        f"{_ONE_SERVER} {_MACHINE_END}",
    ),
    Figure(
        15,
        "Batches of 100 into one partition",
        "20 threads write 2,300 entities/s, of which hardly any are throttled. Between 20 and 30 threads, about 11 % "
        "are. With 50, about 2,500/s are written, and 22 % of 3,200/s are throttled.",
        _draw_fifteen,
        _fifteen,
        "The cap of 2,500 entities/s and the pause of 3 s are the study's. Its batches took 0.87 s, and these do not. "
        "So fewer threads reach the cap. [Simulated threads](operations/targets.md#the-figures-of-the-study) "
        "that are as slow have its shares.",
    ),
)


def write(curves: Curves, folder: Path, seconds: float, point_seconds: float) -> None:
    """Write the page, its plots, and the numbers behind them.

    Args:
        curves: what was measured, by figure.
        folder: of the page.
        seconds: how long all took.
        point_seconds: how long a point was measured.
    """
    pictures = folder / "study"
    pictures.mkdir(parents=True, exist_ok=True)
    parts = [_head(seconds, point_seconds), _summary(curves)]
    for figure in FIGURES:
        plot = Plot(f"Figure {figure.number}: {figure.title}", figure.draw(curves))
        (pictures / f"figure-{figure.number:02}.svg").write_text(svg(plot), encoding="utf-8")
        found = figure.compare(curves)
        parts.append(
            f"## Figure {figure.number}: {figure.title[0].lower()}{figure.title[1:]}\n\n"
            f"![{figure.title}](study/figure-{figure.number:02}.svg)\n\n"
            f"- Study: {figure.states}\n- Here: {found.sentences}\n"
            f"- {'Alike' if found.is_alike else 'Not alike'}. {figure.why}\n"
        )
    (folder / "study.md").write_text("\n".join(_wrapped(part) for part in parts), encoding="utf-8")
    (pictures / "points.csv").write_text(_points(curves), encoding="utf-8")


def _head(seconds: float, point_seconds: float) -> str:
    return (
        "# The study, repeated\n\n"
        "Microsoft's study *How to get most out of Windows Azure Tables* (2010) measured the service of that time. "
        "`make study` repeats its experiments with the clients of [`lazulite stress`](operations/stress.md), on one "
        "machine. The study's plots are not to be had, so only what its text states is compared.\n\n"
        f"This page is of one run, of Lazulite {__version__} on {datetime.now(UTC):%Y-%m-%d}, which took "
        f"{seconds / 60:.0f} minutes. The machine: {_machine()}. The store is on disk, and each write is synced.\n\n"
        "A small machine of the study is a process of clients here, and an extra large one (XL) is two. A thread is a "
        "connection that sends one request after the other, and pauses for 3 s after a refusal. Entities have 1 KiB. "
        "Unless a figure says otherwise, each thread has a partition of its own. "
        f"Each point was measured for at most {point_seconds:g} s, once its load was steady. "
        "[The numbers](study/points.csv) have the share of its time that the busiest client process used or wanted a "
        "CPU.\n\nWhere a plot is grey, the CPUs of this machine are all busy, with clients and server together. "
        "From there on, it shows the machine and not the service.\n"
    )


def _machine() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        model = re.findall(r"^model name\s*: (.*)$", text, re.MULTILINE)
        memory = int(Path("/proc/meminfo").read_text(encoding="utf-8").split()[1]) / 2**20
        return f"{len(model)} × {model[0].strip()}, {memory:.0f} GiB, Python {platform.python_version()}"
    except (OSError, IndexError, ValueError):
        return f"{platform.machine()}, Python {platform.python_version()}"


def _summary(curves: Curves) -> str:
    """Return the table of figures, and that of knees."""
    lines = ["| figure | alike |", "|---|---|"]
    lines += [
        f"| {each.number}: {each.title} | {'yes' if each.compare(curves).is_alike else 'no'} |" for each in FIGURES
    ]
    rows = (
        ("entities of a batch, by latency per entity", "20", *(knee_down(each, mean_ms_each) for each in curves["5"])),
        ("entities of a batch, by rate", "20", *map(knee, curves["7"])),
        ("threads of batches", "15", *map(knee, curves["10"])),
        ("threads of gets", "6", *map(knee, curves["11"])),
    )
    lines += ["", f"A knee is where a curve first has {KNEE_SHARE:.0%} of its peak.", ""]
    lines += ["| knee | study, small | here, small | here, XL |", "|---|---|---|---|"]
    lines += [f"| {name} | {study} | {small:.0f} | {large:.0f} |" for name, study, small, large in rows]
    return "\n".join(lines) + "\n"


def _points(curves: Curves) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(
        [
            "experiment",
            "curve",
            "x",
            "per_second",
            "throttled",
            "p50_ms",
            "p99_ms",
            "mean_ms",
            "client_busy",
            "machine_busy",
        ]
    )
    for name, group in curves.items():
        for curve in group:
            for x, step in curve.steps.items():
                numbers = (step.quantile_ms(0.5), step.quantile_ms(0.99), mean_ms(x, step), step.sum.busy)
                known = [f"{each:.3f}" for each in (*numbers, step.machine_busy or 0)]
                writer.writerow([name, curve.name, f"{x:g}", f"{step.rate:.1f}", f"{step.refused_share:.5f}", *known])
    return written.getvalue()


def _wrapped(text: str) -> str:
    """Return Markdown whose paragraphs and items have lines of at most 100 characters."""
    lines = []
    for line in text.split("\n"):
        if line.startswith(("|", "#", "![")):
            lines.append(line)
            continue
        indent, current = "  " if line.startswith("- ") else "", ""
        for word in line.split(" "):
            if current and len(current) + 1 + len(word) > 100:
                lines.append(current)
                current = indent + word
            else:
                current = f"{current} {word}" if current else word
        lines.append(current)
    return "\n".join(lines)
