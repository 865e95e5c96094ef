"""Which engine the servers of tests serve from: one parameter for all suites that start servers.

`LAZULITE_TEST_ENGINE=postgres` in the environment puts every location on a database of its own, on a Citus cluster if
`LAZULITE_TEST_CITUS` names its coordinator. `LAZULITE_TEST_ENGINE=workers` has two workers on every location. A test
that says of a server that it is `--in-memory` still gets what it says. Anything else leaves locations what they are.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .server import shared

VARIABLE = "LAZULITE_TEST_ENGINE"
DATABASE = "LAZULITE_ENGINE"
"""The variable that tells `lazulite` itself of a database."""


class Store(NamedTuple):
    """What tells `lazulite serve` where its rows are."""

    arguments: Sequence[str]
    variables: Mapping[str, str]


WORKERS = ("--workers", "2")


def in_process() -> bool:
    """Tell whether a server in the process of the tests may stand for one on a location."""
    return VARIABLE not in os.environ


def on_database() -> bool:
    """Tell whether rows are in a database."""
    return os.environ.get(VARIABLE) == "postgres"


def store_at(location: Path) -> Store:
    """Return the store that stands for a location: the same one for the same location."""
    if on_database():
        return Store((), {DATABASE: _database(location)})
    return Store(("--location", str(location), *(() if in_process() else WORKERS)), {})


@cache
def _database(location: Path) -> str:
    return shared().dsn(shared().create_database())
