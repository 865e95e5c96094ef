"""All campaigns by name."""

from .campaign import Campaign
from .clock import CLOCK
from .crash import CRASH
from .faults import FAULTS
from .linearizability.campaign import LINEARIZABILITY
from .power import POWER

CAMPAIGNS: dict[str, Campaign] = {
    "crash": CRASH,
    "power": POWER,
    "linearizability": LINEARIZABILITY,
    "clock": CLOCK,
    "faults": FAULTS,
}
