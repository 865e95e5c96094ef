"""The traffic of a resource as items of JSON, for processes that add what they have counted.

Invariant: what is decoded has the sums of what was encoded. Loads are weighted as of the time of encoding, so that what
processes with different weights encode can be added.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lazulite.control.command import Json
from lazulite.traffic.key_ranges import KeyRange, KeyRanges
from lazulite.traffic.meter import WEIGHTED, QueryCount, ResourceTraffic


def encode(traffic: ResourceTraffic, weight: float, seconds: float) -> Iterator[Json]:
    """Yield the items of a resource's traffic: a head, and one for each key range.

    Args:
        traffic: of the resource.
        weight: of a cost of 1 now; see `Meter`.
        seconds: the Unix time now.
    """
    hitters, order = traffic.hitters, traffic.order
    yield {
        "time": seconds,
        "totals": traffic.totals,
        "partitions": {key: count / weight for key, count in hitters.top(len(hitters))},
        "partitions_total": hitters.total / weight,
        "partitions_error": hitters.error / weight,
        "order": {
            "highest": order.highest,
            "lowest": order.lowest,
            **{name: getattr(order, name) / weight for name in WEIGHTED},
        },
        "queries": {
            name: [query.pages, query.scanned, query.returned, query.properties]
            for name, query in ((name, query.scaled(1 / weight)) for name, query in traffic.queries.items())
        },
    }
    for each in traffic.ranges.ranges:
        yield {
            "start": each.start,
            "load": each.load / weight,
            "samples": list(each.samples),
            "cells": [[[column, *counts] for column, counts in ring.cells()] for ring in each.history.rings],
        }


def decode(items: Iterable[Json]) -> ResourceTraffic:
    """Return the traffic of a resource, of which `encode` made the items."""
    traffic = ResourceTraffic()
    head: Any
    head, *ranges = items
    traffic.totals = list(head["totals"])
    traffic.hitters.merge(head["partitions"].items(), head["partitions_total"], head["partitions_error"])
    for name, value in head["order"].items():
        setattr(traffic.order, name, value)
    for name, (*numbers, properties) in head["queries"].items():
        query = traffic.queries[name] = QueryCount()
        query.add(*numbers)
        query.properties.update(properties)
    traffic.ranges = KeyRanges.of([_range(each) for each in ranges])
    return traffic


def _range(item: Any) -> KeyRange:
    assert isinstance(item, Mapping)
    found = KeyRange(item["start"])
    found.load = item["load"]
    found.samples.extend(item["samples"])
    for ring, cells in zip(found.history.rings, item["cells"], strict=True):
        for column, *counts in cells:
            ring.add(column, counts)
    return found


def join(traffic: ResourceTraffic, other: ResourceTraffic) -> None:
    """Add the traffic of a resource that another process counted. Both have been decoded, so they weigh the same."""
    traffic.totals = [one + another for one, another in zip(traffic.totals, other.totals, strict=True)]
    traffic.ranges.join(other.ranges)
    hitters = other.hitters
    traffic.hitters.merge(hitters.counts.items(), hitters.total, hitters.error)
    traffic.order.join(other.order)
    for name, query in other.queries.items():
        traffic.queries.setdefault(name, QueryCount()).join(query)
