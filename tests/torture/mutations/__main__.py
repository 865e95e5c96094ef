"""A server that breaks one of its promises on purpose: `python -m tests.torture.mutations NAME serve …`.

NAME may be several names with a plus between them, of variants too, which break no promise.
Each mutation is a name and a function that changes the running program. A campaign that finds no problem in a mutated
server proves nothing: tests show that each campaign finds its own mutations.
"""

import sys
from collections.abc import Callable

from lazulite.cli import main
from tests.torture.blob import crash_mutations as blob_crash
from tests.torture.blob import damage_mutations as blob_damage
from tests.torture.blob import database_mutations as blob_database
from tests.torture.blob import mutations as blob
from tests.torture.blob import power_mutations as blob_power
from tests.torture.citus import mutations as citus
from tests.torture.linearizability import mutations as linearizability
from tests.torture.linearizability import worker_mutations as linearizability_on_workers
from tests.torture.queue import mutations as queue
from tests.torture.variants import VARIANTS

from . import abuse, clock, crash, faults, power, rolling

MUTATIONS: dict[str, Callable[[], None]] = {
    **abuse.MUTATIONS,
    **clock.MUTATIONS,
    **crash.MUTATIONS,
    **faults.MUTATIONS,
    **power.MUTATIONS,
    **rolling.MUTATIONS,
    **queue.MUTATIONS,
    **blob.MUTATIONS,
    **blob_crash.MUTATIONS,
    **blob_database.MUTATIONS,
    **blob_damage.MUTATIONS,
    **blob_power.MUTATIONS,
    **linearizability.MUTATIONS,
    **linearizability.MUTATIONS_ON_POSTGRES,
    **linearizability_on_workers.MUTATIONS,
    **citus.MUTATIONS,
}


def apply(names: str) -> None:
    """Change this process as names say, with a plus between two."""
    for each in names.split("+"):
        {**MUTATIONS, **VARIANTS}[each]()


if __name__ == "__main__":
    apply(sys.argv[1])
    del sys.argv[1]
    sys.exit(main())
