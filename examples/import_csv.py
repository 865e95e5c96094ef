"""Load a CSV of hourly weather into a table, then ask one question of each query class.

    python examples/import_csv.py --connection-string "…" [--table weather] [--csv examples/data/weather.csv]

Uses the public SDK (azure-data-tables) only, so it runs against any Table service. Running it again changes nothing:
every row is an insert-or-replace. The design of the keys decides what a query costs:

- PartitionKey `JFK-2013-07`: airport and month. An entity group transaction stays within one partition.
- RowKey `20130704T1500Z`: the hour in UTC, spelled so that ordinal order is the order of time.
"""

import argparse
import contextlib
import csv
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from azure.core.exceptions import ResourceExistsError
from azure.core.pipeline import PipelineResponse
from azure.core.rest import HttpRequest, HttpResponse
from azure.data.tables import EdmType, EntityProperty, TableClient, UpdateMode

WEATHER_CSV = Path(__file__).parent / "data" / "weather.csv"
DEVELOPMENT_CONNECTION_STRING = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"
)
TRANSACTION_ENTITIES_MAX = 100

Value = str | int | float | bool | datetime | EntityProperty
Entity = dict[str, Value]

MEASURES: Mapping[str, tuple[str, Callable[[str], Value]]] = {
    "temp": ("Temperature", float),
    "dewp": ("DewPoint", float),
    "humid": ("Humidity", float),
    "wind_dir": ("WindDirection", int),
    "wind_speed": ("WindSpeed", float),
    "wind_gust": ("WindGust", float),
    "precip": ("Precipitation", float),
    "pressure": ("Pressure", float),
    "visib": ("Visibility", float),
}
"""Column of the CSV -> property and its type; an empty field becomes no property at all."""


def to_entity(row: Mapping[str, str]) -> Entity:
    """Return one observation as an entity, with a property of every common type."""
    observed = datetime.fromisoformat(row["time_hour"])
    entity: Entity = {
        "PartitionKey": f"{row['origin']}-{observed:%Y-%m}",
        "RowKey": f"{observed:%Y%m%dT%H%MZ}",
        "Airport": row["origin"],
        "Observed": observed,
        "UnixMilliseconds": EntityProperty(int(observed.timestamp()) * 1000, EdmType.INT64),
        "Rain": float(row["precip"]) > 0,
    }
    for column, (name, convert) in MEASURES.items():
        if row[column]:
            entity[name] = convert(row[column])
    return entity


def transactions(path: Path) -> Iterator[list[Entity]]:
    """Yield the file's entities in groups that one entity group transaction may hold: one partition, at most 100."""
    partitions: defaultdict[Value, list[Entity]] = defaultdict(list)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            entity = to_entity(row)
            partitions[entity["PartitionKey"]].append(entity)
    for entities in partitions.values():
        for start in range(0, len(entities), TRANSACTION_ENTITIES_MAX):
            yield entities[start : start + TRANSACTION_ENTITIES_MAX]


def load(client: TableClient, path: Path, threads: int) -> None:
    """Write the whole file, `threads` transactions at a time, and print how fast that went."""
    groups = list(transactions(path))

    def upsert(group: list[Entity]) -> int:
        client.submit_transaction([("upsert", entity, {"mode": UpdateMode.REPLACE}) for entity in group])
        return len(group)

    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        loaded = sum(pool.map(upsert, groups))
    elapsed_s = time.perf_counter() - began
    print(f"loaded {loaded} entities by {len(groups)} entity group transactions", end=" ")
    print(f"in {elapsed_s:.1f} s: {loaded / elapsed_s:.0f} entities/s")


@dataclass
class Cost:
    """What the service reports of a query in `Server-Timing`, summed over its pages."""

    query_class: str = "-"
    scanned: int = 0
    returned: int = 0
    pages: int = 0
    server_ms: float = 0.0

    def add(self, response: PipelineResponse[HttpRequest, HttpResponse]) -> None:
        """Take in one page's response; a service without the header leaves the class at `-`."""
        header = response.http_response.headers.get("Server-Timing", "")
        described = dict(re.findall(r'(\w+)[^,]*?;\s*desc="([^"]*)"', header))
        duration = re.search(r"\bdur=([\d.]+)", header)
        self.query_class = described.get("query", self.query_class)
        self.scanned += int(described.get("scanned", 0))
        self.returned += int(described.get("returned", 0))
        self.server_ms += float(duration[1]) if duration else 0.0
        self.pages += 1


class Query(NamedTuple):
    """A question and the filter that asks it."""

    question: str
    filter: str


QUERIES = (
    Query("JFK at 3 pm UTC on 4 July", "PartitionKey eq 'JFK-2013-07' and RowKey eq '20130704T1500Z'"),
    Query(
        "JFK, every hour of 4 July",
        "PartitionKey eq 'JFK-2013-07' and RowKey ge '20130704T' and RowKey lt '20130705T'",
    ),
    Query("LGA in February, freezing", "PartitionKey eq 'LGA-2013-02' and Temperature lt 32.0"),
    Query(
        "JFK from June to August, rain",
        "PartitionKey ge 'JFK-2013-06' and PartitionKey lt 'JFK-2013-09' and Rain eq true",
    ),
    Query("everywhere, a gust above 60 mph", "WindGust gt 60.0"),
)
"""One of each class: point, row range, partition scan, partition range, table scan."""


def ask(client: TableClient) -> None:
    """Run the queries and print what each of them cost."""
    print(f"{'class':<16} {'scanned':>8} {'returned':>8} {'pages':>5} {'server ms':>9} {'total ms':>9}  question")
    for query in QUERIES:
        cost = Cost()
        began = time.perf_counter()
        for _ in client.query_entities(query.filter, raw_response_hook=cost.add):
            pass
        total_ms = (time.perf_counter() - began) * 1000
        numbers = f"{cost.scanned:>8} {cost.returned:>8} {cost.pages:>5} {cost.server_ms:>9.1f} {total_ms:>9.1f}"
        print(f"{cost.query_class:<16} {numbers}  {query.question}")


def main() -> None:
    """Parse the command line, load, ask."""
    parser = argparse.ArgumentParser(description="Load weather.csv into a table and query it in all five classes.")
    parser.add_argument(
        "--connection-string",
        default=os.environ.get("LAZULITE_CONNECTION_STRING", DEVELOPMENT_CONNECTION_STRING),
        help="default: $LAZULITE_CONNECTION_STRING, else the development account on 127.0.0.1:10002",
    )
    parser.add_argument("--table", default="weather", help="created if missing (default: %(default)s)")
    parser.add_argument("--csv", type=Path, default=WEATHER_CSV, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=4, help="transactions in flight (default: %(default)s)")
    arguments = parser.parse_args()

    with TableClient.from_connection_string(arguments.connection_string, arguments.table) as client:
        with contextlib.suppress(ResourceExistsError):
            client.create_table()
        load(client, arguments.csv, arguments.threads)
        ask(client)


if __name__ == "__main__":
    main()
