"""All campaigns by name."""

from .campaign import Campaign
from .clock import CLOCK
from .crash import CRASH

CAMPAIGNS: dict[str, Campaign] = {
    "crash": CRASH,
    "clock": CLOCK,
}
