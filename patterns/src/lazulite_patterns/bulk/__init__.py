"""Many rows at a time: loads and deletes in transactions, with bounded memory, which may be killed and resumed."""

from lazulite_patterns.bulk.job import Limits, Progress, Report, TooManyFailures
from lazulite_patterns.bulk.load import delete, load
from lazulite_patterns.bulk.sending import Failure
from lazulite_patterns.bulk.state import State

__all__ = [
    "Failure",
    "Limits",
    "Progress",
    "Report",
    "State",
    "TooManyFailures",
    "delete",
    "load",
]
