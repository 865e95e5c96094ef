"""Python environments of SDKs whose packages conflict with today's or are large, one each, and programs in them.
Also the lock that an installation holds, as two runs of the tests may overlap.

Invariants: an environment is `.venv/sdk/NAME-DIGEST`, the digest that of its requirements and of the interpreter, so
that a complete one never changes. It is complete once its marker is there, and only its lock's holder completes it.
"""

import ast
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".venv" / "sdk"
INSTALL_SECONDS_MAX = 300
RUN_SECONDS_MAX = 120
CASES = Path(__file__).parent / "legacy"
"""Has `cases.py`, which says how a program tells what it found."""


@contextmanager
def exclusive(name: str, cache: Path = CACHE) -> Iterator[None]:
    """Hold the lock of what is installed under a name; wait for it as long as another run takes."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def environment(requirements: Path, cache: Path = CACHE) -> Path:
    """Return the interpreter of an environment that holds just what a requirements file pins; install it if need be."""
    made_of = requirements.read_bytes() + sys.version.encode() + sys.base_prefix.encode()
    directory = cache / f"{requirements.stem}-{sha256(made_of).hexdigest()[:12]}"
    python = directory / "bin" / "python"
    marker = directory / ".installed"
    with exclusive(directory.name, cache):
        if not marker.exists():
            _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(directory))
            pip = (sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check")
            # Nothing that is not pinned; that nothing is missing, `check` tells.
            _run(*pip, "install", "--no-deps", "--requirement", str(requirements))
            _run(*pip, "check")
            marker.touch()
    return python


def cases_of(program: Path) -> list[str]:
    """Return the cases of a program, which cannot be imported here."""
    tree = ast.parse(program.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def outcomes(requirements: Path, program: Path, connection_string: str) -> dict[str, str | None]:
    """Run the cases of a program against an account. Return the failure of each case, or None."""
    variables = {"LAZULITE_TEST_CONNECTION_STRING": connection_string, "NO_PROXY": "*", "PYTHONPATH": str(CASES)}
    done = subprocess.run(
        [environment(requirements), program],
        env=bare() | variables,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{requirements.stem} exited with {done.returncode}:\n{done.stderr}"
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


def bare() -> dict[str, str]:
    """Return this process's variables, except variables that lead an interpreter to other packages."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}


def _run(*command: str) -> None:
    done = subprocess.run(
        command,
        env=bare(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}"
