"""Chooses the few of many inputs that reach code which the seeds do not reach."""

import sys
from collections.abc import Iterable
from types import CodeType, FrameType

from . import corpus
from .runner import Runner
from .seeds import seeds

_BYTES_MAX = 2048
_INPUTS_MAX = 40

Lines = set[tuple[CodeType, int, int]]


class _Tracer:
    """Collects the pairs of lines of the server that follow each other."""

    def __init__(self) -> None:
        self.seen: Lines = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> "_Local | None":
        code = frame.f_code
        return _Local(self.seen, code) if event == "call" and "lazulite" in code.co_filename else None


class _Local:
    def __init__(self, seen: Lines, code: CodeType) -> None:
        self._seen, self._code, self._last = seen, code, 0

    def __call__(self, frame: FrameType, event: str, _: object) -> "_Local":
        if event == "line":
            self._seen.add((self._code, self._last, frame.f_lineno))
            self._last = frame.f_lineno
        return self


def _lines(runner: Runner, data: bytes) -> Lines:
    tracer = _Tracer()
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        runner.broken(data)
    finally:
        sys.settrace(before)
    return tracer.seen


def distil(target: str, inputs: Iterable[bytes]) -> list[bytes]:
    """Return the inputs, shortest first, that each reach lines which no input before reached."""
    runner = Runner(target, cpu_seconds_max=60)
    known: Lines = set()
    for data in seeds(target) + corpus.read(target):
        known |= _lines(runner, data)
    kept: list[bytes] = []
    for data in sorted(inputs, key=lambda data: (len(data), data)):
        if len(data) > _BYTES_MAX or len(kept) == _INPUTS_MAX:
            break
        new = _lines(runner, data) - known
        if new:
            known |= new
            kept.append(data)
    runner.close()
    return kept
