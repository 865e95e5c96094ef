"""All campaigns by name."""

from .campaign import Campaign
from .linearizability.campaign import LINEARIZABILITY

CAMPAIGNS: dict[str, Campaign] = {
    "linearizability": LINEARIZABILITY,
}
