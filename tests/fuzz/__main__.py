"""The campaign: `python -m tests.fuzz --seconds 3600 [TARGET …]`, what `make fuzz` runs.

The time is shared out evenly; each target has a process of its own. A table of what came of it is printed at the end,
and the exit code is 1 if anything was found.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import corpus
from .distil import distil
from .targets import TARGETS

_GRACE_SECONDS = 300
"""What a worker may take beyond its time to shorten what it found; then it hangs, which is a finding."""
_COVERAGE = re.compile(r"cov: (\d+)")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("fuzz", description="Send the server inputs that no client would.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together (60)")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time (1)")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    parser.add_argument("--store", action="store_true", help="add findings, and what reached new code, to the corpus")
    return parser.parse_args()


def _work(target: str, seconds: float, seed: int, store: bool) -> list[str]:
    """Run one target; return its row of the table, and print what it found."""
    with tempfile.TemporaryDirectory(prefix="lazulite-fuzz-") as place:
        directory = Path(place)
        command = [sys.executable, "-m", "tests.fuzz.worker", target, str(seconds), str(seed), place]
        with (directory / "log").open("wb") as log:
            try:
                code = subprocess.run(command, stdout=log, stderr=log, timeout=seconds + _GRACE_SECONDS, check=False)
                how = f"ended with {code.returncode}"
            except subprocess.TimeoutExpired:
                how = "hung"
        text = (directory / "log").read_text(encoding="utf-8", errors="replace")
        if not (directory / "report.json").exists():
            print(f"{target}: {how}\n{text[-2000:]}", file=sys.stderr)
            return [target, "-", "-", "-", f"1: {how}", "-", "-", "-"]
        report = json.loads((directory / "report.json").read_text(encoding="ascii"))
        for key, literal in report["findings"]:
            print(f"{target}: {key}\n    {literal}", file=sys.stderr)
            if store:
                corpus.append(target, [ast.literal_eval(literal)], key)
        if store and report["guided"]:
            reached = [path.read_bytes() for path in (directory / "corpus").iterdir()]
            corpus.append(target, distil(target, reached))
    edges = _COVERAGE.findall(text)
    return [
        target,
        f"{report['runs']:,}",
        f"{report['runs'] / report['seconds']:,.0f}",
        f"{int(edges[-1]):,}" if edges else "-",
        str(len(report["findings"])),
        f"{report['cpu_ms_max']:.0f}",
        f"{report['rss_mib_start']:.0f} → {report['rss_mib_end']:.0f}",
        f"{report['blocks_grown']:,}",
    ]


def main() -> int:
    """Run the campaign; return the exit code."""
    options = _arguments()
    names = options.targets or list(TARGETS)
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        print(f"no such target: {', '.join(unknown)}", file=sys.stderr)
        return 2
    seconds = options.seconds * options.jobs / len(names)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda name: _work(name, seconds, options.seed, options.store), names))
    heads = [
        "target",
        "inputs",
        "a second",
        "edges",
        "findings",
        "CPU ms, slowest",
        "RSS MiB, warm → end",
        "blocks grown",
    ]
    lines = ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]
    print("\n".join(lines))
    return 0 if all(row[4] == "0" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
