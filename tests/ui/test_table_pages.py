"""Tables in the explorer, over its own listener, looked at with the official SDK afterwards."""

import asyncio
import datetime as dt
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty, TableAccessPolicy, TableClient, TableServiceClient, UpdateMode

import lazulite.testing
from lazulite.ui.tables import reader, transfers
from lazulite.ui.tables.import_preview import PREVIEW_BYTES_MAX
from tests.ui.explorer import Client, Seen, ended, explorer

BIG = -(2**63) + 1


@pytest.fixture(scope="module")
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as found:
        found.account("other")
        yield found


@pytest.fixture(scope="module")
def client(storage: lazulite.testing.Storage) -> Iterator[Client]:
    with explorer(storage) as link:
        yield Client(link)


@pytest.fixture
def table(storage: lazulite.testing.Storage, request: pytest.FixtureRequest) -> Iterator[TableClient]:
    with TableServiceClient.from_connection_string(storage.connection_string) as service:
        yield service.create_table(f"T{abs(hash(request.node.name)) % 10**9}")


def url(table: TableClient, page: str = "", **query: str) -> str:
    query = {name.rstrip("_"): value for name, value in query.items()}
    return f"/devstoreaccount1/tables/{table.table_name}{page}?{urlencode(query)}"


def fill(table: TableClient, count: int, partition: str = "p") -> None:
    for start in range(0, count, 100):
        rows = [{"PartitionKey": partition, "RowKey": f"{n:04}", "N": n} for n in range(start, min(start + 100, count))]
        table.submit_transaction([("upsert", row) for row in rows])


def test_tables_are_listed_created_and_deleted_together(client: Client) -> None:
    path = "/devstoreaccount1/tables"
    for name in ("Made1", "Made2"):
        assert client.post(f"{path}?do=create", {"name": name}).location == f"{path}/{name}"
    assert client.json(f"{path}?prefix=Made")["names"] == ["Made1", "Made2"]
    body = f"csrf={client.csrf}&table=Made1&table=Made2&confirm={{}}"
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": client.origin}
    assert client.send("POST", f"{path}?do=delete", headers, body.format(1).encode()).status == 400
    assert client.send("POST", f"{path}?do=delete", headers, body.format(2).encode()).status == 303
    assert client.json(f"{path}?prefix=Made")["names"] == []


def test_a_page_shows_the_union_of_columns_and_tells_missing_from_empty(client: Client, table: TableClient) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "1", "A": "", "N": EntityProperty(BIG, EdmType.INT64)})
    table.create_entity({"PartitionKey": "p", "RowKey": "2", "A": "<b>", "Late": b"ab"})
    found = client.json(url(table))
    assert [(each["name"], each["types"]) for each in found["columns"]] == [
        ("A", ["String"]),
        ("N", ["Int64"]),
        ("Late", ["Binary"]),
    ]
    cells = [[cell["state"] for cell in row["cells"]] for row in found["rows"]]
    assert cells == [["empty", "value", "missing"], ["value", "missing", "value"]]
    assert found["rows"][0]["cells"][1]["text"] == str(BIG)
    assert "table scan · 2 rows read · 2 returned" in found["found"]["plan"]
    html = client.get(url(table)).text
    assert "&lt;b&gt;" in html
    assert "<b>\n" not in html
    chosen = client.json(url(table, columns="Late,Gone"))
    assert [each["name"] for each in chosen["shown"]] == ["Late", "Gone"]


def test_an_int64_beyond_a_double_is_filtered_exactly(client: Client, table: TableClient) -> None:
    for number in range(3):
        table.create_entity(
            {"PartitionKey": "p", "RowKey": str(number), "N": EntityProperty(BIG + number, EdmType.INT64)}
        )
    fields = {"property": "N", "operator": "=", "type": "Int64", "text": str(BIG + 1), "joined_by": "and"}
    built = client.post(url(table, do="build"), fields)
    found = client.json(built.location)
    assert [row["row"] for row in found["rows"]] == ["1"]
    assert found["filter"] == f"N eq {BIG + 1}L"
    assert found["builder"]["conditions"][0]["text"] == str(BIG + 1)


