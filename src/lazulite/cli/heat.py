"""`lazulite heat`: print or draw the traffic of a table, queue or container, as running servers counted it."""

import json
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

from lazulite.app.commands import KEY_SAMPLE, TRAFFIC, KeySampleArguments, TrafficArguments
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import running_servers
from lazulite.control.command import ControlError
from lazulite.settings.extras import require_extra
from lazulite.traffic.codec import decode, join
from lazulite.traffic.counters import COUNTERS
from lazulite.traffic.findings import Thresholds, busiest, findings, shares_of
from lazulite.traffic.heat_map import HeatMap, heat_map
from lazulite.traffic.key_sample import KeySample
from lazulite.traffic.meter import ResourceTraffic
from lazulite.traffic.picture import html, png, shown, svg

_PARTITIONS = 10
"""The busiest partitions that are named."""
_Shares: TypeAlias = Sequence[tuple[str, float]]
"""Partitions, each with its share of the traffic."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Write the picture to a file, and print the findings; with neither, print a summary."""
    thresholds = _thresholds(args.threshold)
    if args.output is not None and args.output.suffix == ".png":
        try:
            require_extra("png", f"a picture {args.output.name}")
        except ValueError as error:
            raise CommandError(error) from None
    try:
        traffic, now = _traffic(args, environ)
        sample = _sample(args, environ, traffic) if args.findings else None
    except ControlError as error:
        raise CommandError(error) from None
    shares = shares_of(args.service, traffic, _PARTITIONS)
    drawn = heat_map(args.name, traffic, now, args.last)
    if args.output is not None:
        _write(args.output, drawn, shares)
    if sample is not None:
        _print_findings(traffic, sample, thresholds)
    elif args.output is None:
        for line in _summary(drawn, traffic, shares):
            print(line)
    return 0


def _traffic(args: Namespace, environ: Mapping[str, str]) -> tuple[ResourceTraffic, float]:
    """Return the traffic that all named servers have counted, and the Unix time. Raises as `Client.stream`."""
    asked = TrafficArguments(args.name, args.account or "", args.service)
    total, now, missing = None, 0.0, None
    for client in running_servers(args, environ):
        try:
            items: list[Any] = list(client.stream(TRAFFIC, asked))
        except ControlError as error:
            if error.code != "no-traffic":
                raise
            missing = error
            continue
        now = max(now, items[0]["time"])
        if total is None:
            total = decode(items)
        else:
            join(total, decode(items))
    if total is None:
        assert missing is not None, "there is a server"
        raise missing
    return total, now


def _sample(args: Namespace, environ: Mapping[str, str], traffic: ResourceTraffic) -> KeySample:
    """Return a sample of the table's keys; an empty one of a queue or a container. Raises as `Client.ask`."""
    if args.service != "table":
        return KeySample()
    asked = KeySampleArguments(args.name, args.account or "", busiest(traffic))
    return KeySample.of(running_servers(args, environ)[0].ask(KEY_SAMPLE, asked))


def _thresholds(given: Sequence[tuple[str, float]]) -> Thresholds:
    names = {each.name.replace("_", "-"): each.name for each in fields(Thresholds)}
    for name, _ in given:
        if name not in names:
            raise CommandError(f"--threshold: there is no threshold {name!r}, but {', '.join(names)}", 2)
    return Thresholds(**{names[name]: value for name, value in given})


def _print_findings(traffic: ResourceTraffic, sample: KeySample, thresholds: Thresholds) -> None:
    found = list(findings(traffic, sample, thresholds))
    for each in found:
        print(f"{each.kind}: {each.evidence} {each.remedy}")
    if not found:
        print("no findings")


def _write(path: Path, drawn: HeatMap, shares: _Shares) -> None:
    """Write a new file, which only its owner may read: keys are data.

    Raises:
        CommandError: it cannot be written.
    """
    contents = {
        ".svg": lambda: svg(drawn).encode(),
        ".html": lambda: html(drawn, shares).encode(),
        ".png": lambda: png(drawn),
        ".json": lambda: json.dumps(drawn.as_json()).encode(),
    }
    content = contents[path.suffix]()
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None


def _summary(drawn: HeatMap, traffic: ResourceTraffic, shares: _Shares) -> Iterator[str]:
    counts = (f"{count:,.0f} {name.replace('_', ' ')}" for name, count in zip(COUNTERS, traffic.totals, strict=True))
    yield f"{drawn.name}: {', '.join(counts)}"
    for each in drawn.hottest(_PARTITIONS):
        after = "the end" if each.after is None else shown(each.after)
        yield f"keys {shown(each.first)} to {after}: {each.reads:,.2f} reads/s, {each.writes:,.2f} writes/s"
    for key, share in shares:
        yield f"partition {key!r}: {share:.1%} of the traffic"
