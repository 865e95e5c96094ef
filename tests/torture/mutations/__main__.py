"""A server that breaks one of its promises on purpose: `python -m tests.torture.mutations NAME serve …`.

NAME may be several names with a plus between them, of variants too, which break no promise.
Each mutation is a name and a function that changes the running program. A campaign that finds no problem in a mutated
server proves nothing: the tests show that each campaign finds its own mutations.
"""

import sys
from collections.abc import Callable

from lazulite.cli import main
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
    **linearizability.MUTATIONS,
    **linearizability.MUTATIONS_ON_POSTGRES,
    **linearizability_on_workers.MUTATIONS,
}


if __name__ == "__main__":
    for each in sys.argv[1].split("+"):
        {**MUTATIONS, **VARIANTS}[each]()
    del sys.argv[1]
    sys.exit(main())
