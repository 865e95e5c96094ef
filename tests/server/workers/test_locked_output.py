"""Lines of several processes stay whole, in a pipe too, where a long write is many."""

import os
import subprocess
import sys

from lazulite.server.workers.locked_output import new_lock

WRITER = """
import os, sys
from lazulite.server.workers.locked_output import LockedOutput
output = LockedOutput(open(1, "wb", closefd=False), int(sys.argv[1]), 0)
os.write(2, b"ready")
sys.stdin.read()
for _ in range(100):
    output.write((sys.argv[2] * 70_000 + "\\n").encode())
    output.flush()
"""
LENGTH = 70_000


def test_lines_of_two_processes_do_not_mix() -> None:
    lock = new_lock()
    read_end, write_end = os.pipe()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(lock), letter],
            stdin=subprocess.PIPE,
            stdout=write_end,
            stderr=subprocess.PIPE,
            pass_fds=[lock],
        )
        for letter in "ab"
    ]
    os.close(write_end)
    os.close(lock)
    for writer in writers:
        assert writer.stderr is not None
        assert writer.stderr.read(5) == b"ready"
    for writer in writers:  # Both at once.
        assert writer.stdin is not None
        writer.stdin.close()
    with open(read_end, "rb") as pipe:
        lines = pipe.read().split(b"\n")
    assert [writer.wait() for writer in writers] == [0, 0]
    for writer in writers:
        assert writer.stderr is not None
        writer.stderr.close()
    assert sorted(lines[:-1]) == [b"a" * LENGTH] * 100 + [b"b" * LENGTH] * 100
