"""Two data sets whose queries were written down before the advice was asked for."""

import csv
import importlib.metadata
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lazulite.advise.advice import Advice, advise
from lazulite.advise.declared import workload_from
from lazulite.advise.layout import described
from lazulite.advise.observed import with_sample
from lazulite.advise.sample import TableSample
from lazulite.partitions.targets import CURRENT

from .workloads import EXAMPLES

PACKAGES = ("aiohttp", "azure-core", "azure-data-tables", "azure-storage-blob", "hypothesis", "jinja2", "pytest")
"""Packages that the tests need anyway."""
WEATHER = Path(__file__).parents[2] / "examples" / "data" / "weather.csv"


def advised(name: str, rows: Iterator[dict[str, object]]) -> Advice:
    sample = TableSample()
    for row in rows:
        sample.add(row)
    return advise(with_sample(workload_from(EXAMPLES / f"{name}.toml"), sample), CURRENT)


def observations() -> Iterator[dict[str, object]]:
    with WEATHER.open(newline="", encoding="utf-8") as file:
        for row in islice(csv.DictReader(file), 0, None, 10):
            observed = row["time_hour"]
            gust = {"WindGust": float(row["wind_gust"])} if row["wind_gust"] else {}
            yield {
                "PartitionKey": f"{row['origin']}-{observed[:7]}",
                "RowKey": observed,
                "Timestamp": observed,
                "Airport": row["origin"],
                "Observed@odata.type": "Edm.DateTime",
                "Observed": observed,
                **gust,
            }


def package_files() -> Iterator[dict[str, object]]:
    number = 0
    for name in PACKAGES:
        for file in (importlib.metadata.distribution(name).files or ())[:200]:
            number += 1
            yield {
                "PartitionKey": str(number),
                "RowKey": "",
                "Package": name,
                "Path": str(file),
                "Hash": str(file.hash.value)[:8] if file.hash else "",
            }


def test_weather_is_by_airport_the_latest_first() -> None:
    advice = advised("weather", observations())
    assert advice.workload.spread(("Airport",)).distinct == 3
    assert advice.verdict.has_answer
    assert described(advice.best.layout, {}) == "PartitionKey = Airport, RowKey = reversed Observed"
    kinds = [each.kind for each in advice.best.accesses]
    assert kinds == ["partition scan", "row range", "table scan", "table scan"]
    assert [each.query for each in advice.indexes] == ["all airports from one time to another", "strong gusts"]


def test_files_are_by_package_and_in_batches() -> None:
    advice = advised("package_files", package_files())
    assert advice.workload.spread(("Package",)).distinct == len(PACKAGES)
    assert advice.verdict.has_answer
    assert described(advice.best.layout, {}) == "PartitionKey = Package, RowKey = Path"
    kinds = [each.kind for each in advice.best.accesses]
    assert kinds == ["partition scan", "point", "row range", "table scan", "table scan"]
    assert advice.best.lost_batches == []
    assert [each.properties for each in advice.indexes] == [("Path",), ("Hash",)]
