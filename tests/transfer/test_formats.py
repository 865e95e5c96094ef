"""Files give entities back as they were: every type, missing against null against empty."""

import io
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings

from lazulite.transfer.csv_files import COLUMNS_MAX, CsvOptions, CsvReader, CsvWriter
from lazulite.transfer.formats import FORMATS, ReadOptions, WriteOptions, format_of
from lazulite.transfer.inputs import ChangedInputError, InputError, InputLines, Row
from lazulite.transfer.json_lines import JsonLinesReader
from lazulite.transfer.parquet_files import ParquetReader
from lazulite.transfer.values import Entity, guess_type, property_names, type_of

from .entities import ENTITIES, EVERY_TYPE, entity, typed


def written(name: str, *pages: Sequence[Entity], options: WriteOptions | None = None) -> bytes:
    output = io.BytesIO()
    writer = FORMATS[name].write(output, options or WriteOptions())
    for page in pages:
        writer.write(page)
    writer.finish()
    assert writer.size_bytes == len(output.getvalue()) or name == "parquet"
    return output.getvalue()


def read(name: str, data: bytes) -> list[Row]:
    return list(FORMATS[name].read(io.BytesIO(data), ReadOptions()).rows())


def entities(rows: Sequence[Row]) -> list[Entity]:
    assert [row.problem for row in rows] == [""] * len(rows)
    return [row.entity for row in rows if row.entity is not None]


def members(found: Entity) -> dict[str, tuple[str, object]]:
    """Return type and value of each property; a float by its text, which tells zeros apart."""
    values = {name: (type_of(found, name), found[name]) for name in property_names(found) if name != "Timestamp"}
    return {name: (kind, repr(value) if isinstance(value, float) else value) for name, (kind, value) in values.items()}


def comparable(found: Sequence[Entity]) -> list[dict[str, tuple[str, object]]]:
    return [members(each) for each in found]


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
@settings(max_examples=60, deadline=None)
@given(page=ENTITIES, late=ENTITIES)
@example(page=[entity(EVERY_TYPE), entity({})], late=[entity({"Late": (None, 1)})])
@example(page=[entity({"A": (None, 1)}), entity({"A": (None, "")}), entity({"A": (None, None)}), entity({})], late=[])
def test_entities_come_back_as_they_were(name: str, page: list[Entity], late: list[Entity]) -> None:
    assert comparable(entities(read(name, written(name, page, late)))) == comparable([*page, *late])


def test_the_form_of_storage_explorer_to_the_byte() -> None:
    page = [entity({"N": (None, 2), "T": (None, "")}), entity({"I": typed("Int64", "5"), "B": (None, True)})]
    time = "2026-11-28T09:00:00.1234567Z"
    assert written("csv", page[:1], page[1:]).decode() == (
        "PartitionKey,RowKey,Timestamp,N,N@type,T,T@type,I,I@type,B,B@type\r\n"
        f"p,r,{time},2,Int32,,String,,,,\r\n"
        f"p,r,{time},,,,,5,Int64,true,Boolean\r\n"
    )
    assert written("plain-csv", page).decode().splitlines()[1:] == [f"p,r,{time},2,,,", f"p,r,{time},,,5,true"]


def test_columns_that_are_chosen_are_written_at_once_and_in_their_order() -> None:
    output = io.BytesIO()
    writer = CsvWriter(output, select=["PartitionKey", "RowKey", "B", "A"])
    writer.write([entity({"A": (None, 1)})])
    assert output.getvalue() == b"PartitionKey,RowKey,B,B@type,A,A@type\r\np,r,,,1,Int32\r\n"
    writer.finish()


def test_formulas_are_guarded_on_request_only() -> None:
    page = [entity({"A": (None, "=1+1"), "B": typed("Int64", "-5"), "C": (None, -5), "D": (None, "a=")})]
    plain, guarded = (written("csv", page, options=WriteOptions(guard=guard)).decode() for guard in (False, True))
    assert ",=1+1,String,-5,Int64,-5,Int32,a=," in plain
    assert ",'=1+1,String,-5,Int64,-5,Int32,a=," in guarded


@pytest.mark.parametrize("prefix", ["", "Edm.", "edm."])
def test_types_of_old_and_new_storage_explorers_are_known(prefix: str) -> None:
    start = "\ufeffPartitionKey,RowKey,Timestamp,A,A@type,PartitionKey@type\np,r,2026-11-28T00:00:00Z"
    text = f"{start},5,{prefix}Int64,{prefix}String\n"
    assert entities(read("csv", text.encode())) == [
        {"PartitionKey": "p", "RowKey": "r", "A@odata.type": "Edm.Int64", "A": "5"}
    ]


