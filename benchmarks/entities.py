"""The entities: 1 KB of JSON, five properties of five types, text that does not compress."""

import json
import random
from datetime import UTC, datetime, timedelta

PAYLOAD_BYTES = 1024
PARTITION_ROWS = 1000
"""Entities of one stored partition: a full page."""
TRANSACTION_ROWS = 100
COUNT_BASE = 9_007_199_254_740_000
"""Property Count is this and the row's number modulo 1,000, so one row of a thousand has a given Count."""


def row_key(number: int) -> str:
    """Return the RowKey of a stored entity, by its number in the table or the partition."""
    return f"{number % PARTITION_ROWS:06d}"


def partition_key(number: int) -> str:
    """Return the PartitionKey of the stored entity of this number."""
    return f"r{number // PARTITION_ROWS:012d}"


def entity(partition: str, row: str, number: int = 0) -> bytes:
    """Return an entity of five properties of five types, 1 KB of JSON."""
    properties: dict[str, object] = {
        "PartitionKey": partition,
        "RowKey": row,
        "Count@odata.type": "Edm.Int64",
        "Count": str(COUNT_BASE + number % 1000),
        "Ratio": 0.3333333333333333,
        "Active": True,
        "Seen@odata.type": "Edm.DateTime",
        "Seen": "2024-02-29T12:34:56.789Z",
        "Text": "",
    }
    left = PAYLOAD_BYTES - len(json.dumps(properties))
    noise = random.Random(f"{partition} {row}")  # the same text in every run, nothing to guess
    properties["Text"] = noise.randbytes(left // 2 + 1).hex()[:left]
    return json.dumps(properties).encode()


def wide_entity(partition: str, row: str, properties: int) -> bytes:
    """Return an entity of this many short properties, of five types in turn."""
    wide: dict[str, object] = {"PartitionKey": partition, "RowKey": row}
    seen = datetime(2024, 2, 29, tzinfo=UTC)
    for number in range(properties):
        name = f"P{number:03d}"
        match number % 5:
            case 0:
                wide[f"{name}@odata.type"] = "Edm.Int64"
                wide[name] = str(COUNT_BASE + number)
            case 1:
                wide[name] = number + 0.5
            case 2:
                wide[name] = number % 2 == 0
            case 3:
                wide[f"{name}@odata.type"] = "Edm.DateTime"
                wide[name] = f"{seen + timedelta(days=number):%Y-%m-%dT%H:%M:%SZ}"
            case _:
                wide[name] = f"text of {name}"
    return json.dumps(wide).encode()
