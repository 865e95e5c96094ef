"""Request ids, shaped as the service shapes them: `c456af8b-0002-0019-7292-21dbc3000000`."""

from random import Random


class RequestIds:
    """A source of ids, unique within a process and unlikely to repeat across processes.

    Args:
        random: where the process's own part comes from.
        service: 2 for tables, 3 for queues, 0x1e for blobs, as the live service numbers them.
    """

    def __init__(self, random: Random, service: int = 2) -> None:
        self._prefix = f"{random.getrandbits(32):08x}-{service:04x}-"
        self._suffix = f"-{random.getrandbits(24):06x}000000"
        self._count = random.getrandbits(31)
        self._head = self._head_of(self._count)

    def _head_of(self, count: int) -> str:
        """Return what comes before a number's last four digits."""
        return f"{self._prefix}{count >> 16:04x}-"

    def next(self) -> str:
        """Return a new id, 36 characters."""
        self._count = count = (self._count + 1) & 0xFFFFFFFF
        low = count & 0xFFFF
        if not low:
            self._head = self._head_of(count)
        return f"{self._head}{low:04x}{self._suffix}"
