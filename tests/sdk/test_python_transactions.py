"""Entity group transactions through the Python SDK: every operation kind, every way to fail."""

from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    RequestTooLargeError,
    TableClient,
    TableServiceClient,
    TableTransactionError,
    TransactionOperation,
    UpdateMode,
)

from .etags import instant

IF_NOT_MODIFIED = MatchConditions.IfNotModified


def entity(row: str, **properties: Any) -> dict[str, Any]:
    return {"PartitionKey": "it's p", "RowKey": row} | properties


def contents(table: TableClient) -> dict[str, dict[str, Any]]:
    """What each row holds beside its keys."""
    keys = {"PartitionKey", "RowKey"}
    return {e["RowKey"]: {n: v for n, v in e.items() if n not in keys} for e in table.list_entities()}


def rejects(table: TableClient, operations: Any, index: int, status: int) -> None:
    """Submitting fails at this operation, with this status, and changes nothing."""
    before = contents(table)
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction(operations)
    error = caught.value
    assert (error.index, error.status_code) == (index, status)
    assert contents(table) == before


@pytest.fixture
def filled(table: TableClient) -> TableClient:
    """Rows one to six, each with A=1."""
    table.submit_transaction([("create", entity(row, A=1)) for row in ("1", "2", "3", "4", "5", "6")])
    return table


def test_every_kind_of_operation_at_once(filled: TableClient) -> None:
    known = filled.get_entity("it's p", "5").metadata["etag"]
    deleted = filled.get_entity("it's p", "6").metadata["etag"]
    answers = filled.submit_transaction(
        [
            ("create", entity("new", B=2)),
            ("upsert", entity("upserted", B=2)),
            (TransactionOperation.UPSERT, entity("1", B=2), {"mode": UpdateMode.MERGE}),
            ("upsert", entity("2", B=2), {"mode": UpdateMode.REPLACE}),
            (TransactionOperation.UPDATE, entity("3", B=2), {"mode": UpdateMode.MERGE}),
            ("update", entity("4", B=2), {"mode": "replace"}),
            ("update", entity("5", B=2), {"etag": known, "match_condition": IF_NOT_MODIFIED}),
            ("delete", entity("6"), {"etag": deleted, "match_condition": IF_NOT_MODIFIED}),
        ]
    )
    assert contents(filled) == {
        "1": {"A": 1, "B": 2},
        "2": {"B": 2},
        "3": {"A": 1, "B": 2},
        "4": {"B": 2},
        "5": {"A": 1, "B": 2},
        "new": {"B": 2},
        "upserted": {"B": 2},
    }
    stored = {e["RowKey"]: e.metadata["etag"] for e in filled.list_entities()}
    rows = ("new", "upserted", "1", "2", "3", "4", "5")
    assert [dict(answer) for answer in answers] == [{"etag": stored[row]} for row in rows] + [{}]
    assert all(instant(str(etag)) > instant(str(known)) for etag in stored.values())


def test_a_hundred_operations_and_their_answers_in_order(table: TableClient) -> None:
    answers = table.submit_transaction(("create", entity(f"{99 - n:02}", N=n)) for n in range(100))
    stored = {e["N"]: e.metadata["etag"] for e in table.list_entities()}
    assert [answer["etag"] for answer in answers] == [stored[n] for n in range(100)]


def test_etags_of_a_transaction_are_good_for_the_next(filled: TableClient) -> None:
    (answer,) = filled.submit_transaction([("update", entity("1", A=2))])
    conditional = {"etag": answer["etag"], "match_condition": IF_NOT_MODIFIED}
    filled.submit_transaction([("update", entity("1", A=3), conditional)])
    rejects(filled, [("update", entity("1", A=4), conditional)], 0, 412)
    assert contents(filled)["1"] == {"A": 3}


def test_no_operations(table: TableClient) -> None:
    assert table.submit_transaction([]) == []


def test_creating_what_exists(filled: TableClient) -> None:
    rejects(filled, [("create", entity("1"))], 0, 409)
    operations = [("create", entity(row)) for row in ("a", "b", "c", "2", "d")]
    rejects(filled, operations, 3, 409)


def test_updating_or_deleting_what_is_absent(filled: TableClient) -> None:
    for kind in ("update", "delete"):
        operations = [("update", entity("1", A=2)), (kind, entity("absent")), ("delete", entity("2"))]
        rejects(filled, operations, 1, 404)


@pytest.mark.parametrize(("kind", "mode"), [("update", "merge"), ("update", "replace"), ("delete", None)])
def test_stale_etags(filled: TableClient, kind: str, mode: str | None) -> None:
    stale = filled.get_entity("it's p", "3").metadata["etag"]
    filled.upsert_entity(entity("3", A=2))
    options: dict[str, Any] = {"etag": stale, "match_condition": IF_NOT_MODIFIED}
    if mode:
        options["mode"] = mode
    operations = [("delete", entity("1")), ("upsert", entity("2")), (kind, entity("3"), options)]
    rejects(filled, operations, 2, 412)


def test_one_row_twice(filled: TableClient) -> None:
    operations = [("update", entity("1")), ("update", entity("2")), ("delete", entity("1"))]
    rejects(filled, operations, 2, 400)


def test_more_than_a_hundred_operations(table: TableClient) -> None:
    with pytest.raises(TableTransactionError) as caught:
        table.submit_transaction([("create", entity(f"{n:03}")) for n in range(101)])
    assert caught.value.status_code == 400
    assert contents(table) == {}


def test_limits_hold_inside(filled: TableClient) -> None:
    rejects(filled, [("delete", entity("1")), ("create", entity("a", **{"x" * 256: 1}))], 1, 400)


def test_four_mebibytes_are_too_much(table: TableClient) -> None:
    operations = [("create", entity(str(n), A=b"x" * 60_000)) for n in range(60)]
    with pytest.raises(RequestTooLargeError) as caught:
        table.submit_transaction(operations)
    assert caught.value.status_code == 413
    assert contents(table) == {}
    # The connection is of further use.
    table.submit_transaction(operations[:20])
    assert len(contents(table)) == 20


def test_a_missing_table(service: TableServiceClient) -> None:
    with pytest.raises(TableTransactionError) as caught:
        service.get_table_client("sdkAbsent").submit_transaction([("create", entity("1"))])
    assert (caught.value.index, caught.value.status_code) == (0, 404)


def test_several_partitions_are_rejected_by_the_sdk_itself(table: TableClient) -> None:
    with pytest.raises(ValueError, match="Partition Keys"):
        table.submit_transaction([("create", entity("1")), ("create", entity("2") | {"PartitionKey": "q"})])


def test_a_merge_beyond_the_limits_changes_nothing(table: TableClient) -> None:
    table.create_entity(entity("1", **{f"P{n:03}": n for n in range(200)}))
    more = entity("1", **{f"Q{n:03}": n for n in range(53)})
    rejects(table, [("create", entity("2")), ("update", more)], 1, 400)
    with pytest.raises(HttpResponseError):
        table.update_entity(more)
    assert len(contents(table)["1"]) == 200
