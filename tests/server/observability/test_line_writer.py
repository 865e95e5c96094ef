"""Lines reach their file; lost lines are counted; no caller waits."""

import errno
import threading

from lazulite.server.observability.line_writer import LineWriter


class File:
    def __init__(self) -> None:
        self.data = b""
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.failed = threading.Event()
        self.gate.set()
        self.broken = False

    def write(self, data: bytes, /) -> None:
        self.entered.set()
        assert self.gate.wait(10)
        if self.broken:
            self.failed.set()
            raise OSError(errno.ENOSPC, "no space left")
        self.data += data

    def flush(self) -> None:
        pass


def writer(file: File, lines_max: int = 10) -> LineWriter:
    return LineWriter(file, lines_max, lambda count: f"dropped {count}")


def test_close_writes_what_waits_in_order() -> None:
    file = File()
    lines = writer(file)
    for number in range(3):
        lines.write(f"{number} \u2603 \ud800")
    lines.close()
    assert file.data == b"".join(b"%d \xe2\x98\x83 \\ud800\n" % number for number in range(3))


def test_a_file_that_blocks_holds_nobody_up_and_costs_bounded_memory() -> None:
    file = File()
    file.gate.clear()
    lines = writer(file)
    lines.write("first")
    assert file.entered.wait(10)
    for number in range(1000):
        lines.write(f"{number}")
    file.gate.set()
    lines.close()
    assert file.data.split() == [b"first", *(b"%d" % number for number in range(10)), b"dropped", b"990"]


def test_a_full_disk_is_survived_and_reported() -> None:
    file = File()
    file.broken = True
    lines = writer(file)
    lines.write("lost")
    assert file.failed.wait(10)
    file.broken = False
    lines.write("kept")
    lines.close()
    assert sorted(file.data.splitlines()) == [b"dropped 1", b"kept"]
