"""The queue commands of `az`, the Azure CLI, where it is installed: it takes most of a gigabyte.

`LAZULITE_TEST_AZ` names the program; without it, the `az` of the path is run.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

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
