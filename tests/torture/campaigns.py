"""All campaigns by name."""

from .campaign import Campaign
from .clock import CLOCK
from .crash import CRASH
from .faults import FAULTS
from .linearizability.campaign import LINEARIZABILITY

CAMPAIGNS: dict[str, Campaign] = {
    "crash": CRASH,
    "linearizability": LINEARIZABILITY,
    "clock": CLOCK,
    "faults": FAULTS,
}
