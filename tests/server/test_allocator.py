"""The settings of the allocator. The benchmark `blob`, ranges of 4 MiB down, shows what it gains."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from lazulite.server.allocator import keep_freed_memory

FAULTS = """
import resource
from threading import Thread
from lazulite.server.allocator import keep_freed_memory

def windows():
    for _ in range(100):
        held = [bytearray(256 * 1024) for _ in range(4)]
        for each in held:
            each[::4096] = bytes(64)

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    thread = Thread(target=windows)
    thread.start()
    thread.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

without = faults()
print(without if keep_freed_memory({}) else -1, faults())
"""


def test_freed_windows_are_kept() -> None:
    """Pages of a window fault once, not each time. It runs in a process of its own, whose allocator it changes."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, timeout=60)
    without, kept = map(int, done.stdout.split())
    if without == -1:
        pytest.skip("the C library is not glibc")
    assert kept < without / 4


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_settings_in_the_environment_are_left_alone(name: str) -> None:
    assert not keep_freed_memory({name: "1"}, lambda _: SimpleNamespace(mallopt=pytest.fail))


def test_another_c_library_is_left_alone() -> None:
    assert not keep_freed_memory({}, lambda _: SimpleNamespace())