def test_types_in_the_first_row_alone_stand_for_all() -> None:
    """Storage Explorer 1.40 writes them so, and String for what the first row does not have."""
    text = "PartitionKey,RowKey,N,N@type,T,T@type\na,1000,2,Int32,,String\na,11,4,,,\na,12,5,,ACK,\n"
    assert comparable(entities(read("csv", text.encode()))) == comparable(
        [
            {"PartitionKey": "a", "RowKey": "1000", "N": 2},
            {"PartitionKey": "a", "RowKey": "11", "N": 4},
            {"PartitionKey": "a", "RowKey": "12", "N": 5, "T": "ACK"},
        ]
    )


def test_types_of_plain_csv_are_guessed_by_column() -> None:
    text = (
        "PartitionKey,RowKey,Zip,N,Big,D,When,Id,Yes,Mixed,None\n"
        "1,2,0150,1,5000000000,1,2026-11-28T09:00:00Z,00000000-0000-0000-0000-000000000001,true,1,\n"
        "1,3,1234,,1,2.5,2026-11-28T09:00:00+01:00,00000000-0000-0000-0000-00000000000A,FALSE,x,\n"
    )
    reader = CsvReader(InputLines.of_file(io.BytesIO(text.encode())))
    assert reader.types == {
        "PartitionKey": "String",
        "RowKey": "String",
        "Zip": "String",
        "N": "Int32",
        "Big": "Int64",
        "D": "Double",
        "When": "DateTime",
        "Id": "Guid",
        "Yes": "Boolean",
        "Mixed": "String",
        "None": "String",
    }
    first, second = entities(list(reader.rows()))
    assert (first["PartitionKey"], first["Zip"], first["D"], first["Yes"]) == ("1", "0150", 1.0, True)
    assert "N" not in second, "an empty cell is missing"
    assert (second["When"], second["Id"]) == ("2026-11-28T08:00:00Z", "00000000-0000-0000-0000-00000000000a")


@pytest.mark.parametrize(
    ("texts", "guess"),
    [
        (["9007199254740993", "1.5"], "String"),  # A Double would change it.
        (["-0", "00"], "String"),
        (["2147483648"], "Int64"),
        (["9223372036854775808"], "String"),
        (["1e999"], "String"),
        (["2026-11-28"], "String"),
        (["", ""], "String"),
        ([], "String"),
    ],
)
def test_no_guess_loses_digits(texts: list[str], guess: str) -> None:
    assert guess_type(texts) == guess


def test_given_types_win_over_guesses() -> None:
    text = b"PartitionKey,RowKey,A,B\np,r,1,2\n"
    lines = InputLines.of_file(io.BytesIO(text))
    assert CsvReader(lines, CsvOptions({"A": "Int64"}, guess=False)).types["A"] == "Int64"
    assert CsvReader(InputLines.of_file(io.BytesIO(text)), CsvOptions(guess=False)).types["B"] == "String"
    with pytest.raises(InputError, match="there is no column X"):
        CsvReader(InputLines.of_file(io.BytesIO(text)), CsvOptions({"X": "Int64"}))


def test_a_bad_row_of_csv_is_told_and_the_next_ones_are_read() -> None:
    text = 'PartitionKey,RowKey,A,A@type\na,1,x,Int32\na,2\na,3,"1"2,Int32\na,4,1,Nope\na,5,1,Int32\n'
    rows = read("csv", text.encode())
    assert [(row.number, row.problem) for row in rows] == [
        (1, "A: 'x' is no Int32"),
        (2, "the row has 2 cells, and the header 4"),
        (3, "the row is no CSV: ',' expected after '\"'"),
        (4, "'Nope' is no type; the types are String, Boolean, Int32, Int64, Double, DateTime, Guid, Binary, Null"),
        (5, ""),
    ]


