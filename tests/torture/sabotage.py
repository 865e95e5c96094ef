"""A server that breaks one of its promises on purpose: `python -m tests.torture.sabotage NAME serve …`.

NAME may be several names with a plus between them, of variants too, which break no promise.
Each sabotage is a name and what it does to the running program. A campaign that is content with a sabotaged server
proves nothing; the tests see to it that each campaign finds the sabotages that are its own.
"""

import sys
from collections.abc import Callable

from lazulite.cli import main

from . import sabotage_abuse, sabotage_clock, sabotage_crash, sabotage_faults, sabotage_power, sabotage_rolling
from .linearizability import sabotages as linearizability
from .variants import VARIANTS

SABOTAGES: dict[str, Callable[[], None]] = {
    **sabotage_abuse.SABOTAGES,
    **sabotage_clock.SABOTAGES,
    **sabotage_crash.SABOTAGES,
    **sabotage_faults.SABOTAGES,
    **sabotage_power.SABOTAGES,
    **sabotage_rolling.SABOTAGES,
    **linearizability.SABOTAGES,
    **linearizability.SABOTAGES_ON_POSTGRES,
}


if __name__ == "__main__":
    for each in sys.argv[1].split("+"):
        {**SABOTAGES, **VARIANTS}[each]()
    del sys.argv[1]
    sys.exit(main())
