"""The tables of metrics: hidden from lists, open by their names, old ones too, and not writable by clients."""

import json

import pytest

from lazulite.analytics.metrics_tables import MetricsTables
from lazulite.protocol.message import Response
from tests.analytics.store import Store
from tests.table.client import ACCOUNT, header, values

HOURS = "$MetricsHourPrimaryTransactionsBlob"
OLD = "$MetricsTransactionsBlob"
AT = "(PartitionKey='20241004T0000',RowKey='user;All')"
REFUSED = (403, "InsufficientAccountPermissions")


@pytest.fixture(name="tables", autouse=True)
async def _tables(store: Store) -> MetricsTables:
    tables = MetricsTables(store.engine)
    table = await tables.ensure(ACCOUNT, HOURS)
    for hour in (0, 1):
        row = ("user;All", {"TotalRequests": hour + 1, "Availability": 99.5})
        await tables.publish(table, f"20241004T0{hour}00", [row, ("system;All", {"TotalRequests": 0})], hour + 1)
    return tables


def outcome(response: Response) -> tuple[int, str]:
    return response.status, header(response, "x-ms-error-code") or ""


async def test_lists_do_not_have_them(store: Store) -> None:
    await store.client("POST", "Tables", body={"TableName": "zebra"})
    for query in ("", "NextTableName=$", "$filter=TableName%20ge%20'$'"):
        assert [row["TableName"] for row in values(await store.client("GET", "Tables", query))] == ["zebra"]


@pytest.mark.parametrize("name", [HOURS, HOURS.lower(), OLD, OLD.upper()])
async def test_they_are_open_by_name(store: Store, name: str) -> None:
    response = await store.client("GET", f"Tables('{name}')")
    assert (response.status, json.loads(response.body)["TableName"]) == (200, HOURS)
    assert len(values(await store.client("GET", f"{name}()"))) == 4
    found = values(
        await store.client("GET", f"{name}()", "$filter=RowKey%20eq%20'user;All'%20and%20TotalRequests%20gt%201L")
    )
    assert [row["PartitionKey"] for row in found] == ["20241004T0100"]
    assert json.loads((await store.client("GET", f"{name}{AT}")).body)["Availability"] == 99.5


async def test_others_do_not_exist(store: Store) -> None:
    other = HOURS.replace("Blob", "Queue")
    assert outcome(await store.client("GET", f"Tables('{other}')")) == (404, "ResourceNotFound")
    assert outcome(await store.client("GET", f"{other}()")) == (404, "TableNotFound")
    assert outcome(await store.client("GET", "$MetricsTransactionsQueue()")) == (404, "TableNotFound")


@pytest.mark.parametrize("name", [HOURS, OLD, HOURS.replace("Blob", "Queue")])
async def test_they_are_not_written_by_clients(store: Store, name: str) -> None:
    entity = {"PartitionKey": "p", "RowKey": "r"}
    any_tag = {"if-match": "*"}
    assert outcome(await store.client("POST", f"{name}", body=entity)) == REFUSED
    for method in ("PUT", "MERGE"):
        assert outcome(await store.client(method, f"{name}{AT}", body={}, headers=any_tag)) == REFUSED
        assert outcome(await store.client(method, f"{name}{AT}", body={})) == REFUSED
    assert outcome(await store.client("DELETE", f"Tables('{name}')")) == REFUSED
    assert outcome(await store.client("POST", f"{name}/Tables", body=entity)) == REFUSED
    assert outcome(await store.client("POST", "Tables", body={"TableName": name}))[0] == 400


@pytest.mark.parametrize(("method", "status"), [("POST", 403), ("PUT", 403), ("DELETE", 202)])
async def test_a_change_set_may_only_delete_their_rows(store: Store, method: str, status: int) -> None:
    path = HOURS if method == "POST" else HOURS + AT
    body = "" if method == "DELETE" else '{"PartitionKey":"p","RowKey":"r"}'
    part = (
        f"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n"
        f"{method} http://host/{ACCOUNT}/{path} HTTP/1.1\r\nContent-Type: application/json\r\nIf-Match: *\r\n\r\n"
        f"{body}\r\n--c--\r\n--b--\r\n"
    )
    if method == "POST":
        part = part.replace("If-Match: *\r\n", "")
    headers = {"content-type": "multipart/mixed; boundary=b"}
    response = await store.client("POST", "$batch", body=part.encode(), headers=headers)
    assert response.status == status
    assert len(values(await store.client("GET", f"{HOURS}()"))) == (3 if status == 202 else 4)


async def test_their_rows_may_be_deleted(store: Store) -> None:
    assert (await store.client("DELETE", f"{OLD}{AT}", headers={"if-match": "*"})).status == 204
    assert (await store.client("GET", f"{HOURS}{AT}")).status == 404


async def test_old_rows_are_removed(store: Store, tables: MetricsTables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite.analytics.metrics_tables._ROWS_A_STEP", 3)
    table = await tables.ensure(ACCOUNT, HOURS)
    for minute in range(10):
        await tables.put(table, f"20241003T00{minute:02}", [("user;All", {"TotalRequests": 1})])
    await tables.remove_before(table, "20241004T0100")
    assert {row["PartitionKey"] for row in values(await store.client("GET", f"{HOURS}()"))} == {"20241004T0100"}


async def test_a_row_that_a_user_could_not_have_made_is_replaced(store: Store, tables: MetricsTables) -> None:
    table = await tables.ensure(ACCOUNT, HOURS)
    await tables.put(table, "20241004T0300", [("user;All", {"Other": 1.5})])
    await tables.publish(table, "20241004T0300", [("user;All", {"TotalRequests": 0})], 0)
    row = json.loads((await store.client("GET", f"{HOURS}{AT.replace('T0000', 'T0300')}")).body)
    assert "Other" not in row
