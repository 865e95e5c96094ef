"""Metrics as plain values: sent from a worker to the primary, and summed there.

Rule of the sums: a sample of several processes is the sum of their samples of the same name and labels. That holds for
counters, for histograms (whose bounds are the same everywhere) and for gauges, which all count something a process has.
Only `OF_PRIMARY` is taken from the primary alone.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]

OF_PRIMARY = frozenset({"lazulite", "python_info", "process_start_time_seconds"})
"""Families whose sums would mean nothing: the version, the interpreter, the start of the service."""


Samples: TypeAlias = dict[tuple[str, Labels], float]
"""Values by the sample's name and its sorted labels."""


class Family(NamedTuple):
    """The samples of one metric."""

    kind: str
    """The type, as Prometheus names it: counter, gauge, histogram or info."""
    text: str
    """The help text."""
    samples: Samples


Families: TypeAlias = Mapping[str, Family]
"""By the metric's name."""


def dumped(families: Families) -> bytes:
    """Return families as one line of JSON, without the line end."""
    plain = {
        name: (kind, text, [(sample, labels, value) for (sample, labels), value in samples.items()])
        for name, (kind, text, samples) in families.items()
    }
    return json.dumps(plain).encode()


def loaded(line: bytes) -> Families:
    """Return the families that `dumped` made a line of."""
    return {
        name: Family(
            kind, text, {(sample, tuple((key, of) for key, of in labels)): value for sample, labels, value in samples}
        )
        for name, (kind, text, samples) in json.loads(line).items()
    }


def total(primary: Families, others: Iterable[Families]) -> Families:
    """Return the sums of the families of several processes; see the module."""
    sums: dict[str, tuple[str, str, Samples]] = {
        name: (kind, text, dict(samples)) for name, (kind, text, samples) in primary.items()
    }
    for families in others:
        for name, (kind, text, samples) in families.items():
            if name in OF_PRIMARY:
                continue
            sum_of = sums.setdefault(name, (kind, text, {}))[2]
            for key, value in samples.items():
                sum_of[key] = sum_of.get(key, 0) + value
    return {name: Family(*each) for name, each in sums.items()}


def cumulative(families: Families) -> Families:
    """Return the families that only grow: counters and histograms."""
    return {name: family for name, family in families.items() if family.kind in ("counter", "histogram")}
