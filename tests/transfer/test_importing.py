"""What is sent in which transactions, what a bad row costs, and where an import goes on."""

import asyncio
import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from lazulite.transfer import importing
from lazulite.transfer.exporting import TransferProgress
from lazulite.transfer.http_client import TransferError, UnavailableError
from lazulite.transfer.importing import Checkpoint, FailedRow, Importer, RowKeys
from lazulite.transfer.inputs import ChangedInputError, InputLines
from lazulite.transfer.json_lines import JsonLinesReader
from lazulite.transfer.table_client import Mode, PreparedRow, RejectedError, TableClient
from lazulite.transfer.values import Entity

from .entities import entity


class Table:
    """A table in memory, in place of one at an endpoint."""

    endpoint = "http://table"

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], Entity] = {}
        self.bad: set[str] = set()
        """The RowKeys that it rejects."""
        self.fails_at: int | None = None
        """The commit that ends the connection, before or behind what it stores."""
        self.stores_before_failing = False
        self.commits: list[Sequence[PreparedRow]] = []
        self.at_once: Counter[int] = Counter()
        self._open = 0

    async def commit(self, _: str, rows: Sequence[PreparedRow], mode: Mode) -> None:
        self.commits.append(rows)
        assert len({row.partition_key for row in rows}) == 1
        assert len({row.row_key for row in rows}) == len(rows) <= 100
        self._open += 1
        self.at_once[self._open] += 1
        for _step in range(9):  # As long as the others need to begin.
            await asyncio.sleep(0)
        self._open -= 1
        fails = self.fails_at is not None and len(self.commits) >= self.fails_at
        if fails and not self.stores_before_failing:
            raise UnavailableError("the server is gone")
        for index, row in enumerate(rows):
            if row.row_key in self.bad:
                raise RejectedError(400, "InvalidInput", "no", index, was_retried=False)
            if mode is Mode.INSERT and (row.partition_key, row.row_key) in self.stored:
                raise RejectedError(409, "EntityAlreadyExists", "", index if len(rows) > 1 else None, was_retried=False)
        for row in rows:
            self.stored[row.partition_key, row.row_key] = json.loads(row.body)
        if fails:
            raise UnavailableError("the server is gone")

    async def get(self, _: str, row: PreparedRow) -> Entity | None:
        return self.stored.get((row.partition_key, row.row_key))


def lines(keys: Sequence[tuple[str, str]]) -> bytes:
    rows = [entity({"N": (None, number)}, each) for number, each in enumerate(keys)]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


class Run:
    """Imports with what a test chooses."""

    def __init__(self, table: Table, checkpoint: Path | None = None) -> None:
        self.table, self.checkpoint = table, checkpoint
        self.failed: list[FailedRow] = []
        self.importer: Importer | None = None

    def __call__(self, data: bytes, mode: Mode = Mode.REPLACE, row_keys: str = "") -> TransferProgress:
        seconds = iter(range(10**6))
        self.importer = Importer(
            cast("TableClient", self.table),
            "T",
            mode,
            row_keys=RowKeys(row_keys),
            checkpoint=Checkpoint(self.checkpoint, {"to": "T", "mode": mode}),
            fail=self.failed.append,
            report=lambda _: None,
            timer=lambda: float(next(seconds)),
        )
        return asyncio.run(self.importer.run(JsonLinesReader(InputLines.of_file(io.BytesIO(data)))))


def test_rows_are_grouped_by_partition_and_several_partitions_are_sent_at_once() -> None:
    table = Table()
    keys = [(f"p{number % 7}", f"{number}") for number in range(2100)]
    progress = Run(table)(lines(keys))
    assert (progress.done, progress.failed, progress.size_bytes) == (2100, 0, len(lines(keys)))
    assert [len(rows) for rows in table.commits] == [100] * 21
    assert set(table.stored) == set(keys)
    assert max(table.at_once) == importing.CONNECTIONS


def test_of_equal_keys_the_last_row_wins_and_no_transaction_has_two() -> None:
    table = Table()
    keys = [("p", str(number % 3)) for number in range(50)]
    assert Run(table)(lines(keys)).done == 50
    assert {key[1]: stored["N"] for key, stored in table.stored.items()} == {"2": 47, "0": 48, "1": 49}


def test_few_rows_wait_however_many_partitions_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "WAITING_ROWS_MAX", 50)
    table = Table()
    run = Run(table)
    data = lines([("lonely", "0"), *((f"p{number // 2}", str(number)) for number in range(1000))])
    assert run(data).done == 1001
    assert table.commits[0][0].partition_key == "lonely", "the oldest ones go first"
    sent = [row.number for rows in table.commits for row in rows]
    assert max(number - at for at, number in enumerate(sent)) <= 51


def test_large_rows_make_small_transactions() -> None:
    table = Table()
    rows = [entity({"Text": (None, "x" * 500_000)}, ("p", str(number))) for number in range(10)]
    Run(table)("".join(f"{json.dumps(row)}\n" for row in rows).encode())
    assert [len(rows) for rows in table.commits] == [7, 3]


