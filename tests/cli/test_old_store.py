"""Today's version opens a location that an earlier one wrote, serves all services there, and changes none of its rows.

So the earlier version finds its rows as it wrote them, if an upgrade is undone. Once an index was declared, it rejects
the store.
"""

from pathlib import Path
from typing import cast

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient
from rocksdict import Rdict

from lazulite.app.account_data import caches_of
from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.rollback_journal import FORMAT_KEY
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import store_path
from lazulite.table.catalog import Catalog
from lazulite.table.indexes.build import IndexBuilder
from lazulite.table.indexes.definition import Scope
from tests.golden import LOCATIONS, unpack_location
from tests.server_process import running

from .test_serve import lazulite

ENTITIES = MESSAGES = 50
SERVED = ("--silent", "--services", "table,queue,blob", "--accept-clock-jump")
_COUNTERS = (b"\x00\x00\x00\x00\x00\x00\x00\x01", b"\xff\xff\xff\xff\xff\xff\xff\xffstamp")
"""How the keys of the rows begin that count spaces, and have the last timestamp."""


def entities(connection_string: str) -> list[int]:
    with TableServiceClient.from_connection_string(connection_string, retry_total=0) as service:
        found = service.get_table_client("Orders").list_entities()
        return [int(entity["Number"]) for entity in found]


def use_all_services(connection_string: str) -> None:
    with TableServiceClient.from_connection_string(connection_string, retry_total=0) as service:
        table = service.get_table_client("Orders")
        for number in range(ENTITIES, 2 * ENTITIES):
            table.create_entity({"PartitionKey": "p", "RowKey": f"{number:04}", "Number": number})
    with (
        QueueServiceClient.from_connection_string(connection_string, retry_total=0) as queues,
        queues.create_queue("others") as others,
    ):
        others.send_message("1")
        assert others.receive_message() is not None
    with (
        BlobServiceClient.from_connection_string(connection_string, retry_total=0) as blobs,
        blobs.create_container("others") as container,
    ):
        container.upload_blob("blob", b"1")
        assert container.download_blob("blob").readall() == b"1"


def rows(location: Path) -> dict[bytes, bytes]:
    database = Rdict(str(store_path(location)))
    try:
        found = cast("dict[bytes, bytes]", dict(database.items()))
        return {key: value for key, value in found.items() if not key.startswith(_COUNTERS)}
    finally:
        database.close()


@pytest.mark.parametrize("name", LOCATIONS)
def test_a_location_of_an_earlier_version_is_served_and_keeps_its_rows(name: str, tmp_path: Path) -> None:
    location = unpack_location(name, tmp_path)
    before = rows(unpack_location(name, tmp_path / "before"))
    assert FORMAT_KEY in before
    with running("--location", str(location), *SERVED) as server:
        connection_string = server.lines[-1].strip()
        assert entities(connection_string) == list(range(ENTITIES))
        use_all_services(connection_string)
        assert entities(connection_string) == list(range(2 * ENTITIES))
        assert server.stop() == (0, "")
    checked = lazulite("check", "--location", str(location))
    assert checked.returncode == 0, checked.stderr
    assert before.items() <= rows(location).items()


def test_queues_and_blobs_of_an_earlier_version_are_there(tmp_path: Path) -> None:
    location = unpack_location("location-0.2", tmp_path)
    with running("--location", str(location), *SERVED) as server:
        connection_string = server.lines[-1].strip()
        with (
            QueueServiceClient.from_connection_string(connection_string, retry_total=0) as queues,
            queues.get_queue_client("jobs") as jobs,
        ):
            assert jobs.get_queue_properties().approximate_message_count == MESSAGES
        with (
            BlobServiceClient.from_connection_string(connection_string, retry_total=0) as blobs,
            blobs.get_container_client("docs") as docs,
        ):
            assert docs.download_blob("large").readall() == bytes(100_000)
            small = docs.download_blob("small")
            assert (small.readall(), small.properties.metadata) == (b"small", {"a": "1"})
        assert server.stop() == (0, "")


def format_of(location: Path) -> bytes:
    return rows(location)[FORMAT_KEY]


def test_the_first_index_raises_the_format_and_earlier_versions_reject_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = unpack_location("location-0.2", tmp_path)
    assert format_of(location) == b"1"
    here = ("-l", str(location))
    created = lazulite("index", "create", "Orders", "by_number", "--on", "Number", *here)
    assert created.returncode == 0, created.stderr
    assert format_of(location) == b"3"
    backup, restored, copied = (str(tmp_path / name) for name in ("backup", "restored", "copied"))
    for command in (
        ("check", *here),
        ("backup", backup, *here),
        ("restore", backup, "-l", restored),
        ("copy", "--from", str(location), "--to", copied),
        ("check", "-l", copied),
        ("index", "drop", "Orders", "by_number", *here),
    ):
        done = lazulite(*command)
        assert done.returncode == 0, done.stderr
    for each in (location, Path(restored), Path(copied)):
        assert format_of(each) == b"3"
    monkeypatch.setattr("lazulite.engine.rocksdb.data_directory.WITH_INDEXES", 2)
    with pytest.raises(StoreUnusableError, match=r"has format 3, newer than the 2 of this .*; use a newer version"):
        RocksEngine.open(store_path(location), system_clock)


class CrashError(Exception):
    pass


async def test_a_crash_before_the_declaration_leaves_a_store_that_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: object) -> None:
        raise CrashError

    async def settle(_: int, __: int) -> None:
        return

    location = unpack_location("location-0.2", tmp_path)
    engine = RocksEngine.open(store_path(location), system_clock)
    builder = IndexBuilder(engine, caches_of({}), settle)
    monkeypatch.setattr(Catalog, "declare_index", crash)
    with pytest.raises(CrashError):
        await builder.create("devstoreaccount1", "Orders", "by_number", ["Number"], Scope.TABLE)
    assert await engine.has_raised_format()
    assert (await builder.indexes("devstoreaccount1", "Orders")).declared == ()
    await engine.close()
    with running("--location", str(location), *SERVED) as server:
        assert entities(server.lines[-1].strip()) == list(range(ENTITIES))
        assert server.stop() == (0, "")
    checked = lazulite("check", "--location", str(location))
    assert checked.returncode == 0, checked.stderr
