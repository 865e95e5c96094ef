"""`lazulite table`: the tables of a running server, for people."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from azure.data.tables import TableServiceClient

import lazulite.testing
from lazulite.cli import main
from lazulite.cli.service_client import ServiceClient

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as running:
        yield running


@pytest.fixture
def run(storage: lazulite.testing.Storage, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command for the development account."""

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["table", *arguments, "--table-port", str(storage.port)])
        return code, *capsys.readouterr()

    return command


def entity(partition_key: str, row_key: str, **properties: Any) -> str:
    return json.dumps({"PartitionKey": partition_key, "RowKey": row_key, **properties})


def test_tables_are_created_listed_and_deleted_once_that_is_confirmed(run: Run) -> None:
    assert run("ls") == (0, "", "")
    for name in ("Orders", "Customers"):
        assert run("create", name) == (0, "", "")
    code, _, err = run("create", "orders")
    assert code == 1
    assert err.endswith("rejects the request: TableAlreadyExists: The table specified already exists.\n")
    assert run("ls") == (0, "Customers\nOrders\n", "")
    assert run("rm", "Orders") == (2, "", "lazulite: pass --yes to delete the table Orders with all its entities\n")
    assert run("rm", "Orders", "--yes") == (0, "", "")
    assert run("ls") == (0, "Customers\n", "")


@pytest.mark.parametrize("keys", [("2026-11", "0001"), ("", ""), ("it's", "100% é & (x),=+ y")])
def test_an_entity_of_any_key_is_put_got_and_deleted(keys: tuple[str, str], run: Run) -> None:
    run("create", "Orders")
    sent: dict[str, Any] = {"Total": 12.5, "Big": "5", "Big@odata.type": "Edm.Int64", "Text": "ünïcode"}
    assert run("put", "Orders", entity(*keys, **sent)) == (0, "", "")
    code, out, err = run("get", "Orders", *keys)
    assert (code, err) == (0, "")
    got = json.loads(out)
    assert {name: got[name] for name in sent} == sent
    assert (got["PartitionKey"], got["RowKey"]) == keys
    assert run("put", "Orders", entity(*keys, Total=1)) == (0, "", "")
    assert "Big" not in json.loads(run("get", "Orders", *keys)[1]), "it is replaced"
    assert run("rm", "Orders", *keys) == (0, "", "")
    code, _, err = run("get", "Orders", *keys)
    assert code == 1
    assert err.endswith("rejects the request: ResourceNotFound: The specified resource does not exist.\n")


def test_what_a_query_prints_can_be_put(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Orders", "Copies"):
        run("create", name)
    for number in range(5):
        run("put", "Orders", entity("p", str(number), Total=number, When="2026-11-27T10:00:00Z"))
    code, out, _ = run("query", "Orders", "--filter", "Total ge 2")
    assert code == 0
    assert [json.loads(line)["RowKey"] for line in out.splitlines()] == ["2", "3", "4"]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{out}\n"))
    assert run("put", "Copies", "-") == (0, "", "")
    copied = [json.loads(line) for line in run("query", "Copies")[1].splitlines()]
    assert [(each["RowKey"], each["Total"], each["When"]) for each in copied] == [
        (str(number), number, "2026-11-27T10:00:00Z") for number in (2, 3, 4)
    ]
    assert run("query", "Orders", "--select", "Total", "--top", "2")[1].splitlines() == ['{"Total": 0}', '{"Total": 1}']


def test_a_query_and_a_list_have_all_pages(
    run: Run, storage: lazulite.testing.Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TableServiceClient.from_connection_string(storage.connection_string) as service:
        table = service.create_table("Many")
        rows = [{"PartitionKey": "é", "RowKey": f"{row:03}"} for row in range(50)]
        table.submit_transaction([("create", each) for each in rows])
        for number in range(7):
            service.create_table(f"Tab{number}")
    send = ServiceClient.send

    def paged(self: ServiceClient, method: str, path: str, given: dict[str, str], *others: Any) -> object:
        return send(self, method, path, {**given, "$top": "7" if path == "Many()" else "3"}, *others)

    monkeypatch.setattr(ServiceClient, "send", paged)
    assert [json.loads(line)["RowKey"] for line in run("query", "Many")[1].splitlines()] == [
        row["RowKey"] for row in rows
    ]
    assert len(run("query", "Many", "--top", "13")[1].splitlines()) == 13
    assert run("ls")[1].split() == ["Many", *(f"Tab{number}" for number in range(7))]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("put", "T", "nonsense"), 2, "an entity is a line of JSON, an object with PartitionKey and RowKey"),
        (("put", "T", "[1]"), 2, "an entity is a line of JSON"),
        (("put", "T", '{"PartitionKey": "a"}'), 2, "an entity is a line of JSON"),
        (("rm", "T", "a"), 2, "an entity is named by its PartitionKey and its RowKey"),
        (("query", "Missing"), 1, "rejects the request: TableNotFound: The table specified does not exist."),
        (("create", "a-b"), 1, "rejects the request: InvalidResourceName: "),
    ],
)
def test_rejections_are_one_line(arguments: tuple[str, ...], code: int, said: str, run: Run) -> None:
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1