def test_a_bad_line_of_json_is_told_and_integers_find_their_size() -> None:
    lines = b'{"PartitionKey":\n[1]\n\n{"A":[1]}\n{"A":NaN}\n{"A":5000000000,"odata.etag":"x","B":5}\n'
    rows = read("jsonl", lines)
    assert [row.problem for row in rows] == [
        "the line is not JSON",
        "the line is no object of JSON",
        "A is an object or an array, which no property is",
        "the line is not JSON",
        "",
    ]
    assert rows[-1] == Row(5, {"A": "5000000000", "A@odata.type": "Edm.Int64", "B": 5})


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
def test_reading_goes_on_at_a_position_of_the_same_input_only(name: str) -> None:
    data = written(name, [entity({"A": (None, number)}, ("p", str(number))) for number in range(10)])
    reader = FORMATS[name].read(io.BytesIO(data), ReadOptions())
    rows = reader.rows()
    read_before = [next(rows) for _ in range(4)]
    position = reader.position()
    assert position is not None
    again = FORMATS[name].read(io.BytesIO(data), ReadOptions())
    again.resume(position, 4)
    assert [*read_before, *again.rows()] == read(name, data)
    changed = data.replace(b'"3"', b'"7"').replace(b",3,", b",7,") if name != "parquet" else data + b"PAR1"
    with pytest.raises((ChangedInputError, InputError)):
        FORMATS[name].read(io.BytesIO(changed), ReadOptions()).resume(position, 4)


def test_parquet_of_other_programs_is_read() -> None:
    columns = {
        "PartitionKey": pa.array([1, 2], pa.int64()),
        "RowKey": pa.array(["a", "b"]).dictionary_encode(),
        "Small": pa.array([1, None], pa.int8()),
        "Large": pa.array([1, 2], pa.uint32()),
        "Float": pa.array([0.5, float("nan")], pa.float32()),
        "When": pa.array([0, 1], pa.timestamp("ms")),
        "Day": pa.array([0, 1], pa.date32()),
        "Nothing": pa.nulls(2),
    }
    output = io.BytesIO()
    pq.write_table(pa.table(columns), output)
    first, second = entities(read("parquet", output.getvalue()))
    assert comparable([first]) == comparable(
        [
            {
                "PartitionKey": "1",
                "RowKey": "a",
                "Small": 1,
                "Float": 0.5,
                "Large@odata.type": "Edm.Int64",
                "Large": "1",
                "When@odata.type": "Edm.DateTime",
                "When": "1970-01-01T00:00:00Z",
                "Day@odata.type": "Edm.DateTime",
                "Day": "1970-01-01T00:00:00Z",
            }
        ]
    )
    assert (second["When"], second["Float@odata.type"], "Small" in second) == (
        "1970-01-01T00:00:00.001Z",
        "Edm.Double",
        False,
    )
    output = io.BytesIO()
    pq.write_table(pa.table({"List": [[1]]}), output)
    with pytest.raises(InputError, match="the column List has the type list"):
        read("parquet", output.getvalue())


def test_what_is_no_file_of_rows_is_told() -> None:
    for data, name, problem in (
        (b"", "csv", "the file is empty"),
        (b"A,A\n", "csv", "two columns have the same name"),
        (b"\xff\n", "jsonl", "is not UTF-8"),
        (b"no", "parquet", "not Parquet"),
    ):
        with pytest.raises(InputError, match=problem):
            read(name, data)


def test_the_format_is_that_of_the_name() -> None:
    assert [format_of(Path(name), None) for name in ("a.csv", "a.typed.CSV", "a.ndjson")] == ["csv", "csv", "jsonl"]
    assert (format_of(None, None), format_of(Path("a.csv"), "plain-csv")) == ("jsonl", "plain-csv")
    with pytest.raises(InputError, match=r"the name a\.txt says no format"):
        format_of(Path("a.txt"), None)


def test_lines_of_a_pipe_have_no_position() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    reader = JsonLinesReader(InputLines.of_file(Pipe(b"{}\n")))
    assert (len(list(reader.rows())), reader.position(), reader.size_bytes) == (1, None, None)


def test_a_long_value_that_is_repeated_needs_little_memory() -> None:
    repeats = 200
    column = pa.DictionaryArray.from_arrays(pa.array([0] * repeats, pa.int32()), pa.array(["x" * 1_000_000]))
    keys = pa.array([str(number) for number in range(repeats)])
    file = io.BytesIO()
    pq.write_table(pa.table({"PartitionKey": keys, "RowKey": keys, "A": column}), file)
    assert len(file.getvalue()) < 100_000
    file.seek(0)
    tracemalloc.start()
    rows = sum(1 for _ in ParquetReader(file).rows())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == repeats
    assert peak < 64 << 20


def test_a_file_has_at_most_so_many_columns() -> None:
    file = io.BytesIO(",".join(f"c{number}" for number in range(COLUMNS_MAX + 1)).encode())
    with pytest.raises(InputError, match="columns"):
        FORMATS["csv"].read(file, ReadOptions())
