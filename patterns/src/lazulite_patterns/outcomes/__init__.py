"""Outcomes: a write whose answer is lost ends as it should."""

from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.outcomes.errors import Absent, Conflict, Exists, OutcomeUnknown, Unavailable
from lazulite_patterns.outcomes.retries import Policy
from lazulite_patterns.outcomes.ring import WriteIds

__all__ = ["Absent", "Conflict", "Exists", "OutcomeUnknown", "Policy", "Rejected", "Unavailable", "WriteIds"]
