"""Reference §11.2, §11.3: the rules of a batch — code, message, index. A rejected batch leaves nothing."""

import base64
import hashlib
import json
from typing import NamedTuple

import pytest

from .batches import Operation, body, changeset, insert, operation, run, submit, url
from .client import Client
from .tables import STALE, Entity, Table, entity

DUPLICATE = (
    "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
)
PARTITIONS = "All commands in a batch must operate on same entity group."
TOO_MANY = "The batch request operation exceeds the maximum 100 changes per change set."


class Step(NamedTuple):
    """One operation on an entity of the table: method, row, and what else it needs."""

    method: str
    row: str
    content: Entity | str | None = None
    partition: str = "p"
    if_match: str | None = None


class Rule(NamedTuple):
    """Operations, and the rejection: status, code, index, message (None: the reference leaves the text open)."""

    steps: list[Step]
    status: int
    code: str
    position: int
    message: str | None


def post(row: str, partition: str = "p") -> Step:
    """An insert."""
    return Step("POST", row, entity(partition, row), partition)


def posts(*rows: str) -> list[Step]:
    """Inserts."""
    return [post(row) for row in rows]


EXISTS = "exists"
MISSING = Step("PUT", "none", {}, if_match="*")
RULES = {
    "duplicate": Rule(posts("1", "2", "1"), 400, "InvalidDuplicateRow", 2, DUPLICATE),
    "duplicate at once": Rule(posts("1", "1", "2"), 400, "InvalidDuplicateRow", 1, DUPLICATE),
    "duplicate across verbs": Rule(
        [post("1"), Step("DELETE", "1", if_match="*")], 400, "InvalidDuplicateRow", 1, DUPLICATE
    ),
    "duplicate of an update": Rule(
        [Step("PUT", EXISTS, {}), Step("MERGE", EXISTS, {"A": 1})], 400, "InvalidDuplicateRow", 1, DUPLICATE
    ),
    "duplicate before execution": Rule([post(EXISTS), post("1"), post("1")], 400, "InvalidDuplicateRow", 2, DUPLICATE),
    "other partition": Rule(
        [post("1"), post("2", "q"), post("3", "z")], 400, "CommandsInBatchActOnDifferentPartitions", 1, PARTITIONS
    ),
    "other partition, late": Rule(
        [*posts("1", "2", "3"), post("1", "q")], 400, "CommandsInBatchActOnDifferentPartitions", 3, PARTITIONS
    ),
    "other partition by update": Rule(
        [post("1"), Step("PUT", "2", {}, "q")], 400, "CommandsInBatchActOnDifferentPartitions", 1, PARTITIONS
    ),
    "101 operations": Rule(posts(*map(str, range(101))), 400, "InvalidInput", 99, TOO_MANY),
    "150 operations": Rule(posts(*map(str, range(150))), 400, "InvalidInput", 99, TOO_MANY),
    "conflict": Rule(
        [*posts("1", "2", "3"), post(EXISTS)], 409, "EntityAlreadyExists", 3, "The specified entity already exists."
    ),
    "conflict first": Rule(
        [post(EXISTS), *posts("1", "2")], 409, "EntityAlreadyExists", 0, "The specified entity already exists."
    ),
    "missing": Rule([post("1"), MISSING], 404, "ResourceNotFound", 1, "The specified resource does not exist."),
    "missing to delete": Rule(
        [*posts("1", "2"), Step("DELETE", "none", if_match="*")],
        404,
        "ResourceNotFound",
        2,
        "The specified resource does not exist.",
    ),
    "stale": Rule(
        [post("1"), Step("MERGE", EXISTS, {"A": 2}, if_match=STALE)],
        412,
        "UpdateConditionNotSatisfied",
        1,
        "The update condition specified in the request was not satisfied.",
    ),
    "malformed tag": Rule(
        [post("1"), Step("PUT", EXISTS, {}, if_match="foo")],
        400,
        "InvalidInput",
        1,
        "The etag value 'foo' specified in one of the request headers is not valid. Please make sure only one etag "
        "value is specified and is valid.",
    ),
    "property name too long": Rule(
        [post("1"), Step("PUT", "2", {"n" * 256: 1})],
        400,
        "PropertyNameTooLong",
        1,
        "The property name exceeds the maximum allowed length (255).",
    ),
    "too many properties": Rule(
        [post("1"), Step("PUT", "2", {f"P{number}": 1 for number in range(253)})],
        400,
        "TooManyProperties",
        1,
        "The entity contains more properties than allowed. Each entity can include up to 252 properties to store "
        "data. Each entity also has 3 system properties.",
    ),
    "value too large": Rule(
        [post("1"), post("2"), Step("PUT", "3", {"A": "x" * 32_769})], 400, "PropertyValueTooLarge", 2, None
    ),
    "entity too large": Rule(
        [post("1"), Step("PUT", "3", {f"A{number}": "x" * 32_000 for number in range(20)})],
        400,
        "EntityTooLarge",
        1,
        "The entity is larger than the maximum allowed size (1MB).",
    ),
    "key missing": Rule(
        [post("1"), Step("POST", "x", '{"PartitionKey":"p"}')],
        400,
        "PropertiesNeedValue",
        1,
        "The values are not specified for all properties in the entity.",
    ),
    "forbidden key character": Rule(
        [post("1"), post("a/b")], 400, "OutOfRangeInput", 1, "The 'RowKey' parameter of value 'a/b' is out of range."
    ),
    "malformed content": Rule([post("1"), Step("POST", "x", "{")], 400, "InvalidInput", 1, None),
    "bad value": Rule([post("1"), Step("PUT", "2", '{"A":[]}')], 400, "InvalidInput", 1, None),
}


