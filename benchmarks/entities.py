"""The entities: 1 KB of JSON, five properties of five types, text that does not compress."""

import json
import random

PAYLOAD_BYTES = 1024
PARTITION_ROWS = 1000  # of one stored partition: a full page
TRANSACTION_ROWS = 100
# Property Count is this and the row's number modulo 1,000, so one row of a thousand has a given Count.
COUNT_BASE = 9_007_199_254_740_000


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
