"""Programs on the Rust crate `object_store`: tables of delta-rs, and lists of obstore that begin at a name.

They reach the account by its endpoint and key, not by the option for the emulator, which lists in another way.
"""

import sys

import obstore
from arro3.core import Array, DataType, Table
from cases import fields, run, unique_name
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from obstore.store import AzureStore

ACCOUNT = fields()
OPTIONS = {
    "azure_storage_account_name": ACCOUNT["AccountName"],
    "azure_storage_account_key": ACCOUNT["AccountKey"],
    "azure_storage_endpoint": ACCOUNT["BlobEndpoint"],
    "allow_http": "true",
}
CONTAINER = ACCOUNT["Container"]


def store():
    return AzureStore(
        CONTAINER,
        account_name=ACCOUNT["AccountName"],
        account_key=ACCOUNT["AccountKey"],
        endpoint=ACCOUNT["BlobEndpoint"],
        client_options={"allow_http": True},
    )


def numbers(*values):
    return Table.from_pydict({"i": Array(list(values), DataType.int64())})


def read(table):
    rows = QueryBuilder().register("t", table).execute("select i from t order by i").read_all()
    return rows["i"].to_pylist()


def listed(files, prefix, offset=None):
    return [each["path"] for part in obstore.list(files, prefix, offset=offset) for each in part]


def test_a_table_takes_one_append_after_the_other():
    url = f"az://{CONTAINER}/{unique_name()}"
    for number in range(12):
        write_deltalake(url, numbers(number), mode="append", storage_options=OPTIONS)
    table = DeltaTable(url, storage_options=OPTIONS)
    assert table.version() == 11
    assert read(table) == list(range(12))
    assert read(DeltaTable(url, version=2, storage_options=OPTIONS)) == [0, 1, 2]


def test_a_table_is_followed_from_a_checkpoint_on():
    url = f"az://{CONTAINER}/{unique_name()}"
    for number in range(3):
        write_deltalake(url, numbers(number), mode="append", storage_options=OPTIONS)
    reader = DeltaTable(url, storage_options=OPTIONS)
    reader.create_checkpoint()
    for number in range(3, 6):
        write_deltalake(url, numbers(number), mode="append", storage_options=OPTIONS)
    reader.update_incremental()
    assert reader.version() == 5
    assert read(reader) == list(range(6))
    reader.delete("i < 3")
    assert read(DeltaTable(url, storage_options=OPTIONS)) == [3, 4, 5]


def test_a_list_begins_behind_its_offset():
    files, directory = store(), unique_name()
    for number in range(5):
        obstore.put(files, f"{directory}/a/{number}", b"x")
    obstore.put(files, f"{directory}/b", b"x")
    names = [f"{directory}/a/{number}" for number in range(5)]
    assert listed(files, f"{directory}/a") == names
    assert listed(files, f"{directory}/a", names[2]) == names[3:]
    assert listed(files, directory, f"{directory}/a/25") == [*names[3:], f"{directory}/b"]
    assert listed(files, f"{directory}/a", f"{directory}/c") == []


def test_names_of_paths_come_back():
    files, directory = store(), unique_name()
    names = [f"{directory}/ü b", f"{directory}/a+b&c", f"{directory}/%2E", f"{directory}/a.b"]
    for name in names:
        obstore.put(files, name, name.encode())
    assert sorted(listed(files, directory)) == sorted(names)
    for name in names:
        assert bytes(obstore.get(files, name).bytes()) == name.encode()


if __name__ == "__main__":
    run(sys.modules["__main__"])
