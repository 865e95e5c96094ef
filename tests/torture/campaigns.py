"""All campaigns by name."""

from . import power
from .campaign import Campaign
from .linearizability.campaign import LINEARIZABILITY

CAMPAIGNS: dict[str, Campaign] = {
    "linearizability": LINEARIZABILITY,
    "power": power.CAMPAIGN,
}
