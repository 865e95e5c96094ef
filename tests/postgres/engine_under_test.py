"""Which engine the servers of tests serve from: one parameter for all suites that start servers.

`LAZULITE_TEST_ENGINE=postgres` in the environment puts every location on a database of its own, on a Citus cluster if
`LAZULITE_TEST_CITUS` names its coordinator. A test that says of a server that it is `--in-memory` still gets what it
says. Anything else leaves locations what they are.
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


def store_at(location: Path) -> Store:
    """Return the store that stands for a location: the same one for the same location."""
    if os.environ.get(VARIABLE) != "postgres":
        return Store(("--location", str(location)), {})
    return Store((), {DATABASE: _database(location)})


@cache
def _database(location: Path) -> str:
    return shared().dsn(shared().create_database())
