"""Runs inputs of one target: each in the same world, its processor time bounded, what it breaks kept once.

What counts as the same finding: the exception and the innermost line of the server that it went through (or, for a
broken promise, the promise).
"""

import gc
import sys
import time
import traceback
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper

from .oracles import BrokenPromiseError, require
from .targets import TARGETS

CPU_SECONDS_MAX = 0.25
"""Processor time of one input; one that takes more is tried three times, lest the machine be blamed on it."""


@dataclass
class Runner:
    """One target and what was seen of it."""

    name: str
    cpu_seconds_max: float = CPU_SECONDS_MAX
    runs: int = 0
    cpu_ms_max: float = 0.0
    slowest: bytes = b""
    findings: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.target = TARGETS[self.name]
        self.world = self.target.world()

    def close(self) -> None:
        """Let go of the world."""
        self.world.close()

    def __call__(self, data: bytes) -> None:
        """Run an input and note what it breaks."""
        key = self.broken(data)
        self.runs += 1
        if key and key not in self.findings:
            self.findings[key] = data

    def broken(self, data: bytes) -> str:
        """Run an input and return what it breaks, "" if nothing."""
        try:
            seconds = self._timed(data)
            if seconds > self.cpu_seconds_max:
                seconds = min(seconds, self._timed(data), self._timed(data))
            if seconds * 1000 > self.cpu_ms_max:
                self.cpu_ms_max, self.slowest = seconds * 1000, data
            require(seconds <= self.cpu_seconds_max, "an input takes little time")
        except Exception as failure:  # noqa: BLE001 - whatever gets out of the server is what is looked for
            self.world.renew()
            return _key(failure)
        return ""

    def _timed(self, data: bytes) -> float:
        started = time.process_time()
        try:
            self.target.run(self.world, data[: self.target.bytes_max])
        finally:
            seconds = time.process_time() - started
            self.world.reset()
        return seconds

    def blocks(self) -> int:
        """How many blocks of memory Python holds once every cache is empty. A cache without a bound is a finding."""
        self.world.renew()
        for module in [module for name, module in sys.modules.items() if name.startswith("lazulite")]:
            for value in list(vars(module).values()):
                if isinstance(value, _lru_cache_wrapper):
                    require(value.cache_parameters()["maxsize"] is not None, "every cache has a bound")
                    value.cache_clear()
        gc.collect()
        return sys.getallocatedblocks()


def _key(failure: Exception) -> str:
    if isinstance(failure, BrokenPromiseError):
        return str(failure)
    frames = traceback.extract_tb(failure.__traceback__)
    ours = [frame for frame in frames if "lazulite" in frame.filename] or frames
    return f"{type(failure).__name__} in {ours[-1].name}, line {ours[-1].lineno}"


def minimise(runner: Runner, data: bytes, key: str, seconds: float) -> bytes:
    """The shortest input found in that time that breaks the same: ever smaller pieces are left out."""
    until = time.monotonic() + seconds
    size = max(1, len(data) // 2)
    while True:
        at, shorter = 0, False
        while at < len(data):
            if time.monotonic() > until:
                return data
            candidate = data[:at] + data[at + size :]
            if runner.broken(candidate) == key:
                data, shorter = candidate, True
            else:
                at += size
        if size == 1 and not shorter:
            return data
        size = max(1, size // 2)
