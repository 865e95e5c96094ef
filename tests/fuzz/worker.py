"""One target in a process of its own: `python -m tests.fuzz.worker TARGET SECONDS SEED DIRECTORY`.

Writes to DIRECTORY what the campaign shows: `report.json`, and under `corpus/` (atheris only) the inputs that reached
new code. Without atheris the same mutations run unguided.
"""

import gc
import importlib.util
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import NoReturn

GUIDED = importlib.util.find_spec("atheris") is not None
_WARM = 0.25
"""The part of the time after which memory is first measured: by then every pool and cache has its size."""
_LOOK_EVERY = 256
_MINIMISE_SECONDS = 10
_GROWTH_BLOCKS_MAX = 20_000
"""More than a module's late imports and compiled patterns; a leak of one block an input is over it in seconds."""

_GROWTH_MIB_MAX = 64
"""Of resident memory, which counts what lies outside of Python too: libFuzzer's corpus, the caches of a parser in C."""


@dataclass
class Report:
    """What a run of one target found."""

    target: str
    guided: bool
    runs: int
    seconds: float
    cpu_ms_max: float
    rss_mib_start: float
    rss_mib_end: float
    blocks_grown: int
    findings: list[tuple[str, str]]
    """What is broken, and the input (as a Python literal) that breaks it."""


def _rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Watch:
    """Runs inputs until the time is up, and then writes the report and ends the process."""

    def __init__(self, target: str, seconds: float, directory: Path) -> None:
        from .runner import Runner  # noqa: PLC0415 - the server may only be imported under atheris's eyes

        self.runner = Runner(target)
        self._directory = directory
        self._started = time.monotonic()
        self._seconds = seconds
        self._warm: tuple[int, float] | None = None

    def __call__(self, data: bytes) -> None:
        self.runner(data)
        if self.runner.runs % _LOOK_EVERY:
            return
        elapsed = time.monotonic() - self._started
        if self._warm is None and elapsed > self._seconds * _WARM:
            self._warm = (self.runner.blocks(), _rss_mib())
        if elapsed > self._seconds:
            self._end(elapsed)

    def _end(self, elapsed: float) -> NoReturn:
        from .runner import minimise  # noqa: PLC0415

        runner = self.runner
        blocks, rss_mib = self._warm or (runner.blocks(), _rss_mib())
        grown = runner.blocks() - blocks
        findings = [
            (key, ascii(minimise(runner, data, key, _MINIMISE_SECONDS))) for key, data in runner.findings.items()
        ]
        if grown > _GROWTH_BLOCKS_MAX:
            findings.append((f"memory does not grow: {grown} blocks", ascii(b"")))
        rss_mib_end = _rss_mib()
        if rss_mib_end - rss_mib > _GROWTH_MIB_MAX:
            findings.append((f"memory does not grow: {rss_mib_end - rss_mib:.0f} MiB", ascii(b"")))
        report = Report(
            runner.name, GUIDED, runner.runs, elapsed, runner.cpu_ms_max, rss_mib, rss_mib_end, grown, findings
        )
        (self._directory / "report.json").write_text(json.dumps(asdict(report)), encoding="ascii")
        sys.stdout.flush()
        os._exit(0)


def _plain(watch: Watch, inputs: list[bytes], random: Random) -> NoReturn:
    from .mutate import Mutator  # noqa: PLC0415
    from .words import words  # noqa: PLC0415

    mutate = Mutator(words(watch.runner.name), inputs)
    for data in inputs:
        watch(data)
    while True:
        watch(mutate(random.choice(inputs), watch.runner.target.bytes_max, random))


def _guided(watch: Watch, inputs: list[bytes], seed: int, directory: Path) -> NoReturn:
    import atheris  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra

    from .mutate import Mutator  # noqa: PLC0415
    from .words import words  # noqa: PLC0415

    mutate = Mutator(words(watch.runner.name), inputs)

    def mutated(data: bytes, bytes_max: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.4:
            return bytes(atheris.Mutate(data, bytes_max))
        return mutate(data, bytes_max, random)

    found, start = directory / "corpus", directory / "seeds"
    for place in (found, start):
        place.mkdir(exist_ok=True)
    for number, data in enumerate(inputs):
        (start / f"{number:04}").write_bytes(data)
    options = [f"-seed={seed}", f"-max_len={watch.runner.target.bytes_max}", "-timeout=60", "-rss_limit_mb=4096"]
    options += ["-len_control=20", f"-artifact_prefix={directory}/", "-verbosity=1", str(found), str(start)]
    atheris.Setup([sys.argv[0], *options], watch, custom_mutator=mutated)
    atheris.Fuzz()
    raise SystemExit("the fuzzer ended before its time")


def main() -> NoReturn:
    """Fuzz one target."""
    target, seconds, seed, directory = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    if GUIDED:
        import atheris  # noqa: PLC0415 - an extra

        with atheris.instrument_imports(include=["lazulite"]):
            watch = Watch(target, seconds, directory)
    else:
        watch = Watch(target, seconds, directory)
    from . import corpus  # noqa: PLC0415
    from .seeds import seeds  # noqa: PLC0415

    inputs = list(dict.fromkeys(seeds(target) + corpus.read(target)))
    gc.collect()
    gc.freeze()
    if GUIDED:
        _guided(watch, inputs, seed, directory)
    _plain(watch, inputs, Random(seed))


if __name__ == "__main__":
    main()
