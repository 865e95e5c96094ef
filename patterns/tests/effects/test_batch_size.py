"""A transaction is refused for its size before it is sent, exactly where the service refuses it."""

import asyncio
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient, UpdateMode
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns.aio.driver import Driver as AsyncDriver
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.sdk import BATCH_BYTES_MAX
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation

ROW = {f"B{number:02d}": bytes(65_535) for number in range(15)}


def batch(padding: int) -> Batch:
    """Return three full rows, and a fourth of so many characters."""
    texts = {f"T{number:02d}": "x" * max(0, min(30_000, padding - number * 30_000)) for number in range(10)}
    full = tuple(Operation(Kind.PUT, EntityKey("p", f"r{number}"), ROW) for number in range(3))
    return Batch("t", (*full, Operation(Kind.PUT, EntityKey("p", "z"), texts)))


def length_of(client: TableClient, effect: Batch) -> int:
    lengths: list[int] = []

    def measure(request: Any) -> None:
        lengths.append(len(request.http_request.content))
        raise Rejected(400, "")

    with pytest.raises(Rejected):
        client.submit_transaction(in_sdk(effect), raw_request_hook=measure)
    return lengths[0]


def in_sdk(effect: Batch) -> Any:
    mode = {"mode": UpdateMode.REPLACE}
    return [
        ("upsert", {**each.properties, "PartitionKey": "p", "RowKey": each.key.row_key}, mode)
        for each in effect.operations
    ]


@pytest.mark.filterwarnings("ignore:Sending a large body")  # aiohttp, of what the SDK gives it
def test_a_transaction_has_4_mib_at_most(connection_string: str, table_client: TableClient) -> None:
    driver = Driver({"t": table_client})
    room = 200_000 + BATCH_BYTES_MAX - length_of(table_client, batch(200_000))
    assert length_of(table_client, batch(room)) == BATCH_BYTES_MAX
    driver.run(perform(batch(room)))
    with pytest.raises(Rejected, match="RequestBodyTooLarge: 4194305 bytes of a transaction"):
        driver.run(perform(batch(room + 1)))
    with pytest.raises(HttpResponseError) as refused:
        table_client.submit_transaction(in_sdk(batch(room + 1)))
    assert refused.value.status_code == 413

    async def run() -> None:
        async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
            await AsyncDriver({"t": client}).run(perform(batch(room)))
            with pytest.raises(Rejected, match="RequestBodyTooLarge"):
                await AsyncDriver({"t": client}).run(perform(batch(room + 1)))

    asyncio.run(run())
