"""`python -m lazulite_patterns_simulation.bench`: `compare` with the plain SDK; `load` and `writers`, which are killed.

The variable PATTERNS_CONNECTION_STRING names the storage account, whose service should not be in this process.
"""

import argparse
import os
import sys
from pathlib import Path

from azure.data.tables import TableClient

from lazulite_patterns_simulation.bench import campaign, compare, writers


def main() -> int:
    """Run a command; return 0 if what it found is right."""
    given = _parser().parse_args()
    if (connection_string := os.environ.get("PATTERNS_CONNECTION_STRING")) is None:
        print("PATTERNS_CONNECTION_STRING names the storage account; it is not set", file=sys.stderr)
        return 2
    if given.command == "compare":
        for part in (compare.points, compare.loads, compare.indexed):
            for line in part(connection_string, given.rounds):
                ratio = line.library.ratio(line.other)
                times = f"{line.other.median.wall * 1000:8.3f} ms {line.library.median.wall * 1000:8.3f} ms"
                ratios = f"{ratio.wall:.2f} x the SDK's time, {ratio.cpu:.2f} x its CPU time here"
                print(f"{line.what:45} {times}  {ratios} ({line.promise})", flush=True)
        return 0
    if given.command == "writers":
        chosen = (given.writers, given.people, given.kills, given.interval, given.seed)
        return 0 if writers.run(connection_string, writers.Settings(*chosen)) else 1
    if given.command == "write":
        with TableClient.from_connection_string(connection_string, given.table) as client:
            writers.write(writers.Clients.of(connection_string, client), given.people, given.seed)
    settings = campaign.Settings(given.rows, given.partitions, given.faults, given.kills, given.seed, given.buffer)
    if given.command == "load":
        return 0 if campaign.run(connection_string, settings) else 1
    with TableClient.from_connection_string(connection_string, given.table) as client:
        campaign.load_once(client, settings, given.checkpoint)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lazulite_patterns_simulation.bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    comparing = commands.add_parser("compare", help="measure by turns")
    comparing.add_argument("--rounds", type=int, default=7)
    for name in ("load", "load-once"):
        loading = commands.add_parser(
            name, help="load many rows, with kills" if name == "load" else "one process of it"
        )
        if name == "load-once":
            loading.add_argument("table")
            loading.add_argument("checkpoint", type=Path)
        loading.add_argument("--rows", type=int, default=1_000_000)
        loading.add_argument("--partitions", type=int, default=10_000)
        loading.add_argument("--faults", type=float, default=0.05)
        loading.add_argument("--kills", type=int, default=3)
        loading.add_argument("--seed", type=int, default=0)
        loading.add_argument("--buffer", type=int, default=0, help="rows in memory")
    writing = commands.add_parser("writers", help="change indexed entities in processes that are killed")
    writing.add_argument("--writers", type=int, default=4)
    writing.add_argument("--people", type=int, default=16)
    writing.add_argument("--kills", type=int, default=40)
    writing.add_argument("--interval", type=float, default=3.0, help="seconds between two kills, at most")
    writing.add_argument("--seed", type=int, default=0)
    one = commands.add_parser("write", help="one process of it")
    for name, kind in (("table", str), ("people", int), ("seed", int)):
        one.add_argument(name, type=kind)
    return parser


if __name__ == "__main__":
    sys.exit(main())
