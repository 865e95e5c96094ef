"""`lazulite export` and `lazulite import` with a server, and what it gives back."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import lazulite.testing
from lazulite.cli import main
from lazulite.transfer.http_client import HttpClient, Response, TransferError
from lazulite.transfer.table_client import Query, TableClient
from lazulite.transfer.values import Entity, canonical

from .entities import EVERY_TYPE, entity, typed

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(name="storage", scope="module")
def _storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as running:
        yield running


@pytest.fixture
def run(storage: lazulite.testing.Storage, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: object) -> tuple[int, str, str]:
        code = main([*map(str, arguments), "--table-port", str(storage.port)])
        return code, *capsys.readouterr()

    return command


def written(path: Path, entities: Sequence[Entity]) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in entities), encoding="ascii")
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_type_goes_out_and_in_again(ending: str, run: Run, tmp_path: Path) -> None:
    keys = ("a'b %c", "ü=,+")
    whole, empty = entity(EVERY_TYPE, keys), entity({}, ("", ""))
    given = written(tmp_path / "given.jsonl", [empty, whole])
    names = [f"{name}{ending}" for name in ("First", "Second")]
    assert run("import", names[0], given)[1].splitlines()[-2:] == ["rows       2", "failed     0"]
    file = tmp_path / f"file.{ending}"
    code, printed, _ = run("export", names[0], "-o", file)
    assert code == 0
    assert printed.startswith(f"{names[0]}: 2 rows, 0.0 MiB")
    assert run("import", names[1], file, "--mode", "merge")[0] == 0
    assert run("export", names[1], "-o", tmp_path / "back.jsonl")[0] == 0
    back = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text(encoding="ascii").splitlines()]
    assert [canonical(each) for each in back] == [canonical(empty), canonical(whole)]


def test_a_part_of_a_table_is_exported(run: Run, tmp_path: Path) -> None:
    rows = [entity({"N": (None, at), "T": (None, "x")}, (f"p{at}", "r")) for at in range(9)]
    rows += [entity({"Other": (None, 1)}, ("p4", "z"))]
    run("import", "Part", written(tmp_path / "part.jsonl", rows))
    selected = ("--start-partition", "p3", "--end-partition", "p5", "--select", "N")
    code, printed, said = run("export", "Part", *selected, "--format", "csv")
    assert (code, said) == (0, "")
    assert printed.splitlines() == [
        "PartitionKey,RowKey,N,N@type",
        "p3,r,3,Int32",
        "p4,r,4,Int32",
        "p4,z,,",
        "p5,r,5,Int32",
    ]
    code, printed, _ = run("export", "Part", "--filter", "N gt 4 or N lt 1", "--end-partition", "p5")
    assert [json.loads(line)["PartitionKey"] for line in printed.splitlines()] == ["p0", "p5"]
    code, printed, said = run("export", "Part", "--json")
    assert json.loads(said)["rows"] == 10, "the summary does not stand among the rows"


def test_bad_rows_stand_in_a_report_and_the_others_are_stored(run: Run, tmp_path: Path) -> None:
    good = entity({"N": (None, 1)}, ("p", "1"))
    bad = entity({"N": typed("Guid", "no")}, ("p", "2"))
    path = written(tmp_path / "rows.jsonl", [good, bad, entity({}, ("p", "3"))])
    assert run("import", "Bad", path) == (
        1,
        "created    Bad\ntable      Bad\nrows       2\nfailed     1\n",
        "lazulite: row 2: InvalidInput: An error occurred while processing this request.\n"
        f"lazulite: 1 rows are not stored; {path}.errors.jsonl has the reasons\n",
    )
    (line,) = Path(f"{path}.errors.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["row"] == 2
    code, printed, said = run("import", "Bad", path, "--json", "--errors", tmp_path / "errors")
    assert (code, json.loads(printed)) == (1, {"table": "Bad", "rows": 0, "failed": 3, "ok": False})
    assert [json.loads(each)["event"] for each in said.splitlines()] == ["note"] * 3 + ["error"]
    assert (tmp_path / "errors").read_text(encoding="utf-8").count("EntityAlreadyExists") == 2


def test_a_preview_shows_types_and_stores_nothing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("PartitionKey,RowKey,Zip,Age\nOslo,,0150,41\nOslo,2,0151,x\n", encoding="ascii")
    assert run("import", "People", path, "--dry-run", "--type", "Age=Int32", "--row-keys", "number") == (
        0,
        "PartitionKey: String\nRowKey: String\nZip: String\nAge: Int32\n"
        'row 1: {"PartitionKey": "Oslo", "RowKey": "0000000001", "Zip": "0150", "Age": 41}\n'
        "row 2: Age: 'x' is no Int32\n",
        "",
    )
    assert run("table", "query", "People")[0] == 1, "there is no table"
    assert run("import", "People", path, "--type", "Age=Nope")[0] == 2


def test_a_connection_string_in_a_file_names_the_account(
    storage: lazulite.testing.Storage, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "account.txt"
    file.write_text(storage.connection_string, encoding="ascii")
    code, _, said = run("export", "Nope", "--from", f"file:{file}")
    assert (code, "TableNotFound" in said) == (1, True)
    assert "sig=" not in said


class Pages:
    """Answers of a service, in place of a connection."""

    endpoint = "http://table"

    def __init__(self, *answers: tuple[list[Entity], dict[str, str]]) -> None:
        self.answers = list(answers)
        self.queries: list[str] = []

    async def send(self, method: str, path: str, query: str = "", *_: object) -> Response:
        self.queries.append(query)
        entities, headers = self.answers.pop(0)
        return Response(200, headers, json.dumps({"value": entities}).encode())


def test_empty_pages_with_a_token_are_no_end() -> None:
    more = {"x-ms-continuation-nextpartitionkey": "a b", "x-ms-continuation-nextrowkey": "c"}
    pages = Pages(([], more), ([], more), ([{"A": None, "B": 1, "odata.etag": "x"}], {}))

    async def read() -> list[list[Entity]]:
        client = TableClient(pages)
        return [page async for page in client.pages("T", Query("A eq 1", ["A", "B"]))]

    assert asyncio.run(read()) == [[], [], [{"B": 1}]]
    assert pages.queries[1] == f"{pages.queries[0]}&NextPartitionKey=a%20b&NextRowKey=c"
    assert pages.queries[0] == "$filter=%28A%20eq%201%29&$select=PartitionKey%2CRowKey%2CA%2CB"


async def answers_of(client: Callable[[HttpClient], object], *answers: bytes | None) -> object:
    """Return what a client of a server gets that gives these answers, one for each request; None: it closes."""
    left = list(answers)
    serving: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        while left:
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            answer = left.pop(0)
            if answer is None:
                break
            writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        try:
            async with HttpClient(f"http://127.0.0.1:{port}/a", lambda: "sig=secret") as http:
                return await client(http)  # type: ignore[misc]
        finally:
            await asyncio.gather(*filter(None, serving), return_exceptions=True)


async def get(http: HttpClient) -> tuple[int, bytes, bool]:
    response = await http.send("GET", "T")
    return response.status, response.body, response.was_retried


async def twice(http: HttpClient) -> bytes:
    return (await get(http))[1] + (await get(http))[1]


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\n\r\n"
BUSY = b"HTTP/1.1 503 Server Busy\r\nContent-Length: 0\r\n\r\n"


def test_answers_are_read_in_both_framings_and_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lazulite.transfer.http_client.RETRY_SECONDS", (0, 0))
    assert asyncio.run(answers_of(get, CHUNKED)) == (200, b"abcde", False)
    assert asyncio.run(answers_of(get, BUSY, None, OK + b"a")) == (200, b"a", True)
    assert asyncio.run(answers_of(twice, OK + b"a", None, OK + b"b")) == b"ab", "the connection was closed while idle"
    with pytest.raises(TransferError, match=r"no response from http://127\.0\.0\.1:") as caught:
        asyncio.run(answers_of(get, BUSY, BUSY, b"nonsense\r\n\r\n"))
    assert "secret" not in str(caught.value)
    with pytest.raises(TransferError):
        asyncio.run(answers_of(get, None, OK + b"a"))  # A server that never answered is not asked again.
    for long in (b"Content-Length: 99999999999", b"Content-Length: -1", b"X: " + b"x" * (64 << 10)):
        with pytest.raises(TransferError):
            asyncio.run(answers_of(get, *[b"HTTP/1.1 200 OK\r\n" + long + b"\r\n\r\n"] * 3))
