"""All campaigns by name."""

from .abuse import ABUSE
from .campaign import Campaign
from .clock import CLOCK
from .crash import CRASH
from .faults import FAULTS
from .linearizability.campaign import LINEARIZABILITY
from .linearizability.on_postgres import LINEARIZABILITY_ON_POSTGRES
from .power import POWER
from .rolling import ROLLING

CAMPAIGNS: dict[str, Campaign] = {
    "crash": CRASH,
    "power": POWER,
    "linearizability": LINEARIZABILITY,
    "linearizability-postgres": LINEARIZABILITY_ON_POSTGRES,
    "faults": FAULTS,
    "clock": CLOCK,
    "abuse": ABUSE,
    "rolling": ROLLING,
}
