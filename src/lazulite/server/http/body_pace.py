"""Whether a body comes fast enough. It is looked at once a tick, while something waits for it.

Invariants: only progress counts, never the total: a body of any length may come for as long as it comes. The time in
which the service works on what has come, or the server has no room, is not the client's.
"""

from lazulite.server.http.timeouts import TICK_SECONDS
from lazulite.server.limits import Limits


class BodyPace:
    """Of one body.

    Args:
        limits: the bounds.
    """

    __slots__ = ("_awaited_s", "_limits", "_progress_s", "_received_bytes", "_since_s")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._awaited_s = 0.0
        self._since_s = 0.0
        self._progress_s = 0.0
        self._received_bytes = -1

    def await_more(self, now_s: float) -> None:
        """Begin to wait."""
        self._since_s = self._progress_s = now_s

    def end_wait(self, now_s: float) -> None:
        """Wait no more, for a while or for ever."""
        self._awaited_s += now_s - self._since_s

    def shift(self, seconds: float) -> None:
        """Take time out of the wait that was not the client's."""
        self._since_s += seconds
        self._progress_s += seconds

    def is_too_slow(self, received_bytes: int, now_s: float, *, crowded: bool) -> bool:
        """Return whether to give the body up, of which so much has come; while it is crowded it has to come fast."""
        limits = self._limits
        if received_bytes != self._received_bytes:
            self._received_bytes, self._progress_s = received_bytes, now_s
        took_s = self._awaited_s + now_s - self._since_s
        asked_bytes = (took_s - limits.slow_body_seconds) * limits.body_bytes_per_second
        if crowded:
            asked_bytes = max(asked_bytes, (took_s - TICK_SECONDS) * limits.crowded_body_bytes_per_second)
        return received_bytes < asked_bytes or now_s - self._progress_s >= limits.body_stall_seconds
