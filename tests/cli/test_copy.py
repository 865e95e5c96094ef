"""`lazulite copy`: moved, killed, compared, rejected."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from azure.core import MatchConditions
from azure.data.tables import TableServiceClient, UpdateMode
from azure.storage.blob import BlobBlock, BlobServiceClient
from azure.storage.queue import QueueClient

from lazulite.cli import main
from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.migration import copying
from lazulite.migration.journal import Journal
from lazulite.protocol.clock import system_clock
from lazulite.records.spaces import FIRST_FREE_SPACE
from lazulite.settings.config import account_file, store_path
from lazulite.table.catalog import Catalog
from lazulite.table.model.row import assemble, encode_keys
from tests.migration.stores import put
from tests.server_process import Account, ServerProcess, serving

from .test_serve import rejected

PARTITIONS = 40
BATCHES_BEFORE_DEATH = 12

DYING = """
import os, signal, sys
from lazulite.cli import main
from lazulite.migration import copying, in_flight
from lazulite.migration.copying import CommitBatch

in_flight.COUNT_MAX = 2
copying.RECORD_SECONDS = 0.0
put, left = CommitBatch._decide, int(sys.argv[1])

def put_or_die(batch, current, timestamp):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return put(batch, current, timestamp)

CommitBatch._decide = put_or_die
sys.exit(main(sys.argv[2:]))
"""
"""`lazulite`, killed at a batch of a copy whose journal is brought up to date after each."""


class Lazulite:
    """The command line, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Run a command; return its exit code, and what it printed."""
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return code, *self._capsys.readouterr()

    def copy(self, source: Path, target: Path, *flags: str) -> tuple[int, str, str]:
        return self("copy", "--from", source, "--to", target, *flags)


@pytest.fixture(name="lazulite")
def _lazulite(capsys: pytest.CaptureFixture[str]) -> Lazulite:
    return Lazulite(capsys)


def checksum(printed: str) -> str:
    return next(line for line in printed.splitlines() if line.startswith("checksum"))


async def fill(location: Path) -> None:
    engine = RocksEngine.open(store_path(location), system_clock)
    try:
        table = await Catalog(engine).create("devstoreaccount1", "Orders")
        await Catalog(engine).create("devstoreaccount1", "Empty")
        for number in range(PARTITIONS):
            value = assemble(system_clock(), encode_keys(f"p{number:02}", "r"), "")
            await put(engine, table.space, f"p{number:02}", "r", value)
    finally:
        await engine.close()


async def set_row(location: Path, row: str, value: bytes | None) -> None:
    engine = RocksEngine.open(store_path(location), system_clock)
    try:
        await put(engine, FIRST_FREE_SPACE, "p03", row, value)
    finally:
        await engine.close()


async def entities_noted(location: Path) -> int:
    engine = RocksEngine.open(store_path(location), system_clock)
    try:
        journal = await Journal.unfinished(engine)
        assert journal is not None
        return journal.position.entities
    finally:
        await engine.close()


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> Path:
    location = tmp_path / "source"
    asyncio.run(fill(location))
    account_file(location).add("orders", lambda count: b"k" * count)
    return location


def kill_a_copy(source: Path, target: Path) -> None:
    command = ["copy", "--from", str(source), "--to", str(target)]
    died = subprocess.run(
        [sys.executable, "-c", DYING, str(BATCHES_BEFORE_DEATH), *command],
        check=False,
        capture_output=True,
        timeout=120,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr


def test_killed_copy_is_not_served_and_can_be_resumed(source: Path, tmp_path: Path, lazulite: Lazulite) -> None:
    target, other = tmp_path / "target", tmp_path / "other"
    kill_a_copy(source, target)
    assert 0 < asyncio.run(entities_noted(target)) < PARTITIONS
    for flags in ((), ("--workers", "2")):
        line = rejected(1, "serve", "-l", str(target), "--table-port", "0", *flags)
        assert line.startswith(f"lazulite: {target / 'store'} is an unfinished copy; ")
    finish = "finish it with the same lazulite copy, or remove it"
    assert lazulite("check", "-l", target) == (1, "", f"lazulite: {target} is an unfinished copy; {finish}\n")
    backup = tmp_path / "backup"
    assert lazulite("backup", "-l", target, backup) == (1, "", f"lazulite: {target} is an unfinished copy; {finish}\n")
    assert not backup.exists()
    assert f"{target} is an unfinished copy; finish it first" in lazulite.copy(source, target, "--verify-only")[2]
    assert "is itself an unfinished copy" in lazulite.copy(target, tmp_path / "third")[2]
    asyncio.run(fill(other))
    assert f"is an unfinished copy of {source}, not of {other}" in lazulite.copy(other, target)[2]
    code, printed, complaint = lazulite.copy(source, target, "--silent")
    assert (code, complaint) == (0, "")
    assert printed.splitlines()[-1] == "no difference found"
    assert (
        checksum(printed)
        == checksum(lazulite("check", "-l", source)[1])
        == checksum(lazulite("check", "-l", target)[1])
    )
    assert account_file(target).load() == account_file(source).load()


def test_write_to_the_source_is_detected_and_the_copy_is_not_served(
    source: Path, tmp_path: Path, lazulite: Lazulite
) -> None:
    target = tmp_path / "target"
    kill_a_copy(source, target)
    asyncio.run(set_row(source, "late", assemble(system_clock(), encode_keys("p03", "late"), "")))
    code, printed, complaint = lazulite.copy(source, target)
    assert code == 1
    assert "differs    devstoreaccount1/Orders, from: 41 entities" in printed
    assert "differs    devstoreaccount1/Orders, to:   40 entities" in printed
    assert "no difference" not in printed
    assert complaint.startswith(f"lazulite: {target} differs from its source: devstoreaccount1/Orders")
    assert complaint.count("\n") == 1
    assert "unfinished copy" in rejected(1, "serve", "-l", str(target), "--table-port", "0")


def test_verify_only_finds_a_changed_row_and_writes_nothing(source: Path, tmp_path: Path, lazulite: Lazulite) -> None:
    target = tmp_path / "target"
    code, moved, complaint = lazulite.copy(source, target)
    assert (code, complaint) == (0, "")
    assert lazulite.copy(source, target, "--verify-only") == (0, moved, "")
    assert "table      devstoreaccount1/Orders: 40 entities, " in moved
    assert "table      devstoreaccount1/Empty: 0 entities, " in moved
    assert "\naccounts   1\n" in moved
    assert "\ntables     2\nentities   40\nqueues     0\nmessages   0\ncontainers 0\nblobs      0\n" in moved
    asyncio.run(set_row(target, "r", assemble(system_clock(), encode_keys("p03", "R"), "")))
    code, printed, complaint = lazulite.copy(source, target, "--verify-only")
    assert code == 1
    assert printed.count("differs    devstoreaccount1/Orders") == 2
    assert "differs from its source: devstoreaccount1/Orders" in complaint
    account_file(target).add("another", lambda count: b"k" * count)
    assert "the accounts and 1 more" in lazulite.copy(source, target, "--verify-only")[2]
    assert lazulite.copy(source, target) == (1, "", f"lazulite: {target} is not empty; a copy needs an empty target\n")


def test_locations_in_use_and_unsuitable_targets_are_rejected(source: Path, tmp_path: Path, lazulite: Lazulite) -> None:
    target, backup = tmp_path / "target", tmp_path / "backup"
    assert lazulite("backup", backup, "-l", source)[0] == 0
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "store").write_text("", encoding="utf-8")

    def rejection(one: Path, other: Path, *flags: str) -> str:
        code, printed, complaint = lazulite.copy(one, other, *flags)
        assert (code, printed) == (1, "")
        assert complaint.count("\n") == 1
        return complaint

    assert f"there is no store in {target}" in rejection(target, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert f"there is no store in {target}" in rejection(source, target, "--verify-only")
    assert "is a backup" in rejection(backup, target)
    assert "is a backup" in rejection(source, backup)
    assert "the same store" in rejection(source, tmp_path / "files" / ".." / "source")
    assert "files/store" in rejection(source, tmp_path / "files")
    assert not target.exists()
    asyncio.run(fill(tmp_path / "second"))
    for one, other in ((source, target), (tmp_path / "second", source)):
        engine = RocksEngine.open(store_path(source), system_clock)
        try:
            assert f"{source / 'store'} is in use by another process; stop that process first" in rejection(one, other)
        finally:
            asyncio.run(engine.close())


def test_failure_of_a_store_names_the_remedy(
    source: Path, tmp_path: Path, lazulite: Lazulite, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"

    async def full(*_: object) -> int:
        raise EngineUnavailableError("the disk is full")

    with monkeypatch.context() as patches:
        patches.setattr(copying, "RETRY_SECONDS", ())
        patches.setattr(RocksEngine, "commit", full)
        complaint = lazulite.copy(source, target)[2]
    assert complaint == "lazulite: the disk is full; run the same command again to resume the copy\n"
    assert lazulite.copy(source, target)[0] == 0


def test_entities_are_equal_after_a_copy(tmp_path: Path, lazulite: Lazulite) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    server = ServerProcess.start(source)
    with connect(server) as service:
        table = service.create_table("Orders")
        table.create_entity({"PartitionKey": "p", "RowKey": "é", "Total": 12.5})
        before = table.get_entity("p", "é")
        service.create_table("Dropped")
        service.delete_table("Dropped")
    assert server.terminate() == 0
    assert lazulite.copy(source, target)[0] == 0
    server = ServerProcess.start(target)
    with connect(server) as service:
        table = service.get_table_client("Orders")
        after = table.get_entity("p", "é")
        assert dict(after) == dict(before)
        assert after.metadata == before.metadata
        etag = after.metadata["etag"]
        table.update_entity(after, UpdateMode.REPLACE, etag=etag, match_condition=MatchConditions.IfNotModified)
        assert str(table.get_entity("p", "é").metadata["etag"]) > str(etag)
        table.create_entity({"PartitionKey": "p", "RowKey": "new"})
        service.create_table("Dropped").create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert len(list(table.list_entities())) == 2
    assert server.terminate() == 0


def connect(server: ServerProcess) -> TableServiceClient:
    return TableServiceClient.from_connection_string(server.account.connection_string, retry_total=0)


def test_copy_and_check_count_and_sum_the_same(tmp_path: Path, lazulite: Lazulite) -> None:
    source = tmp_path / "source"
    with serving(
        source, "--silent", "--services", "table,queue,blob", "--queue-port", "0", "--blob-port", "0"
    ) as server:
        account = Account.parse(server.lines[1])
        with QueueClient(account.queue_endpoint, "jobs", credential=account.credential) as queue:
            queue.create_queue()
            for text in "abcd":
                queue.send_message(text)
            for _ in range(2):
                message = queue.receive_message()
                assert message is not None
                queue.delete_message(message)
        with BlobServiceClient(account.blob_endpoint, credential=account.credential) as service:
            container = service.create_container("box")
            for name in ("one", "two"):
                blob = container.get_blob_client(name)
                for block in ("MQ==", "Mg=="):
                    blob.stage_block(block, b"x" * 100_000)
                blob.commit_block_list([BlobBlock("MQ=="), BlobBlock("Mg==")])
                blob.stage_block("Mw==", b"y")
        assert server.stop()[0] == 0
    checked = lazulite("check", "-l", source)[1]
    copied = lazulite.copy(source, tmp_path / "target")[1]
    for label in ("tables", "entities", "queues", "messages", "containers", "blobs", "bytes", "checksum"):
        lines = [[line for line in text.splitlines() if line.startswith(f"{label} ")] for text in (checked, copied)]
        assert lines[0] == lines[1], label
        assert len(lines[0]) == 1, label
    assert "\nmessages   2\n" in checked
    assert "\nblobs      2\n" in checked
    assert "\nqueue      devstoreaccount1/jobs: 2 messages, " in copied
    assert "\ncontainer  devstoreaccount1/box: 2 blobs, " in copied
    assert lazulite("check", "-l", tmp_path / "target")[1].splitlines()[1:] == checked.splitlines()[1:]
