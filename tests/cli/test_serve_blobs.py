"""Blobs behind `lazulite serve`: killed, and backed up, while they are written and overwritten."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContainerClient

from tests.server_process import ServerProcess, running

from .test_backup import lazulite

FLAGS = ("--services", "blob", "--blob-port", "0", "--silent")
THREADS, BLOBS = 4, 6
BYTES = 300_000
"""More than a row has, and more than a window."""


class Writers:
    """Overwrite blobs until asked to stop. A blob has one byte throughout."""

    def __init__(self, connection_string: str) -> None:
        self._connection_string = connection_string
        self._stop = threading.Event()
        self.rounds = threading.Semaphore(0)
        self.acknowledged: dict[str, int] = {}

    def run(self, thread: int) -> None:
        chance = random.Random(thread)
        with container_of(self._connection_string) as container:
            while not self._stop.is_set():
                name, value = f"{thread}/{chance.randrange(BLOBS)}", chance.randrange(256)
                try:
                    container.upload_blob(name, bytes([value]) * BYTES, overwrite=True)
                except AzureError:
                    self.acknowledged.pop(name, None)  # It was killed: either may be there.
                else:
                    self.acknowledged[name] = value
                self.rounds.release()

    def stop(self) -> None:
        self._stop.set()


def container_of(connection_string: str) -> ContainerClient:
    return BlobServiceClient.from_connection_string(connection_string, retry_total=0).get_container_client("photos")


def contents_of(server: ServerProcess) -> dict[str, int]:
    """Return the byte of each blob; each is whole."""
    found = {}
    with container_of(server.lines[1].strip()) as container:
        for name in [f"{thread}/{number}" for thread in range(THREADS) for number in range(BLOBS)]:
            with suppress(ResourceNotFoundError):
                data = container.download_blob(name).readall()
                assert len(data) == BYTES
                [found[name]] = set(data)
    return found


def test_blobs_are_whole_after_a_kill_and_in_a_backup(tmp_path: Path) -> None:
    location = ("--location", str(tmp_path / "data"))
    with running(*location, *FLAGS) as server:
        with container_of(server.lines[1].strip()) as container:
            container.create_container()
        writers = Writers(server.lines[1].strip())
        with ThreadPoolExecutor(THREADS) as pool:
            runs = [pool.submit(writers.run, thread) for thread in range(THREADS)]
            try:
                for _ in range(THREADS * 5):
                    assert writers.rounds.acquire(timeout=60)
                code, printed, complaint = lazulite("backup", tmp_path / "copy", *location, "--verify")
                assert (code, complaint) == (0, "")
                assert "contents" in printed
                server.process.kill()
            finally:
                writers.stop()
            for each in runs:
                each.result()
    code, printed, complaint = lazulite("check", *location)
    assert (code, complaint) == (0, "")
    assert lazulite("restore", tmp_path / "copy", "--location", tmp_path / "again")[0] == 0
    with running("--location", str(tmp_path / "again"), *FLAGS) as restored:
        assert contents_of(restored)
        assert restored.stop()[0] == 0
    with running(*location, *FLAGS) as again:
        found = contents_of(again)
        assert found | writers.acknowledged == found
        assert again.stop()[0] == 0
    files = [path for path in (tmp_path / "data" / "content").rglob("*") if path.is_file()]
    assert len(files) == len(found), "nothing of the killed process is left"
