import asyncio
import json

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.auth.authenticator import Granted
from lazulite.auth.grant import SHARED_KEY_GRANT
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.engine.contract import Engine
from lazulite.service.routing import QueryLimits
from lazulite.table.credentials import TableSas, sign_table_sas
from tests.table.batches import CONTENT_TYPE, Operation, change_set, parts, query
from tests.table.client import FOREVER, Client, header, values

STAR = {"If-Match": "*"}


def at(row: str, partition: str = "p", table: str = "people") -> str:
    return f"{table}(PartitionKey='{partition}',RowKey='{row}')"


def insert(row: str, partition: str = "p", table: str = "people", **headers: str) -> Operation:
    return Operation("POST", table, {"PartitionKey": partition, "RowKey": row, "A": 1}, headers)


@pytest.fixture(name="people", autouse=True)
async def _people(client: Client) -> None:
    await client("POST", "Tables", body={"TableName": "people"})


async def rows(client: Client) -> list[str]:
    return [entity["RowKey"] for entity in values(await client("GET", "people()"))]


async def test_other_tasks_run_between_operations_and_between_responses(engine: Engine) -> None:
    """A time slice of no length is used up at every checkpoint: one in eight short operations and responses."""
    iterations = 0

    async def count_iterations() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    client = Client(engine, limits=QueryLimits(slice_seconds=0))
    other = asyncio.create_task(count_iterations())
    body = change_set(*(insert(f"r{index}") for index in range(100)))
    response = await client("POST", "$batch", body=body, headers=CONTENT_TYPE)
    other.cancel()
    assert response.body.count(b"201 Created") == 100
    assert iterations >= 3 * 100 // 8


async def test_inserts_without_echo_are_reported_their_own_addresses(client: Client) -> None:
    """However much of their answers they have in common, and with the same head or another."""
    keys = ["plain", "it's", "b l", "100%", "é", "\U00010400", "RowKey='", ""]
    quiet = {"Prefer": "return-no-content"}
    operations = [insert(key, "p's", **quiet, **extra) for extra in ({}, {"Content-ID": "7"}) for key in keys]
    for number, operation in enumerate(operations[len(keys) :]):
        operation.body["RowKey"] += f"-{number}"
    answers = parts(await client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE))
    assert [answer.headers.get("Content-ID") for answer in answers] == [None] * len(keys) + ["7"] * len(keys)
    for operation, answer in zip(operations, answers, strict=True):
        single = insert(operation.body["RowKey"], "alone's", **quiet)
        alone = await client("POST", single.url, body=single.body, headers=quiet)
        assert answer.headers["Location"] == answer.headers["DataServiceId"]
        assert answer.headers["Location"] == str(header(alone, "Location")).replace("alone", "p")


