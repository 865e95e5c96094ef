"""A transaction is rejected for its size before it is sent, exactly where the service rejects it."""

from typing import Any, cast

import pytest
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns.aio.driver import Driver as AsyncDriver
from lazulite_patterns.effects import changesets, sdk
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.tables import Batch, EntityKey, Kind, Operation

ROW = {f"B{number:02d}": bytes(65_535) for number in range(15)}


def batch(padding: int) -> Batch:
    """Return three full rows, and a fourth of so many characters."""
    texts = {f"T{number:02d}": "x" * max(0, min(30_000, padding - number * 30_000)) for number in range(10)}
    full = tuple(Operation(Kind.PUT, EntityKey("p", f"r{number}"), ROW) for number in range(3))
    return Batch("t", (*full, Operation(Kind.PUT, EntityKey("p", "z"), texts)))


@pytest.fixture
def largest(table_client: TableClient) -> int:
    """Return the padding of the largest transaction."""
    request = changesets.request_of(batch(200_000), table_client)
    assert request is not None
    return 200_000 + changesets.BYTES_MAX - len(request.content)


def test_a_transaction_has_4_mib_at_most(
    table_client: TableClient, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver({"t": table_client})
    driver.run(perform(batch(largest)))
    with pytest.raises(Rejected, match="RequestBodyTooLarge: 4194305 bytes of a transaction"):
        driver.run(perform(batch(largest + 1)))
    monkeypatch.setattr(changesets, "BYTES_MAX", 5_000_000)
    with pytest.raises(Rejected, match="RequestBodyTooLarge: The request body is too large"):
        driver.run(perform(batch(largest + 1)))


def test_a_transaction_of_the_sdk_has_the_same_limit(table_client: TableClient, largest: int) -> None:
    made = sdk.call(batch(largest + 10_000))
    with pytest.raises(Rejected, match="of a transaction, 4194304 are allowed"):
        cast(Any, table_client).submit_transaction(*made.args, **made.options)
    assert list(table_client.list_entities()) == []


@pytest.mark.filterwarnings("ignore:Sending a large body")  # aiohttp, of what the SDK gives it
async def test_an_asynchronous_program_has_the_same_limit(
    connection_string: str, table_client: TableClient, largest: int
) -> None:
    async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
        await AsyncDriver({"t": client}).run(perform(batch(largest)))
        with pytest.raises(Rejected, match="of a transaction, 4194304 are allowed"):
            await AsyncDriver({"t": client}).run(perform(batch(largest + 1)))
