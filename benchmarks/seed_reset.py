"""`python -m benchmarks.seed_reset`: how long a server in memory takes to return to its seed.

The seed has 1,000 rows and 100 blobs, half of them of 300 KB. Between two resets, a tenth of the rows is deleted, and a
table is added. The target is 50 ms.
"""

import statistics
import time
from typing import Any

from azure.data.tables import TableServiceClient

import lazulite.testing

RESETS = 30
TARGET_MS = 50
_ROWS, _BLOBS, _PARTITIONS = 1000, 100, 50


def seed() -> dict[str, Any]:
    """Return the seed."""
    rows = [
        {"PartitionKey": f"p{number % _PARTITIONS}", "RowKey": str(number), "Name": "x" * 100, "Total": number}
        for number in range(_ROWS)
    ]
    blobs = [{"name": f"b{number}", "text": "y" * (1000 if number % 2 else 300_000)} for number in range(_BLOBS)]
    return {
        "tables": {"Orders": {"rows": rows}},
        "queues": {"jobs": {"messages": [f"m{number}" for number in range(50)]}},
        "containers": {"files": {"blobs": blobs}},
    }


def main() -> None:
    """Print the median and the greatest time of a reset."""
    times, cpu = list[float](), list[float]()
    with (
        lazulite.testing.server(seed=seed()) as storage,
        TableServiceClient.from_connection_string(storage.connection_string) as service,
    ):
        orders = service.get_table_client("Orders")
        for _ in range(RESETS):
            for number in range(0, _ROWS, 10):
                orders.delete_entity(f"p{number % _PARTITIONS}", str(number))
            service.create_table("Other")
            started, cpu_started = time.perf_counter(), time.process_time()
            storage.reset()
            times.append((time.perf_counter() - started) * 1000)
            cpu.append((time.process_time() - cpu_started) * 1000)
        assert sum(1 for _ in orders.list_entities()) == _ROWS
    verdict = "met" if statistics.median(times) < TARGET_MS else "missed"
    print(
        f"reset: median {statistics.median(times):.1f} ms, at most {max(times):.1f} ms, "
        f"CPU {statistics.median(cpu):.1f} ms; {TARGET_MS} ms {verdict}"
    )


if __name__ == "__main__":
    main()