async def test_every_kind_of_operation_in_one(client: Client) -> None:
    for row in ("replace", "merge", "delete", "upsert"):
        await client("POST", "people", body={"PartitionKey": "p", "RowKey": row, "A": 1, "B": 1})
    body = change_set(
        Operation("POST", "people", {"PartitionKey": "p", "RowKey": "quiet"}, {"Prefer": "return-no-content"}),
        Operation("POST", "people", {"PartitionKey": "p", "RowKey": "echo"}, {"Content-ID": "5"}),
        Operation("PUT", at("replace"), {"C": 2}, STAR),
        Operation("MERGE", at("merge"), {"C": 2}, STAR),
        Operation("PATCH", at("upsert"), {"C": 2}),
        Operation("PUT", at("new"), {"C": 2}),
        Operation("POST", at("newer"), {"C": 2}, {"X-HTTP-Method": "MERGE"}),
        Operation("DELETE", at("delete"), None, STAR),
    )
    answers = parts(await client("POST", "$batch", body=body, headers=CONTENT_TYPE))
    assert [answer.status for answer in answers] == [204, 201, 204, 204, 204, 204, 204, 204]
    assert list(answers[0].headers) == [
        "X-Content-Type-Options",
        "Cache-Control",
        "Preference-Applied",
        "DataServiceVersion",
        "Location",
        "DataServiceId",
        "ETag",
    ]
    assert list(answers[1].headers) == [
        "Content-ID",
        "DataServiceVersion",
        "Content-Type",
        "X-Content-Type-Options",
        "Cache-Control",
        "Location",
        "ETag",
    ]
    assert json.loads(answers[1].body)["RowKey"] == "echo"
    assert list(answers[2].headers) == ["X-Content-Type-Options", "Cache-Control", "DataServiceVersion", "ETag"]
    assert "ETag" not in answers[-1].headers
    found = {entity["RowKey"]: entity for entity in values(await client("GET", "people()"))}
    assert sorted(found) == ["echo", "merge", "new", "newer", "quiet", "replace", "upsert"]
    assert set(found["replace"]) == {"PartitionKey", "RowKey", "Timestamp", "C"}
    assert set(found["merge"]) == {"PartitionKey", "RowKey", "Timestamp", "A", "B", "C"}
    assert len({entity["Timestamp"] for entity in found.values()}) == 1


@pytest.mark.parametrize(
    ("operations", "status", "code", "message"),
    [
        ([insert("a"), insert("b"), insert("old")], 409, "EntityAlreadyExists", "2:The specified entity already"),
        ([insert("old")], 409, "EntityAlreadyExists", "The specified entity already exists."),
        ([insert("a"), Operation("PUT", at("none"), {}, STAR)], 404, "ResourceNotFound", "1:The specified resource"),
        ([Operation("DELETE", at("none"), None, STAR)], 404, "ResourceNotFound", "The specified resource"),
        (
            [insert("a"), Operation("MERGE", at("old"), {}, {"If-Match": 'W/"x"'})],
            412,
            "UpdateConditionNotSatisfied",
            "1:The update condition",
        ),
        ([insert("a"), insert("b"), insert("a")], 400, "InvalidDuplicateRow", "2:The batch request contains multiple"),
        ([insert("a"), Operation("DELETE", at("a"), None, STAR)], 400, "InvalidDuplicateRow", "1:The batch request"),
        ([insert("a"), insert("b", "q")], 400, "CommandsInBatchActOnDifferentPartitions", "1:All commands in a"),
        ([insert("a"), insert("b", table="other")], 400, "CommandsInBatchActOnDifferentPartitions", "1:All commands"),
        ([insert("a", table="nobody")], 404, "TableNotFound", "0:The table specified does not exist."),
        ([insert(str(i)) for i in range(101)], 400, "InvalidInput", "99:The batch request operation exceeds the max"),
        ([insert("a"), Operation("GET", at("old"))], 400, "InvalidInput", "1:One of the request inputs"),
        (
            [insert("a"), Operation("POST", "people", {"PartitionKey": "p", "RowKey": "b", "a-b": 1})],
            400,
            "PropertyNameInvalid",
            "1:The property name is invalid.",
        ),
        ([insert("a"), Operation("PATCH", "people(PartitionKey='p')", {})], 400, "InvalidInput", "1:The number of"),
        ([insert("a"), Operation("POST", "Tables", {"TableName": "x"})], 400, "InvalidInput", "1:One of the"),
    ],
)
async def test_one_rejection_rejects_all(
    client: Client, operations: list[Operation], status: int, code: str, message: str
) -> None:
    await client("POST", "people", body={"PartitionKey": "p", "RowKey": "old"})
    response = await client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE)
    [answer] = parts(response)
    assert (answer.status, answer.code) == (status, code)
    assert answer.message.startswith(message)
    assert "RequestId:id" in answer.body
    assert await rows(client) == ["old"]


