"""Seeds as they are read: types, files, and what is refused with its line."""

import base64
import math
import re
from pathlib import Path

import pytest

from lazulite.seed.document import BYTES_MAX, SeedFileError, read_seed
from lazulite.seed.value import SeedError
from lazulite.table.model.edm import parse_datetime

KEY = base64.b64encode(b"k" * 64).decode()


def write(folder: Path, text: str) -> Path:
    path = folder / "state.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_type_is_read_exactly(tmp_path: Path) -> None:
    seed = read_seed(
        write(
            tmp_path,
            """
[[tables.Types.rows]]
PartitionKey = ""
RowKey = "é"
text = "ü\\u0001"
yes = true
least = -2147483648
more = 2147483648
small = { int64 = 1 }
third = 0.1
none = nan
all = -inf
whole = { double = 1 }
day = 2026-01-31T12:00:00.5+01:00
exact = { datetime = "2026-01-31T12:00:00.1234567Z" }
id = { guid = "8F6A3C6E-6AB3-4A6E-9C13-2F3C5B1D8A55" }
data = { binary = "AAE=" }
""",
        )
    )
    (_, entity) = seed.own.tables[0].rows[0]
    found = {name: (value.edm.name, value.edm.decode(value.literal)) for name, value in entity.properties.items()}
    none = found.pop("none")
    assert none[0] == "Edm.Double"
    assert math.isnan(float(none[1]))
    assert found.pop("day") == ("Edm.DateTime", parse_datetime("2026-01-31T11:00:00.5Z"))
    assert found.pop("exact") == ("Edm.DateTime", parse_datetime("2026-01-31T12:00:00.1234567Z"))
    assert found == {
        "text": ("Edm.String", "ü\x01"),
        "yes": ("Edm.Boolean", True),
        "least": ("Edm.Int32", -(2**31)),
        "more": ("Edm.Int64", 2**31),
        "small": ("Edm.Int64", 1),
        "third": ("Edm.Double", 0.1),
        "all": ("Edm.Double", -math.inf),
        "whole": ("Edm.Double", 1.0),
        "id": ("Edm.Guid", "8f6a3c6e-6ab3-4a6e-9c13-2f3c5b1d8a55"),
        "data": ("Edm.Binary", b"\x00\x01"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[table.Orders]", "line 1: table: there is no key 'table' here; did you mean tables?"),
        ("a = ", "is not TOML"),
        ("[accounts.shop]\nkey = 'c2VjcmV0'", "line 2: accounts.shop.key: a seed holds no key"),
        ("[accounts.shop]\nkey = {}", "line 2: accounts.shop.key: must be {file"),
        ("[tables.Orders]\n\nrows = [{PartitionKey = 'a'}]", "line 3: tables.Orders.rows[0]: a row needs RowKey"),
        (
            "[tables.T]\nrows = [\n{PartitionKey='a', RowKey='b'},\n{PartitionKey='a', RowKey='b'}]",
            "line 4: tables.T.rows[1]: another row has these keys",
        ),
        ("tables.T.rows = [{PartitionKey='a', RowKey='b', c = 1979-05-27}]", "c: must be a time with its zone"),
        ("tables.T.rows = [{PartitionKey='a', RowKey='b', c = {int64 = 'x'}}]", "c.int64: is no int64"),
        ("tables.T.rows = [{PartitionKey='a', RowKey='b', c = {int64 = 9223372036854775808}}]", "is no int64"),
        ("tables.T.rows = [{PartitionKey='a', RowKey='b', c = {int32 = 1, int64 = 1}}]", "a table with one key"),
        ("tables.T.rows = [{PartitionKey='a', RowKey='b', c = 2020-01-01T00:00:00.1234567Z}]", "at most six digits"),
        ("queues.q.messages = [{lives_seconds = 1}]", "a message is a string, or a table with text"),
        ("containers.c.folder = 'none'", "there is no folder"),
        ("[[containers.c.blobs]]\nname = 'a'\nfile = 'none'", "line 3: containers.c.blobs[0].file: there is no file"),
        ("[[containers.c.blobs]]\nname = 'a'", "line 1: containers.c.blobs[0]: a blob needs a name, and one of"),
        ("services.table.website = {}", "there is no key 'website'"),
        ("accounts.shop.versioning = 1", "must be true or false"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line_and_the_reason(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SeedFileError) as caught:
        read_seed(write(tmp_path, text))
    assert message in str(caught.value)
    assert "c2VjcmV0" not in str(caught.value)


def test_a_long_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    with pytest.raises(SeedFileError, match="longer than 8 MiB"):
        read_seed(write(tmp_path, "#" * (BYTES_MAX + 1)))


def test_keys_come_from_a_file_or_a_variable_and_a_wrong_one_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "shop.key").write_text(f"{KEY}\n", encoding="ascii")
    text = "[accounts.shop]\nkey = {file = 'shop.key'}\nkey2 = {variable = 'SHOP_KEY'}"
    (account,) = read_seed(write(tmp_path, text)).accounts
    first, second = account.keys
    assert first.read({}) == b"k" * 64
    assert second.read({"SHOP_KEY": KEY}) == b"k" * 64
    with pytest.raises(SeedError, match="SHOP_KEY does not hold a key") as caught:
        second.read({"SHOP_KEY": "secret!"})
    assert "secret" not in str(caught.value)


def test_a_folder_becomes_a_blob_for_each_file_and_a_blob_of_its_own_comes_first(tmp_path: Path) -> None:
    (tmp_path / "site" / "img").mkdir(parents=True)
    (tmp_path / "site" / "index.html").write_text("<p>")
    (tmp_path / "site" / "img" / "a.png").write_bytes(b"png")
    text = (
        "[containers.web]\nfolder = 'site'\nblobs = [{name = 'index.html', text = 'other', cache_control = 'no-store'}]"
    )
    (container,) = read_seed(write(tmp_path, text)).own.containers
    found = {blob.place.name: (blob.data, dict(blob.state.fields)) for blob in container.blobs}
    assert found == {
        "img/a.png": (None, {"Content-Type": "image/png"}),
        "index.html": (b"other", {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}),
    }


def test_the_examples_of_the_documentation_are_seeds(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    page = (Path(__file__).parents[2] / "docs" / "operations" / "seed.md").read_text(encoding="utf-8")
    first, second = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    assert [table.name for table in read_seed(write(tmp_path, first)).own.tables] == ["Customers"]
    assert [account.name for account in read_seed(write(tmp_path, second)).accounts] == ["shop"]
