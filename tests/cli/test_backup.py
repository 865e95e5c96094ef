"""`lazulite check`, `backup` and `restore`, as processes and against a service that is writing."""

import hashlib
import json
import shutil
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient

from lazulite.cli import main
from tests.server_process import ServerProcess

WORKERS = 4
BATCH = 10


def lazulite(*arguments: str | Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "lazulite", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


def facts(printed: str) -> dict[str, str]:
    """Return what `lazulite check` printed, but for the place and for the room that files take."""
    lines = dict(line.split(maxsplit=1) for line in printed.splitlines() if line[0].islower())
    return {name: lines[name] for name in ("accounts", "tables", "entities", "checksum")}


def connect(server: ServerProcess) -> TableServiceClient:
    return TableServiceClient.from_connection_string(server.account.connection_string, retry_total=0)


class Writers:
    """Write batches until asked to stop; know which one was acknowledged last, for each partition."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._stop = threading.Event()
        self.warm = threading.Event()
        self.acknowledged = dict.fromkeys(range(WORKERS), 0)

    def run(self, worker: int) -> None:
        with connect(self._server) as service:
            table = service.get_table_client("Orders")
            number = 0
            while not self._stop.is_set():
                number += 1
                batch = [
                    {"PartitionKey": f"p{worker}", "RowKey": str(row), "N": number, "Text": "x" * 300}
                    for row in range(BATCH)
                ]
                table.submit_transaction([("upsert", entity) for entity in batch])
                self.acknowledged[worker] = number
                if number == 10:
                    self.warm.set()

    def stop(self) -> None:
        self._stop.set()


@pytest.fixture(name="location", scope="module")
def _location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A location that was served and stopped, with an account."""
    location = tmp_path_factory.mktemp("served") / "data"
    process = ServerProcess.start(location)
    with connect(process) as service:
        table = service.create_table("Orders")
        for row in range(20):
            table.create_entity({"PartitionKey": "p", "RowKey": str(row), "N": row})
        service.create_table("Dropped")
        service.delete_table("Dropped")
    assert process.terminate() == 0
    assert main(["account", "add", "orders", "-l", str(location)]) == 0
    return location


def test_a_backup_while_serving_has_all_that_was_acknowledged_and_no_half_batch(tmp_path: Path) -> None:
    server = ServerProcess.start(tmp_path / "data")
    try:
        with connect(server) as service:
            service.create_table("Orders")
        writers = Writers(server)
        with ThreadPoolExecutor(WORKERS) as pool:
            runs = [pool.submit(writers.run, worker) for worker in range(WORKERS)]
            try:
                assert writers.warm.wait(30)
                backups = []
                for name in ("first", "second"):
                    before = dict(writers.acknowledged)
                    code, printed, complaint = lazulite("backup", tmp_path / name, "-l", tmp_path / "data", "--verify")
                    assert (code, complaint) == (0, "")
                    assert "no damage found" in printed
                    backups.append((tmp_path / name, before))
            finally:
                writers.stop()
            for run in runs:
                run.result()
        assert not (tmp_path / "data" / "checkpoint").exists()
        assert lazulite("check", "-l", tmp_path / "data")[0] == 1, "it is served"
    finally:
        assert server.terminate() == 0
    assert not (tmp_path / "data" / "lazulite.sock").exists()
    for backup, before in backups:
        restored = tmp_path / f"{backup.name}-restored"
        code, printed, _ = lazulite("restore", backup, "-l", restored)
        assert code == 0
        assert facts(printed) == facts(lazulite("check", "-l", backup)[1])
        again = ServerProcess.start(restored)
        try:
            with connect(again) as service:
                rows = list(service.get_table_client("Orders").list_entities())
                service.get_table_client("Orders").create_entity({"PartitionKey": "new", "RowKey": "1"})
                service.create_table("Another")
        finally:
            assert again.terminate() == 0
        for worker, number in before.items():
            numbers = [row["N"] for row in rows if row["PartitionKey"] == f"p{worker}"]
            assert len(numbers) == (BATCH if numbers else 0)
            assert len(set(numbers)) <= 1, "half a batch"
            assert (numbers[0] if numbers else 0) >= number, "an acknowledged batch is missing"
        assert lazulite("check", "-l", restored)[0] == 0


def test_check_prints_a_summary(location: Path) -> None:
    code, printed, complaint = lazulite("check", "--location", location)
    assert (code, complaint) == (0, "")
    found = facts(printed)
    assert (found["accounts"], found["tables"], found["entities"]) == ("1", "1", "20")


def test_a_backup_of_a_stopped_service_restores_to_the_same(location: Path, tmp_path: Path) -> None:
    before = facts(lazulite("check", "-l", location)[1])
    assert lazulite("backup", tmp_path / "backup", "-l", location)[0] == 0
    code, printed, _ = lazulite("restore", tmp_path / "backup", "-l", tmp_path / "again")
    assert (code, facts(printed)) == (0, before)
    assert (tmp_path / "again" / "accounts.json").read_bytes() == (location / "accounts.json").read_bytes()
    assert not (tmp_path / "again" / "backup.json").exists()
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == [], "nothing half done is left"
    for path in [*(tmp_path / "backup").rglob("*"), tmp_path / "backup", tmp_path / "again"]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.fixture(name="backup", scope="module")
def _backup(location: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    backup = tmp_path_factory.mktemp("backups") / "backup"
    assert main(["backup", str(backup), "-l", str(location)]) == 0
    return backup


@pytest.mark.parametrize("name", ["backup.json", "accounts.json", "CURRENT", "IDENTITY", "OPTIONS", "MANIFEST", ".sst"])
@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_each_damaged_file_of_a_backup_is_named(
    backup: Path, tmp_path: Path, name: str, at: float, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(backup, tmp_path / "copy"))
    files = [path for path in copy.rglob("*") if path.is_file() and name in path.name]
    if not files:
        assert name == "IDENTITY", "which a checkpoint leaves out"
        return
    content = bytearray(files[0].read_bytes())
    content[int(len(content) * at)] ^= 1
    files[0].write_bytes(content)
    for arguments in (["check", "-l", str(copy)], ["restore", str(copy), "-l", str(tmp_path / "new")]):
        assert main(arguments) == 1
        complaint = capsys.readouterr().err
        assert "damaged" in complaint
        assert files[0].name in complaint
    assert not (tmp_path / "new").exists()


def test_missing_and_additional_files_of_a_backup_are_named(
    backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(backup, tmp_path / "copy"))
    (copy / "store" / "extra").touch()
    assert main(["check", "-l", str(copy)]) == 1
    assert "extra does not belong to the backup" in capsys.readouterr().err
    (copy / "store" / "extra").unlink()
    next(copy.glob("store/*.sst")).unlink()
    assert main(["restore", str(copy), "-l", str(tmp_path / "new")]) == 1
    assert ".sst is missing" in capsys.readouterr().err


def test_existing_target_is_rejected_and_unchanged(
    location: Path, backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("mine")
    for arguments in (["backup", str(tmp_path), "-l", str(location)], ["restore", str(backup), "-l", str(tmp_path)]):
        assert main(arguments) == 1
        assert "not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_other_directories_are_rejected(
    location: Path, backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, complaint in (
        (["restore", str(location), "-l", str(tmp_path / "new")], "no backup"),
        (["restore", str(tmp_path / "missing"), "-l", str(tmp_path / "new")], "no backup"),
        (["check", "-l", str(tmp_path)], "no store"),
        (["backup", str(tmp_path / "new"), "-l", str(tmp_path)], "no store"),
        (["serve", "-l", str(backup), "--table-port", "0"], "is a backup"),
    ):
        assert main(arguments) == 1
        assert complaint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("version", "writer"), [(2, "a newer Lazulite"), (0, "an earlier Lazulite, in version 0")])
def test_a_backup_of_another_version_is_rejected(
    backup: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], version: int, writer: str
) -> None:
    copy = Path(shutil.copytree(backup, tmp_path / "copy"))
    document = json.loads((copy / "backup.json").read_bytes())
    del document["sha256"]
    document["version"] = version
    sha256 = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    (copy / "backup.json").write_text(json.dumps(document | {"sha256": sha256}))
    assert main(["check", "-l", str(copy)]) == 1
    assert f"backup.json was written by {writer}" in capsys.readouterr().err
