"""`lazulite heat`: print or draw the traffic of a table, as a running server counted it."""

import json
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lazulite.app.commands import TRAFFIC, TrafficArguments
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import running_server
from lazulite.control.command import ControlError
from lazulite.traffic.codec import decode
from lazulite.traffic.counters import COUNTERS
from lazulite.traffic.findings import Thresholds, findings
from lazulite.traffic.heat_map import HeatMap, heat_map, html, svg
from lazulite.traffic.meter import ResourceTraffic

_PARTITIONS = 10
"""The busiest partitions that are named."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Write the picture to a file, or print the findings, or a summary."""
    try:
        asked = TrafficArguments(args.table, args.account or "")
        items: list[Any] = list(running_server(args, environ).stream(TRAFFIC, asked))
    except ControlError as error:
        raise CommandError(error) from None
    traffic = decode(items)
    if args.findings:
        found = list(findings(traffic, Thresholds(partition_target=args.partition_target)))
        for each in found:
            print(f"{each.kind}: {each.evidence} {each.remedy}")
        if not found:
            print("no findings")
        return 0
    drawn = heat_map(args.table, traffic, items[0]["time"], args.last)
    if args.output is None:
        for line in _summary(drawn, traffic):
            print(line)
    else:
        _write(args.output, drawn, traffic)
    return 0


def _write(path: Path, drawn: HeatMap, traffic: ResourceTraffic) -> None:
    """Write a new file, which only its owner may read: keys are data."""
    texts = {
        ".svg": lambda: svg(drawn),
        ".html": lambda: html(drawn, _shares(traffic)),
        ".json": lambda: json.dumps(drawn.as_json()),
    }
    text = texts[path.suffix]()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


def _shares(traffic: ResourceTraffic) -> list[tuple[str, float]]:
    load = traffic.load
    return [(key, count / load) for key, count in traffic.hitters.top(_PARTITIONS)] if load else []


def _summary(drawn: HeatMap, traffic: ResourceTraffic) -> Iterator[str]:
    counts = (f"{count:,.0f} {name.replace('_', ' ')}" for name, count in zip(COUNTERS, traffic.totals, strict=True))
    yield f"{drawn.name}: {', '.join(counts)}"
    for each in drawn.hottest(_PARTITIONS):
        after = "the end" if each.after is None else repr(each.after)
        yield f"keys {each.first!r} to {after}: {each.reads:,.2f} reads/s, {each.writes:,.2f} writes/s"
    for key, share in _shares(traffic):
        yield f"partition {key!r}: {share:.1%} of the traffic"