def test_pages_follow_by_tokens_and_count_what_was_seen(client: Client, table: TableClient) -> None:
    fill(table, 250)
    first = client.json(url(table))
    second = client.json(url(table, next=first["next"], seen=str(first["seen"])))
    third = client.json(url(table, next=second["next"], seen=str(second["seen"])))
    assert [len(each["rows"]) for each in (first, second, third)] == [100, 100, 50]
    assert (third["seen"], third["next"]) == (250, "")
    assert client.get(url(table, next="x")).status == 400


def test_a_condition_of_the_page_searches_on_and_says_how_far(
    client: Client, table: TableClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(table, 1500)
    found = client.json(url(table, where="ends with", text="1499", in_="RowKey"))
    assert ([row["row"] for row in found["rows"]], found["read"], found["next"]) == (["1499"], 1500, "")
    monkeypatch.setattr(reader, "SEARCH_SECONDS", 0.0)
    found = client.json(url(table, where="ends with", text="1499", in_="RowKey"))
    assert (found["rows"], found["read"], bool(found["next"])) == ([], 1000, True)
    assert "Go on searching" in client.get(url(table, where="ends with", text="1499", in_="RowKey")).text


def test_a_filter_that_the_service_rejects_is_told_in_its_words(client: Client, table: TableClient) -> None:
    seen = client.get(url(table, filter="A eq"))
    assert seen.status == 200
    assert "Expression expected" in seen.text
    wrong = client.get(url(table, filter="// what is asked\nA eq 5\n<b> xyz")).text
    assert "<pre>A eq 5 <mark>&lt;b&gt;</mark> xyz</pre>" in wrong


def entity_form(**fields: str) -> dict[str, str]:
    return {"partition": "p", "row": "r", "etag": "", **fields}


def save(
    client: Client, path: str, keys: dict[str, str], properties: list[tuple[str, str, str]], *removed: str
) -> Seen:
    pairs = [("csrf", client.csrf), *keys.items(), *(("remove", name) for name in removed)]
    for name, type_name, text in properties:
        pairs += [("name", name), ("type", type_name), ("text", text)]
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": client.origin}
    return client.send("POST", path, headers, urlencode(pairs).encode())


ALL_TYPES = [
    ("S", "String", "a\r\nb"),
    ("E", "String", ""),
    ("I", "Int32", "-5"),
    ("L", "Int64", str(BIG)),
    ("D", "Double", "0.1"),
    ("B", "Boolean", "true"),
    ("T", "DateTime", "2026-11-28T09:30:00.1234567Z"),
    ("G", "Guid", "01234567-89ab-cdef-0123-456789abcdef"),
    ("X", "hex", "6162"),
    ("C", "String as JSON", '"\\u0001"'),
]


def test_all_types_are_inserted_changed_and_removed_without_loss(client: Client, table: TableClient) -> None:
    assert save(client, url(table, "/new", do="save"), entity_form(), ALL_TYPES).status == 303
    stored = table.get_entity("p", "r")
    assert (stored["S"], stored["E"], stored["I"], stored["L"].value, stored["D"]) == ("a\nb", "", -5, BIG, 0.1)
    assert (stored["B"], stored["G"], stored["X"], stored["C"]) == (True, UUID(ALL_TYPES[7][2]), b"ab", "\x01")
    assert stored["T"].tables_service_value == ALL_TYPES[6][2]
    shown = client.json(url(table, "/entity", pk="p", rk="r"))
    fields = [(each["name"], each["type"], each["text"]) for each in shown["fields"]]
    form = entity_form(etag=shown["etag"])
    changed = [*fields, ("New", "Int64", "9007199254740993")]
    assert save(client, url(table, "/entity", pk="p", rk="r", do="save"), form, changed, "I").status == 303
    again = table.get_entity("p", "r")
    assert again["New"].value == 9007199254740993
    assert "I" not in again
    assert {name: again[name] for name in again if name not in ("New",)} == {
        name: stored[name] for name in stored if name != "I"
    }


def test_both_versions_are_shown_when_somebody_was_faster(client: Client, table: TableClient) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "A": "old", "Same": 1})
    shown = client.json(url(table, "/entity", pk="p", rk="r"))
    table.update_entity(
        {"PartitionKey": "p", "RowKey": "r", "A": "theirs", "Same": 1, "More": "x"}, mode=UpdateMode.REPLACE
    )
    mine = [("A", "String", "mine"), ("Same", "Int32", "1")]
    path = url(table, "/entity", pk="p", rk="r", do="save")
    seen = save(client, path, entity_form(etag=shown["etag"]), mine)
    assert seen.status == 412
    assert "theirs (String)" in seen.text
    assert "mine" in seen.text
    assert "yours lacks it" in seen.text
    assert table.get_entity("p", "r")["A"] == "theirs"
    etag = client.json(url(table, "/entity", pk="p", rk="r"))["etag"]
    assert save(client, path, entity_form(etag=etag), mine).status == 303
    assert table.get_entity("p", "r")["A"] == "mine"
    table.delete_entity("p", "r")
    assert save(client, path, entity_form(etag=etag), mine).status == 409