async def test_a_failing_insert_repeats_its_preference(client: Client) -> None:
    body = change_set(insert("a"), insert("a", Prefer="return-no-content"))
    [answer] = parts(await client("POST", "$batch", body=body, headers=CONTENT_TYPE))
    assert list(answer.headers) == [
        "X-Content-Type-Options",
        "Cache-Control",
        "Preference-Applied",
        "DataServiceVersion",
        "Content-Type",
    ]


async def test_a_hundred_is_not_too_many(client: Client) -> None:
    operations = [insert(f"{index:03}") for index in range(100)]
    answers = parts(await client("POST", "$batch", body=change_set(*operations), headers=CONTENT_TYPE))
    assert [answer.status for answer in answers] == [201] * 100
    assert len(await rows(client)) == 100


async def test_table_names_are_one_whatever_their_case(client: Client) -> None:
    body = change_set(insert("a"), insert("b", table="PEOPLE"))
    answers = parts(await client("POST", "$batch", body=body, headers=CONTENT_TYPE))
    assert [answer.status for answer in answers] == [201, 201]


async def test_inner_urls_may_be_relative_or_lack_the_account(client: Client) -> None:
    text = change_set(insert("a"), insert("b"), insert("c")).decode()
    text = text.replace("http://host/devstoreaccount1/people", "/devstoreaccount1/people", 1)
    text = text.replace("http://host/devstoreaccount1/people", "http://host/people", 1)
    text = text.replace("http://host/devstoreaccount1/people", "people", 1)
    answers = parts(await client("POST", "$batch", body=text.encode(), headers=CONTENT_TYPE))
    assert [answer.status for answer in answers] == [201, 201, 201]


async def test_an_empty_change_set_is_answered_with_one(client: Client) -> None:
    assert parts(await client("POST", "$batch", body=change_set(), headers=CONTENT_TYPE)) == []


@pytest.mark.parametrize("body", [b"", b"rubbish", b"--batch_b\r\n\r\nrubbish\r\n--batch_b--"])
async def test_rubbish_is_rejected_as_a_whole(client: Client, body: bytes) -> None:
    response = await client("POST", "$batch", body=body, headers=CONTENT_TYPE)
    assert (response.status, response.error_code) == (400, "InvalidInput")


async def test_a_lone_query(client: Client) -> None:
    await client("POST", "people", body={"PartitionKey": "p", "RowKey": "r"})
    [answer] = parts(await client("POST", "$batch", body=query(Operation("GET", at("r"))), headers=CONTENT_TYPE))
    assert answer.status == 200
    assert list(answer.headers)[:4] == ["DataServiceVersion", "Content-Type", "X-Content-Type-Options", "Cache-Control"]
    assert json.loads(answer.body)["RowKey"] == "r"
    filtered = query(Operation("GET", "people()?$filter=RowKey%20eq%20'r'&$top=1"))
    [answer] = parts(await client("POST", "$batch", body=filtered, headers=CONTENT_TYPE))
    assert [entity["RowKey"] for entity in json.loads(answer.body)["value"]] == ["r"]


@pytest.mark.parametrize(
    ("operation", "status", "message"),
    [
        (Operation("GET", at("none")), 404, "0:The specified resource does not exist."),
        (Operation("GET", at("none", table="nobody")), 404, "0:The table specified does not exist."),
        (Operation("GET", "Tables"), 400, "0:One of the request inputs is not valid."),
        (Operation("DELETE", at("none"), None, STAR), 400, "0:One of the request inputs is not valid."),
    ],
)
async def test_a_lone_query_rejected(client: Client, operation: Operation, status: int, message: str) -> None:
    [answer] = parts(await client("POST", "$batch", body=query(operation), headers=CONTENT_TYPE))
    assert (answer.status, answer.message) == (status, message)


