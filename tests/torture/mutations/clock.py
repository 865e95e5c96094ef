"""Mutations that a clock which steps must bring to light; each comes with that clock."""

import time
from collections.abc import Callable

from lazulite.engine.rocksdb.database import OpenDatabase
from lazulite.server.server import Server
from lazulite.service.definition import ServiceDependencies
from tests.torture import stepping_clock
from tests.torture.mutations import replace_attributes


def timestamp_by_clock() -> None:
    """Give a commit the time of day as its timestamp, whatever came before."""
    stepping_clock.install()
    replace_attributes(OpenDatabase, newest_timestamp=property(lambda _: 0, lambda _, __: None))


def forget_timestamp() -> None:
    """Begin again with the time of day at each start."""
    stepping_clock.install()
    replace_attributes(OpenDatabase, stored_timestamp=lambda _: 0)


def wall_deadlines() -> None:
    """Count what connections and pages may take on the wall clock."""
    stepping_clock.install()
    for function, argument in ((Server.__init__, "clock"), (ServiceDependencies.__init__, "monotonic")):
        defaults = function.__kwdefaults__
        assert defaults is not None
        assert argument in defaults
        defaults[argument] = time.time


MUTATIONS: dict[str, Callable[[], None]] = {
    "timestamp_by_clock": timestamp_by_clock,
    "forget_timestamp": forget_timestamp,
    "wall_deadlines": wall_deadlines,
}