@pytest.mark.parametrize("bad", [{"5"}, {"5", "6", "7", "8", "50"}, {str(number) for number in range(100)}])
def test_bad_rows_are_told_and_the_others_of_their_transaction_are_stored(bad: set[str]) -> None:
    table = Table()
    table.bad = bad
    run = Run(table)
    progress = run(lines([("p", str(number)) for number in range(100)]))
    assert (progress.done, progress.failed) == (100 - len(bad), len(bad))
    assert {each.keys for each in run.failed} == {("p", key) for key in bad}
    assert run.failed[0].reason == "InvalidInput: no"
    assert json.loads(run.failed[0].line())["RowKey"] == run.failed[0].keys[1]  # type: ignore[index]
    assert len(table.commits) <= 104, "a transaction is not sent once for each bad row"


def test_rows_that_are_none_are_told_with_their_number() -> None:
    run = Run(Table())
    data = b'no\n{"PartitionKey":"p"}\n{"PartitionKey":"p","RowKey":1}\n{"PartitionKey":"p","RowKey":"1","N":1e999}\n'
    assert run(data + lines([("p", "1")])).done == 1
    assert [(each.number, each.reason) for each in run.failed] == [
        (1, "the line is not JSON"),
        (2, "RowKey is missing"),
        (3, "RowKey is no text"),
        (4, "a number is out of range"),
    ]


@pytest.mark.parametrize("kind", ["number", "uuid"])
def test_blank_row_keys_are_filled_and_are_the_same_in_the_next_run(kind: str) -> None:
    data = lines([("p", ""), ("p", "given"), ("p", "")])
    found = []
    for _ in range(2):
        table = Table()
        Run(table)(data, row_keys=kind)
        found.append(list(table.stored))
    assert found[0] == found[1]
    assert len(found[0]) == 3
    assert ("p", "given") in found[0]
    assert ("p", "0000000001") in found[0] or kind == "uuid"


@pytest.mark.parametrize("stores_before_failing", [False, True])
@pytest.mark.parametrize("mode", [Mode.INSERT, Mode.REPLACE])
def test_an_import_goes_on_after_it_was_interrupted(mode: Mode, stores_before_failing: bool, tmp_path: Path) -> None:
    table = Table()
    keys = [(f"p{number // 1000}", str(number)) for number in range(5000)]
    table.fails_at, table.stores_before_failing = 30, stores_before_failing
    run = Run(table, tmp_path / "checkpoint")
    with pytest.raises(TransferError):
        run(lines(keys), mode)
    table.fails_at = None
    commits = len(table.commits)
    run(lines(keys), mode)
    assert run.importer is not None
    assert run.importer.resumed_after >= 2000, "what was stored is not sent again, but for the last rows"
    assert len(table.commits) - commits <= 30 + 2000
    assert (run.failed, set(table.stored)) == ([], set(keys))
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_is_stored_already_with_another_value_fails_after_an_interruption(tmp_path: Path) -> None:
    table = Table()
    keys = [("p", str(number)) for number in range(3000)]
    table.stored["p", "2999"] = entity({"N": (None, "mine")}, ("p", "2999"))
    table.fails_at = 20
    run = Run(table, tmp_path / "checkpoint")
    with pytest.raises(TransferError):
        run(lines(keys), Mode.INSERT)
    table.fails_at = None
    run(lines(keys), Mode.INSERT)
    assert [each.keys for each in run.failed] == [("p", "2999")]
    assert table.stored["p", "2999"]["N"] == "mine"


def test_an_import_goes_on_with_the_same_input_and_options_only(tmp_path: Path) -> None:
    table = Table()
    table.fails_at = 20
    run = Run(table, tmp_path / "checkpoint")
    data = lines([("p", str(number)) for number in range(3000)])
    with pytest.raises(TransferError):
        run(data)
    table.fails_at = None
    with pytest.raises(ChangedInputError, match="has changed since"):
        run(data.replace(b'"N": 7}', b'"N": 8}'))
    with pytest.raises(ChangedInputError, match="is of another import"):
        run(data, Mode.MERGE)
    run(data + lines([("q", "new")]))
    assert ("q", "new") in table.stored, "rows may have been added meanwhile"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"rows": 1, "position": 2}'])
def test_a_damaged_checkpoint_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text(text, encoding="ascii")
    with pytest.raises(ChangedInputError, match="is no checkpoint"):
        Run(Table(), tmp_path / "checkpoint")(lines([("p", "1")]))


def test_what_every_row_would_hear_ends_the_import() -> None:
    class Closed(Table):
        async def commit(self, _: str, rows: Sequence[PreparedRow], mode: Mode) -> None:
            raise RejectedError(403, "AuthorizationFailure", "no", None, was_retried=False)

    with pytest.raises(TransferError, match="rejects the rows: AuthorizationFailure"):
        Run(Closed())(lines([("p", "1")]))
