"""The queue and blob commands of `az`, the Azure CLI, where it is installed: it takes most of a gigabyte.

`LAZULITE_TEST_AZ` names the program; without it, the `az` of the path is run.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from .queue_clients import Account, new_name

AZ = os.environ.get("LAZULITE_TEST_AZ") or shutil.which("az")
SECONDS_MAX = 120

pytestmark = pytest.mark.skipif(AZ is None, reason="the Azure CLI is not installed")


class Cli:
    """Runs commands with the connection string of an account."""

    def __init__(self, account: Account, directory: Path) -> None:
        self._environment = os.environ | {
            "AZURE_STORAGE_CONNECTION_STRING": account.connection_string,
            "AZURE_CONFIG_DIR": str(directory),
            "AZURE_CORE_COLLECT_TELEMETRY": "false",
            "AZURE_CORE_ONLY_SHOW_ERRORS": "true",
        }

    def __call__(self, *arguments: str) -> Any:
        """Return what a command prints, read as JSON."""
        done = subprocess.run(
            [str(AZ), "storage", *arguments, "--output", "json"],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None


def test_the_queue_commands(queue_account: Account, tmp_path: Path) -> None:
    az, queue = Cli(queue_account, tmp_path), new_name()
    named, of_queue = ("--name", queue), ("--queue-name", queue)
    assert az("queue", "create", *named, "--metadata", "Key=v") == {"created": True}
    assert az("queue", "metadata", "show", *named) == {"Key": "v"}
    assert queue in [each["name"] for each in az("queue", "list", "--prefix", queue[:9])]
    sent = az("message", "put", *of_queue, "--content", "hello <&>")
    assert [each["content"] for each in az("message", "peek", *of_queue)] == ["hello <&>"]
    [got] = az("message", "get", *of_queue, "--visibility-timeout", "60")
    assert (got["id"], got["dequeueCount"]) == (sent["id"], 1)
    receipt = ("--id", got["id"], "--pop-receipt", got["popReceipt"])
    updated = az("message", "update", *of_queue, *receipt, "--content", "new", "--visibility-timeout", "60")
    assert az("message", "peek", *of_queue) == []
    az("message", "delete", *of_queue, "--id", got["id"], "--pop-receipt", updated["popReceipt"])
    az("queue", "policy", "create", *of_queue, "--name", "add", "--permissions", "a")
    assert az("queue", "policy", "list", *of_queue)["add"]["permission"] == "a"
    token = az("queue", "generate-sas", *named, "--permissions", "r", "--expiry", "2099-01-01")
    assert "sig=" in token
    az("message", "clear", *of_queue)
    assert az("queue", "delete", *named) == {"deleted": True}
    assert az("queue", "exists", *named) == {"exists": False}


def test_the_blob_commands(blob_account: Account, tmp_path: Path) -> None:
    az, container = Cli(blob_account, tmp_path), new_name()
    of_container, blob = ("--container-name", container), ("--name", "a b/ü.bin")
    named = (*of_container, *blob)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 40_000)
    assert az("container", "create", "--name", container, "--metadata", "Key=v") == {"created": True}
    assert container in [each["name"] for each in az("container", "list", "--prefix", container[:9])]
    az("blob", "upload", *named, "--file", str(source), "--metadata", "Color=red", "--tags", "stage=raw")
    shown = az("blob", "show", *named)
    assert (shown["properties"]["contentLength"], shown["tagCount"]) == (source.stat().st_size, 1)
    assert az("blob", "metadata", "show", *named) == {"Color": "red"}
    az("blob", "download", *named, "--file", str(target), "--no-progress")
    assert target.read_bytes() == source.read_bytes()
    az("blob", "set-tier", *named, "--tier", "Cool")
    lease = az("blob", "lease", "acquire", "--blob-name", blob[1], *of_container)
    az("blob", "lease", "release", "--blob-name", blob[1], *of_container, "--lease-id", lease)
    snapshot = az("blob", "snapshot", *named)["snapshot"]
    source.write_bytes(b"new")
    az("blob", "upload", *named, "--file", str(source), "--overwrite")
    az("blob", "download", *named, "--snapshot", snapshot, "--file", str(target), "--no-progress")
    assert target.stat().st_size == 256 * 40_000
    token = az("blob", "generate-sas", *named, "--permissions", "r", "--expiry", "2099-01-01")
    url = f"{blob_account.blob_endpoint}/{container}/{quote(blob[1])}?{token}"  # The CLI itself names the cloud's host.
    az("blob", "copy", "start", "--destination-container", container, "--destination-blob", "copy", "--source-uri", url)
    found = az("blob", "list", *of_container, "--include", "s")
    assert [(each["name"], each["snapshot"]) for each in found] == [
        (blob[1], snapshot),
        (blob[1], None),
        ("copy", None),
    ]
    az("blob", "delete", *named, "--delete-snapshots", "include")
    assert az("blob", "exists", *named) == {"exists": False}
    assert az("container", "delete", "--name", container) == {"deleted": True}
