"""Reference §5.2, §10.4: PartitionKey and RowKey."""

import json

import pytest

from .batches import body, operation, sole_part, submit, url
from .tables import Table, entity, predicate

NEEDED = (400, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")
MISSING = [{"PartitionKey": "p"}, {"RowKey": "r"}, {}, {"PartitionKey": None, "RowKey": "r"}]
MISSING += [{"PartitionKey": "p", "RowKey": None}, {"A": 1}, {"partitionkey": "p", "rowkey": "r"}]
FORBIDDEN = ["/", "\\", "#", "?"]
FORBIDDEN += [chr(code) for code in (0x00, 0x01, 0x09, 0x0A, 0x0D, 0x1F, 0x7F, 0x80, 0x85, 0x9F)]
FINE = [
    "%",
    "+",
    "&",
    "'",
    '"',
    " ",
    ",",
    "=",
    "(",
    ")",
    "{",
    "}",
    "|",
    "^",
    "`",
    "~",
    "<",
    ">",
    "@",
    ":",
    ";",
    "*",
    "!",
]
FINE += ["\u00a0", "é", "日", "😀", "\uff5e", "\ue000", "%20", "%27", "%2F", "''", "\u200b", "e\u0301"]


@pytest.mark.parametrize("content", MISSING, ids=str)
def test_both_are_needed_on_insert(table: Table, content: dict[str, str | None]) -> None:
    assert table.insert(json.dumps(content)).rejection == NEEDED


@pytest.mark.parametrize("char", FORBIDDEN, ids=ascii)
@pytest.mark.parametrize("key", ["PartitionKey", "RowKey"])
def test_forbidden_characters_on_insert(table: Table, key: str, char: str) -> None:
    value = f"a{char}b"
    rejection = table.insert(entity("p", "r") | {key: value}).rejection
    assert rejection[:2] == (400, "OutOfRangeInput")
    assert rejection.message == f"The '{key}' parameter of value '{value}' is out of range."


@pytest.mark.parametrize("char", FORBIDDEN, ids=ascii)
@pytest.mark.parametrize("method", ["PUT", "MERGE", "DELETE", "GET"])
def test_forbidden_characters_in_addresses(shared_table: Table, method: str, char: str) -> None:
    address = shared_table.path + predicate("p", f"a{char}b")
    headers = {"If-Match": "*"} if method == "DELETE" else {}
    body = "{}" if method in {"PUT", "MERGE"} else None
    answer = shared_table.client.send(method, address, headers=headers, body=body)
    assert answer.status in {400, 404}
    assert answer.status == 400 or method in {"GET", "DELETE"}
    assert shared_table.page("$filter=PartitionKey%20eq%20'p'").rows == []


@pytest.mark.parametrize("text", FINE, ids=ascii)
def test_unusual_key_characters_are_accepted(shared_table: Table, text: str) -> None:
    key = f"a{text}b"
    answer = shared_table.insert(entity(key, text), Prefer="return-no-content").expect(204)
    assert answer.required("Location").startswith(shared_table.client.endpoint.base)
    row = shared_table.get(key, text).expect(200).json()
    assert (row["PartitionKey"], row["RowKey"]) == (key, text)
    prefix = shared_table.client.endpoint.base.rstrip("/")
    again = shared_table.client.send("GET", answer.required("Location").removeprefix(prefix)).expect(200)
    assert again.json()["RowKey"] == text
    shared_table.client.send("DELETE", shared_table.at(key, text), headers={"If-Match": "*"}).expect(204)


@pytest.mark.parametrize(("partition", "row"), [("", ""), ("", "r"), ("p", "")])
def test_empty_keys_are_accepted(table: Table, partition: str, row: str) -> None:
    table.insert(entity(partition, row, A=1)).expect(201)
    assert table.get(partition, row).expect(200).json()["A"] == 1
    table.write("MERGE", table.at(partition, row), {"A": 2}, If_Match="*").expect(204)
    assert len(table.page().rows) == 1
    table.write("DELETE", table.at(partition, row), If_Match="*").expect(204)
    assert table.page().rows == []


@pytest.mark.parametrize("length", [512, 1024])
@pytest.mark.parametrize("char", ["k", "é", "日"])
def test_keys_of_1024_characters_are_accepted(table: Table, length: int, char: str) -> None:
    key = char * length
    table.insert(entity(key, key), Prefer="return-no-content").expect(204)
    assert [row["RowKey"] for row in table.page().rows] == [key]
    table.get(key, key).expect(200)


@pytest.mark.unverified
@pytest.mark.parametrize("key", ["PartitionKey", "RowKey"])
def test_keys_beyond_1024_characters_are_rejected(table: Table, key: str) -> None:
    answer = table.insert(entity("p", "r") | {key: "k" * 1025})
    assert answer.status == 400
    assert answer.rejection.code in {"KeyValueTooLarge", "PropertyValueTooLarge", "OutOfRangeInput", "InvalidInput"}
    assert table.page().rows == []


@pytest.mark.parametrize("value", ["5", "true", "1.5", "{}", "[]"])
@pytest.mark.parametrize("key", ["PartitionKey", "RowKey"])
def test_keys_are_strings(table: Table, key: str, value: str) -> None:
    other = "RowKey" if key == "PartitionKey" else "PartitionKey"
    answer = table.insert(f'{{"{key}":{value},"{other}":"x"}}')
    assert answer.status == 400
    assert answer.rejection.code in {"PrimaryKeyPropertyIsInvalidType", "InvalidInput", "PropertiesNeedValue"}
    assert table.page().rows == []


DECLARED = {
    "Edm.DateTime": "2020-01-01T00:00:00Z",
    "Edm.Guid": "6b3a2b2e-1111-4222-8333-444455556666",
    "Edm.Binary": "AAEC",
    "Edm.Int64": "1234",
    "Edm.Double": "1.5",
    "Edm.Int32": "1234",
}


def declared_keys(key: str, declared: str, *, type_first: bool = True) -> str:
    """A body with the keys of one entity, one of them declared as a type."""
    keys = {"PartitionKey": "p", "RowKey": "r", key: DECLARED.get(declared, "x")}
    annotation, values = {f"{key}@odata.type": declared}, {**keys, "A": 1}
    return json.dumps(annotation | values if type_first else values | annotation)


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("key", ["PartitionKey", "RowKey"])
@pytest.mark.parametrize("type_first", [True, False], ids=["type first", "type last"])
def test_no_insert_with_a_key_of_another_type(table: Table, key: str, declared: str, type_first: bool) -> None:
    text = declared_keys(key, declared, type_first=type_first)
    assert table.insert(text).status == 400
    part = sole_part(submit(table.client, body([operation("POST", url(table), text)])))
    assert part.status == 400
    assert table.page().rows == []


@pytest.mark.unverified
@pytest.mark.parametrize("declared", [*DECLARED, "Edm.Surprise"])
def test_the_code_of_a_key_of_another_type(table: Table, declared: str) -> None:
    assert table.insert(declared_keys("RowKey", declared)).code == (400, "InvalidInput")


@pytest.mark.parametrize("key", ["PartitionKey", "RowKey"])
@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
@pytest.mark.parametrize("condition", [None, "*"])
def test_other_writes_with_a_key_of_another_type(table: Table, key: str, method: str, condition: str | None) -> None:
    for number, declared in enumerate(DECLARED):
        if condition:
            table.add(entity("p", f"{number}"))
        address = table.at("p", f"{number}")
        table.write(method, address, declared_keys(key, declared), If_Match=condition).expect(204)
    rows = table.page().rows
    assert [(row["PartitionKey"], row["RowKey"], row["A"]) for row in rows] == [
        ("p", f"{number}", 1) for number in range(len(DECLARED))
    ]


def test_keys_may_be_declared_as_strings(table: Table) -> None:
    table.insert(
        '{"PartitionKey":"p","PartitionKey@odata.type":"Edm.String","RowKey@odata.type":"Edm.String","RowKey":"r"}'
    ).expect(201)
    assert set(table.get("p", "r", accept="application/json;odata=nometadata").json()) == {
        "PartitionKey",
        "RowKey",
        "Timestamp",
    }


def test_keys_distinguish_case_and_normal_form(table: Table) -> None:
    keys = ["a", "A", "é", "e\u0301", "ss", "ß", "1", "01", " a", "a "]
    table.add(*(entity("p", key) for key in keys))
    assert len(table.page().rows) == len(keys)
    for key in keys:
        assert table.get("p", key).json()["RowKey"] == key


def test_pairs_that_run_together_alike_are_different(table: Table) -> None:
    pairs = [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", ""), ("a\u00a0", "b"), ("a", "\u00a0b")]
    table.add(*(entity(*pair) for pair in pairs))
    assert {(row["PartitionKey"], row["RowKey"]) for row in table.page().rows} == set(pairs)


def test_the_second_insert_conflicts(table: Table) -> None:
    table.add(entity("p", "r", A=1))
    rejection = table.insert(entity("p", "r", A=2)).rejection
    assert rejection == (409, "EntityAlreadyExists", "The specified entity already exists.")
    assert table.get("p", "r").json()["A"] == 1


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
def test_keys_may_be_left_out_of_updates(table: Table, method: str) -> None:
    table.write(method, table.at("p", "r"), {"A": 1}).expect(204)
    table.write(method, table.at("p", "r"), entity("p", "r", A=2)).expect(204)
    assert table.get("p", "r").json()["A"] == 2


@pytest.mark.unverified
@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
def test_keys_that_differ_from_the_address_are_ignored_or_rejected(table: Table, method: str) -> None:
    answer = table.write(method, table.at("p", "r"), entity("p", "other", A=1))
    assert answer.status in {204, 400}
    assert [row["RowKey"] for row in table.page().rows] == (["r"] if answer.status == 204 else [])
