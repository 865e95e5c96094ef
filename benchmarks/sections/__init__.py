"""The sections of the benchmark, each a function that measures with a `Bench`, by name and in order."""

from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.sections import big, connections, growth, postgres, startup, table

SECTIONS: dict[str, Callable[[Bench], None]] = {
    "startup": startup.run,
    "table": table.run,
    "connections": connections.run,
    "growth": growth.run,
    "big": big.run,
    "postgres": postgres.run,
}