def test_what_fits_no_type_is_told_beside_it(client: Client, table: TableClient) -> None:
    seen = save(client, url(table, "/new", do="save"), entity_form(), [("N", "Int32", "many")])
    assert seen.status == 400
    assert "is no Int32" in seen.text
    assert list(table.list_entities()) == []
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    seen = save(client, url(table, "/new", do="save"), entity_form(), [])
    assert (seen.status, "EntityAlreadyExists" in seen.text) == (409, True)


def test_a_copy_begins_with_the_properties(client: Client, table: TableClient) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "A": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)})
    found = client.json(url(table, "/new", pk="p", rk="r"))
    assert [(each["name"], each["type"]) for each in found["fields"]] == [("A", "DateTime")]
    assert found["etag"] == ""


def test_a_binary_is_downloaded_as_a_file_that_nothing_runs(client: Client, table: TableClient) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "Raw": b"<script>"})
    seen = client.post(url(table, "/entity", pk="p", rk="r", do="download"), {"property": "Raw"})
    assert seen.text == "<script>"
    assert seen.headers["content-disposition"] == 'attachment; filename="Raw.bin"'
    assert "sandbox" in seen.headers["content-security-policy"]


def test_selected_rows_are_deleted_as_they_were_shown(client: Client, table: TableClient) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    (row,) = client.json(url(table))["rows"]
    table.update_entity({"PartitionKey": "p", "RowKey": "r", "A": 1})
    selected = json.dumps(["p", "r", row["etag"]])
    assert client.post(url(table, do="delete-rows"), {"row": selected}).status == 412
    (row,) = client.json(url(table))["rows"]
    assert client.post(url(table, do="delete-rows"), {"row": json.dumps(["p", "r", row["etag"]])}).status == 303
    assert list(table.list_entities()) == []


