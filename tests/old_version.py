"""The last version without queues, from the history of this repository: to run its server beside today's."""

import atexit
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.server_process import ServerProcess, environment, read_lines, spawn

ROOT = Path(__file__).parents[1]
COMMIT = "629cc7d"
"""The last one that served tables only."""


@cache
def _source() -> Path | None:
    """Return the directory of the version's package, taken out of the history once; None where there is no history."""
    archive = subprocess.run(["git", "archive", COMMIT, "src"], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        return None
    target = Path(mkdtemp(prefix="lazulite-old-"))
    atexit.register(shutil.rmtree, target, ignore_errors=True)
    subprocess.run(["tar", "-x", "-C", str(target)], input=archive.stdout, check=True)
    return target / "src"


@contextmanager
def old_server(*arguments: str, **variables: str) -> Iterator[ServerProcess]:
    """Run the old version's server until the block ends; skip the test where there is no history."""
    source = _source()
    if source is None:
        pytest.skip(f"the history of this checkout does not reach back to {COMMIT}")
    environ = environment(PYTHONPATH=str(source), **variables)
    with spawn("serve", "--silent", "--table-port", "0", *arguments, variables=environ) as process:
        try:
            assert process.stderr is not None
            yield ServerProcess(process, read_lines(process, 2), process.stderr)
        finally:
            process.kill()
