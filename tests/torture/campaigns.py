"""All campaigns by name."""

from .abuse import ABUSE
from .campaign import Campaign
from .linearizability.campaign import LINEARIZABILITY

CAMPAIGNS: dict[str, Campaign] = {
    "abuse": ABUSE,
    "linearizability": LINEARIZABILITY,
}
