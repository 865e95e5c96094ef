"""How far a load is, as a checkpoint keeps it."""

import json
from typing import NamedTuple

from lazulite_patterns.bulk.sending import Failure
from lazulite_patterns.effects.tables import EntityKey


class State(NamedTuple):
    """How far a load is. A load that has ended is not begun again: its checkpoint keeps the last state.

    Attributes:
        rows_done: the first rows of the source, all of which are done.
        failures: rows that failed so far.
    """

    rows_done: int = 0
    failures: tuple[Failure, ...] = ()

    def text(self) -> str:
        """Return the state for a checkpoint."""
        failures = [[each.number, each.key, each.reason] for each in self.failures]
        return json.dumps({"rows_done": self.rows_done, "failures": failures})

    @classmethod
    def of(cls, text: str | None) -> "State":
        """Return the state of a checkpoint; the first one for None."""
        if text is None:
            return cls()
        found = json.loads(text)
        return cls(found["rows_done"], tuple(_failure(each) for each in found["failures"]))


def _failure(found: tuple[int, list[str] | None, str]) -> Failure:
    number, key, reason = found
    return Failure(number, None if key is None else EntityKey(*key), reason)
