"""What an import would do, by the first bytes of its file."""

import io
import json

import pytest

from lazulite.transfer.formats import FORMATS, WriteOptions
from lazulite.transfer.importing import RowKeys
from lazulite.ui.tables import import_preview
from lazulite.ui.tables.import_preview import COLUMNS_SHOWN, PROBLEMS_SHOWN, ROWS_SHOWN, preview_of

NONE = RowKeys("")


def test_columns_have_the_types_that_the_import_takes() -> None:
    data = b"PartitionKey,RowKey,Age,Big,At,Note\np,1,5,9007199254740993,2026-11-28T00:00:00Z,\np,2,7,3,,<b>\n"
    found = preview_of(data, len(data), "csv", NONE)
    assert [(each.name, list(each.types)) for each in found.columns] == [
        ("Age", ["Int32"]),
        ("Big", ["Int64"]),
        ("At", ["DateTime"]),
        ("Note", ["String"]),
    ]
    assert [[cell.text for cell in row.cells] for row in found.rows] == [
        ["5", "9007199254740993", "2026-11-28T00:00:00Z", ""],
        ["7", "3", "", "<b>"],
    ]
    assert [cell.state for cell in found.rows[0].cells] == ["value", "value", "value", "missing"]
    assert (found.read, found.bad, found.is_whole, found.may_guess_again) == (2, 0, True, False)


def test_bad_rows_are_counted_and_named_with_reasons() -> None:
    rows: list[object] = [{"PartitionKey": "p", "RowKey": str(number)} for number in range(30)]
    rows[3:3] = [{"PartitionKey": "p"}, 5, *({"PartitionKey": 5},) * 20]
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    found = preview_of(data, len(data), "jsonl", NONE)
    assert (found.read, found.bad, len(found.problems), len(found.rows)) == (52, 22, PROBLEMS_SHOWN, ROWS_SHOWN)
    assert [each.number for each in found.problems[:2]] == [4, 5]
    assert "RowKey" in found.problems[0].reason
    assert list(found.numbers[:4]) == [1, 2, 3, 26]
    filled = preview_of(data, len(data), "jsonl", RowKeys("number"))
    assert (filled.bad, filled.rows[3].row) == (21, "0000000004")


def test_a_row_that_the_beginning_cuts_is_left_out() -> None:
    data = b'PartitionKey,RowKey,Text\np,1,a\np,2,"b\nstill b'
    found = preview_of(data, 10_000, "csv", NONE)
    assert ([row.row for row in found.rows], found.read, found.bad) == (["1"], 1, 0)
    assert (found.is_whole, found.may_guess_again) == (False, True)
    whole = preview_of(data, len(data), "csv", NONE)
    assert (whole.read, whole.bad) == (2, 1)
    assert "no CSV" in whole.problems[0].reason
    assert "more than 1 MiB" in preview_of(b"x" * 50, 10_000, "jsonl", NONE).problem


@pytest.mark.parametrize(
    ("format_name", "data", "problem"),
    [
        ("csv", b"", "the file is empty"),
        ("csv", b"A,A\n1,2\n", "two columns have the same name"),
        ("jsonl", b"\xff\n", "is not UTF-8"),
        ("parquet", b"PAR1", "not Parquet"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(format_name: str, data: bytes, problem: str) -> None:
    assert problem in preview_of(data, len(data), format_name, NONE).problem


def test_parquet_is_shown_if_it_is_whole() -> None:
    file = io.BytesIO()
    writer = FORMATS["parquet"].write(file, WriteOptions())
    writer.write([{"PartitionKey": "p", "RowKey": "1", "N@odata.type": "Edm.Int64", "N": "9007199254740993"}])
    writer.finish()
    data = file.getvalue()
    found = preview_of(data, len(data), "parquet", NONE)
    assert [(each.name, list(each.types)) for each in found.columns] == [("N", ["Int64"])]
    assert found.rows[0].cells[0].text == "9007199254740993"
    assert "says at its end" in preview_of(data, len(data) + 1, "parquet", NONE).problem


def test_what_is_read_and_shown_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_preview, "ROWS_READ_MAX", 50)
    row = {"PartitionKey": "p", "RowKey": "r", **{f"P{number}": "x" * 500 for number in range(COLUMNS_SHOWN + 5)}}
    data = f"{json.dumps(row)}\n".encode() * 60
    found = preview_of(data, len(data), "jsonl", NONE)
    assert (found.read, found.is_whole, found.left_out, len(found.columns)) == (50, False, 5, COLUMNS_SHOWN)
    assert all(len(cell.text) < 100 for each in found.rows for cell in each.cells)