def operations(table: Table, steps: list[Step]) -> list[Operation]:
    """The steps as operations of a batch."""
    found = []
    for step in steps:
        path = table.path if step.method == "POST" else table.at(step.partition, step.row)
        headers = {"If_Match": step.if_match} if step.if_match else {}
        found.append(operation(step.method, url(table, path), step.content, **headers))
    return found


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rule_of_a_change_set(table: Table, rule: Rule) -> None:
    table.add(entity("p", EXISTS, A=1))
    before = table.query().body
    answer = submit(table.client, body(operations(table, rule.steps))).expect(202)
    (part,) = changeset(answer)
    status, code, index, message = part.rejection
    assert (status, code, index) == (rule.status, rule.code, rule.position)
    assert rule.message in {None, message}
    assert part.json()["odata.error"]["message"]["value"].count(str(answer.header("x-ms-request-id"))) == 1
    assert table.query().body == before


LONE = {
    "conflict": (post(EXISTS), 409, "EntityAlreadyExists", "The specified entity already exists."),
    "missing": (MISSING, 404, "ResourceNotFound", "The specified resource does not exist."),
    "stale": (
        Step("PUT", EXISTS, {}, if_match=STALE),
        412,
        "UpdateConditionNotSatisfied",
        "The update condition specified in the request was not satisfied.",
    ),
}


@pytest.mark.parametrize(("step", "status", "code", "message"), LONE.values(), ids=LONE)
def test_one_operation_that_fails(table: Table, step: Step, status: int, code: str, message: str) -> None:
    """Recorded without an index prefix; clients read a missing one as 0, so `0:` is equally good."""
    table.add(entity("p", EXISTS))
    (part,) = run(table.client, *operations(table, [step]))
    assert part.rejection in {(status, code, None, message), (status, code, 0, message)}


def test_change_set_on_a_missing_table(missing: Table) -> None:
    for steps in (posts("1"), posts("1", "2")):
        (part,) = run(missing.client, *operations(missing, steps))
        assert part.rejection == (404, "TableNotFound", 0, "The table specified does not exist.")
        assert part.header("X-Content-Type-Options") == "nosniff"
        assert part.header("Cache-Control") is None
        assert part.header("Preference-Applied") is None


def test_an_insert_into_a_missing_table_has_applied_no_preference(missing: Table) -> None:
    """§25: as recorded."""
    for preference in ("return-no-content", "return-content"):
        (part,) = run(missing.client, insert(missing, entity("p", "1"), Prefer=preference))
        assert part.status == 404
        assert part.header("Preference-Applied") is None


