"""What the numbers were measured on: processor, disk, versions."""

import os
import platform
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

BLOCK_BYTES = 4096
SYNCS_MAX = 500
SYNC_SECONDS_MAX = 1.0

_PACKAGES = ("lazulite", "rocksdict", "uvloop", "httptools")


def sync_seconds(directory: Path) -> list[float]:
    """Time `fdatasync` (`fsync` where there is none) of appended 4 KiB blocks in a temporary file in `directory`."""
    sync = getattr(os, "fdatasync", os.fsync)
    took: list[float] = []
    with tempfile.TemporaryFile(dir=directory) as file:
        ends = time.perf_counter() + SYNC_SECONDS_MAX
        while len(took) < SYNCS_MAX and (not took or time.perf_counter() < ends):
            began = time.perf_counter()
            os.write(file.fileno(), b"x" * BLOCK_BYTES)
            sync(file.fileno())
            took.append(time.perf_counter() - began)
    return took


def filesystem(directory: Path) -> str:
    """Return the type of the file system that holds `directory`, or `unknown`."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown"
    holding = [(point, kind) for point, kind in mounts if directory.resolve().is_relative_to(point)]
    return max(holding, key=lambda mount: len(mount[0]), default=("", "unknown"))[1]


def processor() -> str:
    """Return the processor's name and the number of CPUs this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} × {names[0] if names else platform.machine()}"


def versions() -> str:
    """Return the versions of Python and of the packages whose speed is measured."""
    known = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            known.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            known.append(f"{package} not installed")
    return ", ".join(known)
