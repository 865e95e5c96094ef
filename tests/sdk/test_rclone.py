"""Blobs by `rclone`, where it is installed. `LAZULITE_TEST_RCLONE` names the program if it is not on the path.

The oldest version that runs, 1.60, has endpoints for the development account alone.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .blob_clients import Account, content, new_name

RCLONE = os.environ.get("LAZULITE_TEST_RCLONE") or shutil.which("rclone")
SECONDS_MAX = 120

pytestmark = pytest.mark.skipif(RCLONE is None, reason="rclone is not installed")


def test_trees_are_copied_compared_synchronized_and_deleted(blob_account: Account, tmp_path: Path) -> None:
    options = {"type": "azureblob", "endpoint": blob_account.blob_endpoint}
    if blob_account.name == "devstoreaccount1":
        options["use_emulator"] = "true"
    else:
        options |= {"account": blob_account.name, "key": blob_account.key}
        if "v1.60." in subprocess.run([str(RCLONE), "version"], capture_output=True, text=True, check=True).stdout:
            pytest.skip("this version has no endpoint for an account")
    variables = {"RCLONE_CONFIG": str(tmp_path / "none.conf")}
    variables |= {f"RCLONE_CONFIG_LAZULITE_{name.upper()}": value for name, value in options.items()}

    def rclone(*arguments: str) -> str:
        done = subprocess.run(
            [str(RCLONE), "--retries=1", *arguments],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    tree, back = tmp_path / "tree", tmp_path / "back"
    for number, name in enumerate(["a.txt", "deep/er/b c.bin", "deep/ü.bin", "empty"]):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content((9 << 20) * (number == 1) + 1000 * number, number))
    remote = f"lazulite:{new_name()}"
    rclone("mkdir", remote)
    rclone("copy", str(tree), f"{remote}/tree", "--azureblob-chunk-size=1Mi")
    rclone("check", str(tree), f"{remote}/tree", "--download")
    assert rclone("lsf", "-R", "--files-only", f"{remote}/tree").split("\n")[:-1] == sorted(
        ["a.txt", "deep/er/b c.bin", "deep/ü.bin", "empty"]
    )
    rclone("copyto", f"{remote}/tree/deep/er/b c.bin", f"{remote}/copy.bin")
    rclone("moveto", f"{remote}/tree/a.txt", f"{remote}/tree/moved.txt")
    rclone("sync", f"{remote}/tree", str(back))
    assert (back / "moved.txt").read_bytes() == (tree / "a.txt").read_bytes()
    assert (back / "deep" / "er" / "b c.bin").read_bytes() == (tree / "deep" / "er" / "b c.bin").read_bytes()
    (back / "moved.txt").unlink()
    rclone("sync", str(back), f"{remote}/tree")
    assert "moved.txt" not in rclone("lsf", "-R", f"{remote}/tree")
    rclone("purge", remote)
    assert remote.partition(":")[2] not in rclone("lsd", "lazulite:")
