"""`python -m benchmarks.transfer`: how fast entities of 1 KB go to a file, and from a file into a table.

The server and the command run on the same CPUs. The target of exports is 25,000 entities a second. Imports are compared
with transactions of the same entities, which are made before the clock starts and sent on four connections. The target
is half of their rate.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import Server
from benchmarks.subjects import LAZULITE, start
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.token_source import TokenSource
from lazulite.transfer.http_client import HttpClient
from lazulite.transfer.importing import CONNECTIONS
from lazulite.transfer.table_client import BATCH_ROWS_MAX, Mode, PreparedRow, TableClient

FORMATS = ("jsonl", "csv", "parquet")
TARGET_OUT, TARGET_IN = 25_000, 0.5
_PARTITION_ROWS = 1_000


class Rate(NamedTuple):
    """Entities a second, and the processor time that one takes."""

    per_second: float
    client_us: float
    server_us: float

    def __str__(self) -> str:
        return f"{self.per_second:>9,.0f}/s  client {self.client_us:>5.1f} µs  server {self.server_us:>5.1f} µs"


def entity(number: int) -> dict[str, object]:
    """Return an entity of 1 KB as the service sends it, with a property of every type."""
    return {
        "PartitionKey": f"p{number // _PARTITION_ROWS:06}",
        "RowKey": f"{number:010}",
        "Text": "x" * 600,
        "City": "Trondheim",
        "Count": number % 1000,
        "Big@odata.type": "Edm.Int64",
        "Big": str(number << 32),
        "Ratio": number / 7,
        "When@odata.type": "Edm.DateTime",
        "When": "2026-11-28T09:06:43.1234567Z",
        "Open": number % 2 == 0,
        "Id@odata.type": "Edm.Guid",
        "Id": f"00000000-0000-0000-0000-{number:012}",
        "Bytes@odata.type": "Edm.Binary",
        "Bytes": "AAECAwQFBgcICQ==",
    }


def command(server: Server, rows: int, *arguments: str) -> Rate:
    """Run the program and return its rate; its start counts, too."""
    before = server.cpu_seconds() or 0.0
    used, began = os.times(), time.perf_counter()
    full = [sys.executable, "-m", "lazulite", *arguments, "--table-port", str(server.port)]
    done = subprocess.run(full, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, after = time.perf_counter() - began, os.times()
    client = after.children_user + after.children_system - used.children_user - used.children_system
    return _rate(rows, seconds, client, (server.cpu_seconds() or 0.0) - before)


def _rate(rows: int, seconds: float, client: float, server: float) -> Rate:
    return Rate(rows / seconds, client / rows * 1e6, server / rows * 1e6)


def transactions(server: Server, rows: int, table: str) -> Rate:
    """Return the rate of transactions that are ready to be sent."""
    return asyncio.run(_transactions(server, rows, table))


async def _transactions(server: Server, rows: int, table: str) -> Rate:
    prepared = []
    for number in range(rows):
        made = entity(number)
        keys = str(made["PartitionKey"]), str(made["RowKey"])
        prepared.append(PreparedRow(number, *keys, json.dumps(made).encode()))
    endpoint = f"http://{server.host}/{DEVELOPMENT_ACCOUNT.name}"
    token = TokenSource(DEVELOPMENT_ACCOUNT, 1, "table", "rwdlacu")
    async with HttpClient(endpoint, token) as http:
        client = TableClient(http)
        await client.create(table)
        parts = (prepared[at : at + BATCH_ROWS_MAX] for at in range(0, rows, BATCH_ROWS_MAX))
        bodies = iter([client.transaction(table, part, Mode.INSERT) for part in parts])
        before, used, began = server.cpu_seconds() or 0.0, time.process_time(), time.perf_counter()

        async def send() -> None:
            for body in bodies:
                await client.send_transaction(body)

        await asyncio.gather(*(send() for _ in range(CONNECTIONS)))
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        return _rate(rows, seconds, cpu, (server.cpu_seconds() or 0.0) - before)


def measure(rows: int, turns: int) -> None:
    """Print the medians of each rate, and whether the targets are met."""
    found: dict[str, list[Rate]] = {}
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        with start(LAZULITE, "--location", folder / "data", pin=False) as server:
            for turn in range(turns):
                found.setdefault("transactions", []).append(transactions(server, rows, f"Sent{turn}"))
                for name in FORMATS:
                    file = str(folder / f"rows.{name}")
                    out = command(server, rows, "export", f"Sent{turn}", "-o", file)
                    into = command(server, rows, "import", f"In{name}{turn}", file)
                    found.setdefault(f"export {name}", []).append(out)
                    found.setdefault(f"import {name}", []).append(into)
    _print(found)


def _print(found: dict[str, list[Rate]]) -> None:
    medians = {name: Rate(*map(statistics.median, zip(*rates, strict=True))) for name, rates in found.items()}
    base = medians["transactions"].per_second
    for name, rate in medians.items():
        verdict = ""
        if name.startswith("export"):
            verdict = "met" if rate.per_second >= TARGET_OUT else "missed"
        elif name.startswith("import"):
            share = rate.per_second / base
            verdict = f"{share:.0%} of transactions: {'met' if share >= TARGET_IN else 'missed'}"
        print(f"{name:<15} {rate}  {verdict}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transfer")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args(arguments)
    measure(args.rows, args.turns)


if __name__ == "__main__":
    main()
