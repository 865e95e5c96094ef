"""The settings of the allocator. The benchmark `blob`, ranges of 4 MiB down, shows what it gains."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from lazulite.server.allocator import Peak, keep_freed_memory, return_freed_memory

FAULTS = """
import resource
from threading import Thread
from lazulite.server.allocator import Peak, keep_freed_memory, return_freed_memory

def hold(size, count):
    for _ in range(100):
        held = [b"a" * size for _ in range(count)]

def faults(size, count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    thread = Thread(target=hold, args=(size, count))
    thread.start()
    thread.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(int(keep_freed_memory({})), faults(256 * 1024, 4), faults(4_000_000, 1))
"""
PAGE_BYTES = 4096


def test_pages_of_freed_memory_fault_once() -> None:
    """Not each time: of windows, and of a large response. The process, whose allocator it changes, is its own."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, timeout=60)
    is_kept, windows, responses = map(int, done.stdout.split())
    if not is_kept:
        pytest.skip("the C library is not glibc")
    assert windows < 3 * 4 * 256 * 1024 / PAGE_BYTES
    assert responses < 3 * 4_000_000 / PAGE_BYTES


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_settings_in_the_environment_are_left_alone(name: str) -> None:
    assert not keep_freed_memory({name: "1"}, lambda _: SimpleNamespace(mallopt=pytest.fail))


def test_another_c_library_is_left_alone() -> None:
    assert not keep_freed_memory({}, lambda _: SimpleNamespace())


def test_memory_is_returned_to_the_kernel() -> None:
    returned: list[int] = []
    return_freed_memory(lambda _: SimpleNamespace(malloc_trim=returned.append))
    assert returned == ([0] if sys.platform == "linux" else [])
    return_freed_memory(lambda _: SimpleNamespace())


def test_it_is_returned_when_a_large_crowd_has_gone() -> None:
    peak, mib = Peak(), 1 << 20
    held = [0, 31, 0, 100, 90, 26, 25, 0, 40, 11, 10, 33]
    assert [peak.has_fallen(each * mib, 0) for each in held] == [False] * 6 + [True] + [False] * 3 + [True] + [False]


def test_it_is_returned_when_much_was_evicted_from_a_full_budget() -> None:
    peak, mib = Peak(), 1 << 20
    evicted = [0, 63, 64, 100, 127, 128, 1000, 1000]
    assert [peak.has_fallen(40 * mib, each * mib) for each in evicted] == [False, False, True] + [False] * 2 + [
        True,
        True,
        False,
    ]