@pytest.mark.parametrize(("permission", "status"), [("au", 202), ("a", 403), ("u", 403), ("rd", 403)])
async def test_each_operation_needs_its_own_permission(client: Client, permission: str, status: int) -> None:
    client.sas = sign_account_sas(
        DEVELOPMENT_ACCOUNT, AccountSas(services="t", resource_types="o", permission=permission, expiry=FOREVER)
    )
    body = change_set(insert("a"), Operation("PATCH", at("b"), {}))
    response = await client("POST", "$batch", body=body, headers=CONTENT_TYPE)
    assert response.status == status
    if status == 403:
        assert header(response, "x-ms-error-code") == "AuthorizationPermissionMismatch"


async def test_the_key_range_of_a_table_sas_holds_inside(client: Client) -> None:
    sas = TableSas(
        table="people",
        permission="raud",
        expiry=FOREVER,
        start_partition="p",
        start_row="b",
        end_partition="p",
        end_row="c",
    )
    client.sas = sign_table_sas(DEVELOPMENT_ACCOUNT, sas)
    response = await client("POST", "$batch", body=change_set(insert("b"), insert("d")), headers=CONTENT_TYPE)
    assert (response.status, response.error_code) == (403, "AuthorizationFailure")
    assert await rows(client) == []
    response = await client("POST", "$batch", body=change_set(insert("b"), insert("c")), headers=CONTENT_TYPE)
    assert response.status == 202
    assert await rows(client) == ["b", "c"]


@pytest.mark.parametrize("version", ["2012-02-12", "2019-02-02"])
async def test_a_lack_of_permission_rejects_the_whole_however_its_version_spells_it(
    client: Client, version: str
) -> None:
    sas = TableSas(table="people", permission="d", expiry=FOREVER, version=version)
    client.sas = f"{sign_table_sas(DEVELOPMENT_ACCOUNT, sas)}&api-version=2019-02-02"
    for body in (change_set(insert("a")), query(Operation("GET", at("a")))):
        response = await client("POST", "$batch", body=body, headers=CONTENT_TYPE)
        assert response.status == (404 if version == "2012-02-12" else 403)
        assert response.error_code == (
            "ResourceNotFound" if response.status == 404 else "AuthorizationPermissionMismatch"
        )


async def test_parts_of_a_batch_without_a_version_speak_for_themselves(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def owner(*_: object) -> Granted:
        return Granted(SHARED_KEY_GRANT)

    monkeypatch.setattr("lazulite.auth.authenticator.Authenticator.authenticate", owner)
    client.sas = ""
    anything = {**CONTENT_TYPE, "accept": "*/*"}
    body = change_set(insert("1"), Operation("DELETE", at("1", "q"), headers={**STAR, "Accept": "*/*"}))
    (rejected,) = parts(await client("POST", "$batch", body=body, headers=anything))
    assert rejected.code == "CommandsInBatchActOnDifferentPartitions"
    (answer,) = parts(await client("POST", "$batch", body=change_set(insert("1")), headers=anything))
    assert (answer.status, answer.headers["DataServiceVersion"]) == (201, "3.0;")
    named = {**anything, "x-ms-version": "2009-09-19"}
    (rejected,) = parts(await client("POST", "$batch", body=change_set(insert("2")), headers=named))
    assert rejected.code == "JsonFormatNotSupported"


async def test_parts_of_an_old_batch_have_old_odata_versions(client: Client) -> None:
    await client("POST", "people", body={"PartitionKey": "p", "RowKey": "r"})
    old = {**CONTENT_TYPE, "x-ms-version": "2009-09-19"}

    def delete(odata: str) -> bytes:
        return change_set(Operation("DELETE", at("r"), headers={**STAR, "Accept": "*/*", "DataServiceVersion": odata}))

    (rejected,) = parts(await client("POST", "$batch", body=delete("2.0"), headers=old))
    assert rejected.code == "InvalidHeaderValue"
    (answer,) = parts(await client("POST", "$batch", body=delete("1.0;NetFx"), headers=old))
    assert (answer.status, answer.headers["DataServiceVersion"]) == (204, "1.0;")
