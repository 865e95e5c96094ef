"""`python -m benchmarks.sdk_loops`: which requests of the Python SDKs templates answer, and why they miss the others.

Each loop repeats one operation as a program would. The first hundred requests are not counted: templates are learned
from them. The numbers are those of the metric `lazulite_template_outcomes_total`.
"""

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.request import urlopen

from azure.data.tables import TableServiceClient, UpdateMode
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueClient

from benchmarks.processes import running
from benchmarks.subjects import free_port
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.cli.connection_string import connection_string, path_style

WARM = 100
HIT = "hit"
_NAME = "loop"
_OUTCOME = re.compile(r'^lazulite_template_outcomes_total\{.*?outcome="(\w+)".*?\} (\S+)$', re.MULTILINE)

Step = Callable[[int], object]
"""Does an operation once, given the number of the repetition."""


def steps_of_tables(text: str) -> dict[str, Step]:
    """Return operations on entities, in an order in which each finds its entity. Creates the table."""
    table = TableServiceClient.from_connection_string(text).create_table(_NAME)

    def entity(number: int) -> dict[str, str | int]:
        return {"PartitionKey": f"p{number % 5}", "RowKey": str(number), "Count": number, "Text": "x" * 100}

    def update(number: int) -> None:
        found = table.get_entity(f"p{number % 5}", str(number))
        table.update_entity(found, mode=UpdateMode.REPLACE)

    return {
        "insert an entity": lambda number: table.create_entity(entity(number)),
        "get an entity": lambda number: table.get_entity(f"p{number % 5}", str(number)),
        "upsert an entity": lambda number: table.upsert_entity(entity(number)),
        "get and update an entity": update,
        "delete an entity": lambda number: table.delete_entity(f"p{number % 5}", str(number)),
    }


def steps_of_queues(text: str) -> dict[str, Step]:
    """Return operations on messages. Creates the queue."""
    queue = QueueClient.from_connection_string(text, _NAME)
    queue.create_queue()

    def receive(_: int) -> None:
        message = queue.receive_message()
        assert message is not None, "one was put"
        queue.delete_message(message)

    return {"put a message": lambda number: queue.send_message(f"hello {number}"), "get and delete a message": receive}


def steps_of_blobs(text: str) -> dict[str, Step]:
    """Return operations on blobs of 1 KB. Creates the container."""
    container = BlobServiceClient.from_connection_string(text).create_container(_NAME)
    return {
        "put a blob": lambda number: container.upload_blob(f"blob{number}", b"x" * 1000, overwrite=True),
        "get a blob": lambda number: container.download_blob(f"blob{number}").readall(),
        "get the properties of a blob": lambda number: container.get_blob_client(f"blob{number}").get_blob_properties(),
        "put a block": lambda number: container.get_blob_client("blocks").stage_block(f"{number:06}", b"x" * 100),
    }


def outcomes(metrics_port: int) -> Counter[str]:
    """Return how many requests had each outcome so far."""
    with urlopen(f"http://127.0.0.1:{metrics_port}/metrics") as response:
        page = response.read().decode()
    return Counter({name: int(float(value)) for name, value in _OUTCOME.findall(page)})


def measured(counted: int) -> Mapping[str, Counter[str]]:
    """Return the outcomes of the requests of each loop, of so many repetitions behind the first hundred."""
    ports = {name: free_port() for name in ("table", "queue", "blob", "metrics")}
    endpoints = {
        name: path_style(DEVELOPMENT_ACCOUNT.name, "127.0.0.1", ports[name]) for name in ("table", "queue", "blob")
    }
    text = connection_string(DEVELOPMENT_ACCOUNT, endpoints)
    found: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as location:
        flags = [part for name, port in ports.items() for part in (f"--{name}-port", str(port))]
        command = [sys.executable, "-m", "lazulite", "serve", "--silent", "--location", str(Path(location, "data"))]
        with running([*command, *flags], {}, pin=False):
            for name, step in (steps_of_tables(text) | steps_of_queues(text) | steps_of_blobs(text)).items():
                for number in range(WARM):
                    step(number)
                before = outcomes(ports["metrics"])
                for number in range(WARM, WARM + counted):
                    step(number)
                found[name] = outcomes(ports["metrics"]) - before
    return found


def main() -> None:
    """Print the share of hits of each loop, and the reasons of the misses."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sdk_loops", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="repetitions that are counted (%(default)s)")
    print("| loop | requests | hits | misses |\n|---|---|---|---|")
    for name, found in measured(parser.parse_args().count).items():
        misses = ", ".join(f"{why}: {count}" for why, count in found.items() if why != HIT)
        print(f"| {name} | {found.total()} | {found[HIT] / found.total():.1%} | {misses} |")


if __name__ == "__main__":
    main()
