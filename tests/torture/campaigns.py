"""All campaigns by name."""

from .campaign import Campaign

CAMPAIGNS: dict[str, Campaign] = {}