def test_all_found_rows_are_counted_changed_copied_and_deleted_by_jobs(client: Client, table: TableClient) -> None:
    fill(table, 230, "a")
    fill(table, 120, "b")
    name, found_b = table.table_name, {"filter": "PartitionKey eq 'b' and N lt 110"}
    counted = ended(client, client.post(url(table, do="count")))
    assert counted["lines"] == ["350 rows in 2 partitions"]
    assert client.post(url(table, do="set", **found_b), {"property": "M", "type": "Int64", "text": "7"}).status == 400
    fields = {"property": "M", "type": "Int64", "text": str(BIG), "confirm": name}
    assert ended(client, client.post(url(table, do="set", **found_b), fields))["done"] == 110
    assert {row["M"].value for row in table.query_entities("PartitionKey eq 'b' and N lt 110")} == {BIG}
    removed = ended(client, client.post(url(table, do="remove", filter="N lt 5"), {"property": "M", "confirm": name}))
    assert (removed["done"], removed["lines"]) == (5, ["5 rows needed no change"])
    copied = ended(client, client.post(url(table, do="copy", **found_b), {"account": "other", "name": "Copied"}))
    assert (copied["done"], copied["result"]) == (110, "/other/tables/Copied")
    assert len(client.json("/other/tables/Copied?size=250")["rows"]) == 110
    deleted = ended(client, client.post(url(table, do="delete-found", filter="N ge 100"), {"confirm": name}))
    assert (deleted["done"], deleted["failed"]) == (150, 0)
    assert sum(1 for _ in table.list_entities()) == 200