TOO_LARGE = {
    "EntityTooLarge": {f"A{number}": "x" * 32_000 for number in range(17)},
    "PropertyValueTooLarge": {"A": "x" * 32_769},
}


@pytest.mark.parametrize("code", TOO_LARGE)
def test_one_change_that_is_too_large_has_no_index(table: Table, code: str) -> None:
    """§25."""
    large = insert(table, entity("p", "1", **TOO_LARGE[code]))
    (part,) = run(table.client, large)
    assert part.rejection[:3] == (400, code, None)
    (part,) = run(table.client, insert(table, entity("p", "0")), large)
    assert part.rejection[:3] == (400, code, 1)


def test_change_set_on_two_tables_is_rejected(table: Table, client: Client, shared_table: Table) -> None:
    (part,) = run(client, insert(table, entity("p", "1")), insert(shared_table, entity("p", "2")))
    assert part.rejection == (400, "CommandsInBatchActOnDifferentPartitions", 1, PARTITIONS)
    assert table.page().rows == []
    assert shared_table.page("$filter=RowKey%20eq%20'2'").rows == []


def test_table_names_of_another_case_are_the_same_table(table: Table) -> None:
    upper = Table(table.client, table.name.upper())
    parts = run(table.client, insert(table, entity("p", "1")), insert(upper, entity("p", "2")))
    assert [part.status for part in parts] == [204, 204]
    (part,) = run(table.client, insert(table, entity("p", "3")), insert(upper, entity("p", "3")))
    assert part.rejection == (400, "InvalidDuplicateRow", 1, DUPLICATE)


def test_keys_of_another_case_are_other_entities(table: Table) -> None:
    parts = run(table.client, insert(table, entity("p", "a")), insert(table, entity("p", "A")))
    assert [part.status for part in parts] == [204, 204]
    (part,) = run(table.client, insert(table, entity("p", "1")), insert(table, entity("P", "1")))
    assert part.rejection[1] == "CommandsInBatchActOnDifferentPartitions"


@pytest.mark.unverified
def test_delete_without_a_condition_is_rejected(table: Table) -> None:
    table.add(entity("p", "r"))
    (part,) = run(table.client, operation("DELETE", url(table, table.at("p", "r"))))
    assert part.status == 400
    assert table.row_keys() == ["r"]


@pytest.mark.parametrize("position", [0, 50, 99])
def test_a_failure_anywhere_leaves_nothing(table: Table, position: int) -> None:
    table.add(entity("p", f"{position:02}"))
    before = table.query().body
    parts = run(table.client, *(insert(table, entity("p", f"{row:02}")) for row in range(100)))
    assert [part.rejection[:3] for part in parts] == [(409, "EntityAlreadyExists", position)]
    assert table.query().body == before


def test_a_tag_from_before_the_batch_is_stale_after_it(table: Table) -> None:
    tag = table.insert(entity("p", "r", A=1)).expect(201).etag
    change = operation("MERGE", url(table, table.at("p", "r")), {"B": 2}, If_Match=tag)
    assert run(table.client, change)[0].status == 204
    assert run(table.client, change)[0].rejection[:2] == (412, "UpdateConditionNotSatisfied")


@pytest.mark.unverified
@pytest.mark.parametrize(("value", "code"), [("1B2M2Y8AsgTpgAmY7PhCfg==", "Md5Mismatch"), ("x", "InvalidMd5")])
def test_the_md5_of_an_operation_is_that_of_its_body(table: Table, value: str, code: str) -> None:
    text = json.dumps(entity("p", "2"))
    right = base64.b64encode(hashlib.md5(text.encode(), usedforsecurity=False).digest()).decode()
    first = insert(table, entity("p", "1"))
    (part,) = run(table.client, first, operation("POST", url(table), text, Content_MD5=value))
    assert part.rejection[:3] == (400, code, 1)
    assert table.page().rows == []
    parts = run(table.client, first, operation("POST", url(table), text, Content_MD5=right))
    assert [part.status for part in parts] == [204, 201]
