"""The campaign of faults in short, and servers that it must not be content with."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest

from tests.torture.campaign import mutation_cases

from .bench import MUTATED, PATIENCE_SECONDS, Bench
from .campaign import NAMES, Faults, endure
from .table import DISK_FAULTS

pytestmark = pytest.mark.skipif(not shutil.which("gcc") and not shutil.which("cc"), reason="there is no C compiler")

IN_A_HURRY = (*MUTATED, "in_a_hurry")
MUTATIONS = {
    "acknowledge_failed_writes": ("full disk", "acknowledged|to what was not done|404"),
    "sync_again": ("I/O errors of syncs", "acknowledged|was seen|neither wholly there"),
    "stay_failed": ("read-only disk", "not back"),
    "write_one_by_one": ("full disk", "neither wholly there"),
    "end_early": ("I/O errors of reads", "reads wrong"),
}
"""The fault that brings each to light, and a part of the problem."""
REPEATED = 30
"""A fault meets another moment each time, and not each shows the mutation; the campaign ends at the first problem."""


def test_every_fault_is_rejected_and_survived(tmp_path: Path) -> None:
    report = endure(iter(NAMES), 4, tmp_path, IN_A_HURRY)
    assert report.problems == ()
    assert int(report.counts["faults"]) >= len(DISK_FAULTS), report


@pytest.mark.parametrize("name", mutation_cases("write_one_by_one", MUTATIONS))
def test_mutation_is_found(tmp_path: Path, name: str) -> None:
    fault, sign = MUTATIONS[name]
    patience = 4 if name == "stay_failed" else PATIENCE_SECONDS
    report = endure(repeat(fault, REPEATED), 1, tmp_path, (*MUTATED, name), patience)
    assert any(re.search(sign, problem) for problem in report.problems), report


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(1 << 16))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 96 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", disk], check=False, capture_output=True
    ).returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


async def test_full_file_system_is_survived(tmp_path: Path, small_disk: Path) -> None:
    bench = Bench(tmp_path, 1, IN_A_HURRY)
    faults = Faults(bench, 1)
    await bench.start()
    try:
        ballast = small_disk / "ballast"
        with pytest.raises(OSError, match="No space left"):
            fill(ballast)
        await faults.look_while_it_lasts("full disk")
        ballast.unlink()
        await faults.expect_recovery("full disk")
    finally:
        await bench.stop(kill=True)
    assert bench.tally.problems == []
    assert bench.tally.rejections.keys() == {"503 ServerBusy"}
