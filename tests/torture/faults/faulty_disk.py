"""A disk that fails on command: the commands to `faulty_disk.c`, which is preloaded into the server.

Invariant: a disk with no rule in force is an ordinary disk.
"""

import ctypes
import errno
import mmap
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

KINDS = ("write", "sync", "create", "name", "room", "read", "open")
"""What calls a rule is about, in the order of the C source: to write bytes; to sync; to open for writing, make a
directory or a link; to rename or remove; to change a size or ask how much room is left; to read; to open to read."""

FOR_EVER = -1


@dataclass(frozen=True)
class Rule:
    """When calls of a kind fail.

    Attributes:
        error: the name of the error: "ENOSPC".
        after: so many calls succeed first; of writes, bytes.
        times: so many calls fail.
        permille: the chance of each to fail.
        name: only of files whose path has this in it.
    """

    error: str
    after: int = 0
    times: int = FOR_EVER
    permille: int = 1000
    name: str = ""


class _Rule(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("error", "after", "times", "permille", "seed", "calls", "failures")),
        ("name", ctypes.c_char * 40),
    )


class FaultyDisk:
    """The disk below a directory, for the processes that are started with `variables`."""

    def __init__(self, workplace: Path, under: Path) -> None:
        """Compile what is preloaded, in `workplace`, which is not below `under`."""
        library, control = workplace / "faulty_disk.so", workplace / "faulty_disk.control"
        if not library.exists():
            compiler = shutil.which("gcc") or shutil.which("cc")
            assert compiler is not None, "a C compiler is needed"
            source = Path(__file__).with_name("faulty_disk.c")
            subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"], check=True)
        size = ctypes.sizeof(_Rule) * len(KINDS)
        control.write_bytes(bytes(size))
        with control.open("r+b") as file:
            self._rules = (_Rule * len(KINDS)).from_buffer(mmap.mmap(file.fileno(), size))
        self.variables = {
            "LD_PRELOAD": str(library),
            "LAZULITE_FAULTY_CONTROL": str(control),
            "LAZULITE_FAULTY_UNDER": str(under),
        }
        """For the environment."""

    @contextmanager
    def failing(self, rules: Mapping[str, Rule], seed: int = 0) -> Iterator[None]:
        """Break the disk until the block ends; chances are drawn from the seed."""
        for each in self._rules:
            each.calls = each.failures = 0
        for kind, rule in rules.items():
            self._set(self._rules[KINDS.index(kind)], rule, seed)
        try:
            yield
        finally:
            for each in self._rules:
                each.error = 0

    @property
    def failures(self) -> int:
        """How many calls have failed since the disk was last broken."""
        return sum(int(each.failures) for each in self._rules)

    def calls(self, kind: str) -> int:
        """How many calls of a kind a rule has seen since the disk was last broken."""
        return int(self._rules[KINDS.index(kind)].calls)

    def _set(self, place: _Rule, rule: Rule, seed: int) -> None:
        place.after, place.times, place.permille, place.seed = rule.after, rule.times, rule.permille, seed
        place.name = rule.name.encode()
        place.error = getattr(errno, rule.error)  # Last: it is in force from here on.
