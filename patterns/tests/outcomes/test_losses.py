"""Each row of the table of lost answers: what the SDK alone reports, and that the library's writes end right."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError
from azure.data.tables import TableClient, UpdateMode
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes import Exists, Policy
from lazulite_patterns.table.table import Table

from .transport import AsyncLossyTransport, Loss, LossyTransport

KEY = EntityKey("p", "r")
FAST = Policy(first_wait_seconds=0.001)
Make = Callable[..., TableClient]


@pytest.fixture
def client_of(connection_string: str, table_client: TableClient) -> Make:
    def make(transport: LossyTransport, **options: Any) -> TableClient:
        name = table_client.table_name
        return TableClient.from_connection_string(connection_string, name, transport=transport, **options)

    return make


def bag(**properties: object) -> Bag:
    return Bag(PartitionKey="p", RowKey="r", **properties)


def insert(table: Table[Bag]) -> None:
    table.insert(bag(N=1))


def replace(table: Table[Bag]) -> None:
    table.update(KEY, lambda each: Bag({**each, "N": 1}))


def merge(table: Table[Bag]) -> None:
    with table.transaction() as partition:
        found = table.get(KEY)
        assert found is not None
        partition.update(found, N=1)


def blind_merge(table: Table[Bag]) -> None:
    table.merge(KEY, N=1)


def put(table: Table[Bag]) -> None:
    table.upsert(bag(N=1))


def transaction(table: Table[Bag]) -> None:
    with table.transaction() as partition:
        partition.insert(bag(N=1))
        partition.insert(Bag(PartitionKey="p", RowKey="other"))


def delete(table: Table[Bag]) -> None:
    assert table.delete(KEY) is True


def delete_read(table: Table[Bag]) -> None:
    found = table.get(KEY)
    assert found is not None
    assert table.delete(found) is True


def delete_all(table: Table[Bag]) -> None:
    with table.transaction() as partition:
        partition.delete(KEY)
        partition.delete(EntityKey("p", "other"))


# Operation, whether the entity is there before, requests before the one that is lost, N afterwards.
OPERATIONS: list[tuple[Callable[[Table[Bag]], None], bool, int, int | None]] = [
    (insert, False, 0, 1),
    (replace, True, 1, 1),
    (merge, True, 1, 1),
    (blind_merge, True, 0, 1),
    (put, True, 0, 1),
    (transaction, False, 0, 1),
    (delete, True, 0, None),
    (delete_read, True, 1, None),
    (delete_all, True, 0, None),
]


@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize(
    ("operation", "there", "before", "count"), OPERATIONS, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_write_ends_right(
    client_of: Make,
    table_client: TableClient,
    operation: Callable[[Table[Bag]], None],
    there: bool,
    before: int,
    count: int | None,
    loss: Loss,
) -> None:
    if there:
        table_client.create_entity({**bag(N=0)})
        table_client.create_entity({"PartitionKey": "p", "RowKey": "other"})
    transport = LossyTransport([Loss.NONE] * before + [loss])
    with client_of(transport) as client:
        operation(Table(client, Bag, policy=FAST))
    rows: dict[str, Any] = {each["RowKey"]: each for each in table_client.list_entities()}
    assert rows.get("r", {}).get("N") == count
    assert len(transport.methods) <= before + 4, "one write, one read, one write at most; a delete of several reads all"


@pytest.mark.parametrize("loss", Loss)
async def test_an_asynchronous_write_ends_right(connection_string: str, table_client: TableClient, loss: Loss) -> None:
    transport = AsyncLossyTransport([loss])
    client = AsyncTableClient.from_connection_string(connection_string, table_client.table_name, transport=transport)
    async with client:
        table = AsyncTable(client, Bag, policy=FAST)
        await table.insert(bag(N=1))
        with pytest.raises(Exists):
            await table.insert(bag(N=2))
        assert (await table.update(KEY, lambda each: Bag({**each, "N": 3})))["N"] == 3
        async with table.transaction() as partition:
            partition.merge(KEY, M=4)
        assert await table.get(KEY) == bag(N=3, M=4)
        assert await table.delete(KEY) is True
        assert await table.delete(KEY) is False
        assert await table.get(KEY) is None


def outcome(call: Callable[[], object]) -> int | None:
    """Return 200 for success, the status of the error that the SDK raises, or None for an error of the connection."""
    try:
        call()
    except HttpResponseError as error:
        return error.status_code
    except AzureError:
        return None
    return 200


def call(method: str, client: TableClient, etag: str) -> object:
    condition: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    if method == "create":
        return client.create_entity(bag())
    if method == "transaction":
        return client.submit_transaction([("create", bag())])
    if method == "delete":
        return client.delete_entity(bag(), **condition)
    return client.update_entity(bag(), UpdateMode(method), **condition)


SDK = [
    ("create", None, 409),
    ("replace", 412, 412),
    ("merge", None, 412),
    ("transaction", None, 409),
    ("delete", 200, 200),
]


@pytest.mark.parametrize(("method", "after_loss", "after_error"), SDK)
def test_what_the_sdk_reports_by_itself(
    client_of: Make, table_client: TableClient, method: str, after_loss: int | None, after_error: int
) -> None:
    for loss, expected in ((Loss.ANSWER_LOST, after_loss), (Loss.ERROR_AFTER, after_error)):
        table_client.delete_entity(*KEY)
        etag = ""
        if method in {"replace", "merge", "delete"}:
            etag = str(table_client.create_entity(bag(N=0))["etag"])
        with client_of(LossyTransport([loss]), retry_backoff_factor=0) as client:
            assert outcome(partial(call, method, client, etag)) == expected, loss