def test_a_row_that_changes_meanwhile_is_left_and_reported(
    client: Client, table: TableClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(table, 3)
    original = reader.read_page

    async def and_change(*args: Any) -> Any:
        found = await original(*args)
        row = {"PartitionKey": "p", "RowKey": "0001", "A": 1}
        await asyncio.to_thread(table.update_entity, row)
        return found

    monkeypatch.setattr(reader, "read_page", and_change)
    job = ended(client, client.post(url(table, do="delete-found"), {"confirm": table.table_name}))
    monkeypatch.undo()
    assert (job["done"], job["failed"]) == (3, 1)
    assert "UpdateConditionNotSatisfied" in job["lines"][0]
    assert [row["RowKey"] for row in table.list_entities()] == ["0001"]


def test_a_table_is_emptied_at_once_and_keeps_its_policies(client: Client, table: TableClient) -> None:
    fill(table, 10)
    table.set_table_access_policy({"reader": TableAccessPolicy(permission="r")})
    assert client.post(url(table, do="empty"), {"confirm": "other"}).status == 400
    assert client.post(url(table, do="empty"), {"confirm": table.table_name}).status == 303
    assert list(table.list_entities()) == []
    assert list(table.get_table_access_policy()) == ["reader"]
    assert client.post(url(table, do="drop"), {"confirm": table.table_name}).status == 303
    assert client.get(url(table)).status == 404


@pytest.mark.parametrize("format_name", ["csv", "jsonl", "parquet"])
def test_found_rows_travel_in_a_file_and_come_back_as_they_were(
    client: Client, table: TableClient, storage: lazulite.testing.Storage, format_name: str
) -> None:
    assert save(client, url(table, "/new", do="save"), entity_form(), ALL_TYPES).status == 303
    fill(table, 120, "q")
    fields = {"format": format_name, "columns": "all", "guard": "no"}
    started = client.post(url(table, do="export", filter="PartitionKey eq 'p' or N lt 110"), fields)
    job = ended(client, started)
    assert (job["done"], job["file_name"]) == (111, f"{table.table_name}.{format_name}")
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": client.origin}
    form = f"csrf={client.csrf}".encode()
    file = client.send_bytes("POST", f"{started.location}?do=download", headers, form)
    path = f"/devstoreaccount1/tables/Back{format_name}/import?do=import&format={format_name}&mode=insert"
    sent = {"Content-Type": "application/octet-stream", "Origin": client.origin, "X-CSRF-Token": client.csrf}
    for expected_failed in (0, 111):
        answer = client.send("POST", path, sent, file)
        assert answer.status == 200, answer.text
        job = ended(client, Seen(303, answer.json(), ""))
        assert (job["done"], job["failed"], job["state"]) == (111 - expected_failed, expected_failed, "done")
    with TableServiceClient.from_connection_string(storage.connection_string) as service:
        back = service.get_table_client(f"Back{format_name}")
        assert back.get_entity("p", "r") == table.get_entity("p", "r")
        assert sum(1 for _ in back.list_entities()) == 111
        service.delete_table(f"Back{format_name}")


def test_a_file_that_is_none_of_its_format_is_told(client: Client, table: TableClient) -> None:
    sent = {"Content-Type": "application/octet-stream", "Origin": client.origin, "X-CSRF-Token": client.csrf}
    answer = client.send("POST", url(table, "/import", do="import", format="jsonl"), sent, b"no json\n")
    job = ended(client, Seen(303, answer.json(), ""))
    assert (job["done"], job["failed"]) == (0, 1)
    assert job["file_name"] == f"{table.table_name}.errors.jsonl"


def test_rows_that_are_not_stored_are_a_file_with_reasons(
    client: Client, table: TableClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create_entity({"PartitionKey": "p", "RowKey": "é"})
    rows = [{"PartitionKey": "p", "RowKey": "é"}, {"PartitionKey": "p"}, {"PartitionKey": "p", "RowKey": "new"}]
    file = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    sent = {"Content-Type": "application/octet-stream", "Origin": client.origin, "X-CSRF-Token": client.csrf}
    for bytes_max, count in ((transfers.FAILED_BYTES_MAX, 2), (150, 1)):
        monkeypatch.setattr(transfers, "FAILED_BYTES_MAX", bytes_max)
        answer = client.send("POST", url(table, "/import", do="import", format="jsonl", mode="insert"), sent, file)
        location = answer.json()["location"]
        job = ended(client, Seen(303, answer.json(), ""))
        assert job["done"] + job["failed"] == 3
        kept = client.post(f"{location}?do=download")
        assert kept.headers["content-disposition"] == f'attachment; filename="{table.table_name}.errors.jsonl"'
        assert kept.headers["content-security-policy"] == "sandbox"
        lines = [json.loads(line) for line in kept.text.splitlines()]
        assert len(lines) == count
        assert all(each.keys() >= {"row", "reason"} for each in lines)
        assert f"Download {job['file_name']}" in client.get(location).text
    assert f"{job['file_name']} has the rows that were not stored: the first 1" in job["lines"]


def test_the_first_rows_of_a_file_are_shown_and_nothing_is_stored(client: Client, table: TableClient) -> None:
    sent = {"Content-Type": "application/octet-stream", "Origin": client.origin, "X-CSRF-Token": client.csrf}
    file = b"PartitionKey,RowKey,Text,N\np,1,<script>alert(1)</script>,5\np,2\n"
    path = url(table, "/import", do="preview", format="csv", mode="replace", size=str(len(file)))
    seen = client.send("POST", path, sent, file)
    assert seen.status == 200
    assert "&lt;script&gt;alert(1)" in seen.text
    assert "<script>alert" not in seen.text
    for text in (
        "The file has 2 rows.",
        "1 of them would be reported",
        "are replaced",
        "Row 2: ",
        f"go into {table.table_name}.",
    ):
        assert text in seen.text, text
    assert list(table.list_entities()) == []
    missing = client.send("POST", path.replace(table.table_name, "Missing"), sent, file)
    assert "The table Missing is created first." in missing.text
    assert client.send("POST", path, sent, b"x" * (PREVIEW_BYTES_MAX + 1)).status == 413
    assert client.send("POST", path, {**sent, "X-CSRF-Token": "x"}, file).status == 403
    assert client.send("POST", url(table, "/import", do="preview", format="xml"), sent, file).status == 400
    assert client.json(url(table, "/import"))["preview"] is None


def test_an_import_of_another_kind_is_refused(client: Client, table: TableClient) -> None:
    sent = {"Content-Type": "application/octet-stream", "Origin": client.origin, "X-CSRF-Token": client.csrf}
    assert client.send("POST", url(table, "/import", do="import", format="xml"), sent, b"").status == 400
    assert client.send("POST", url(table, "/import", do="import"), {**sent, "X-CSRF-Token": "x"}, b"").status == 403
