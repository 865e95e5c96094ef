"""The two sides of a copy: a sender of each for each thread, as a sender is not for several threads."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple, Self

from lazulite.resources.sender import Sender

OpenSender = Callable[[], AbstractContextManager[Sender]]
"""Opens a sender of an account."""


class SenderPair(NamedTuple):
    """A sender of each side."""

    source: Sender
    target: Sender


class SenderPairs:
    """Opens senders, one pair for each thread, and closes them at the end. Use it as a context manager.

    Args:
        source: opens a sender of the source.
        target: opens a sender of the target.
        workers: the number of requests under way at a time.
    """

    def __init__(self, source: OpenSender, target: OpenSender, workers: int) -> None:
        self._source = source
        self._target = target
        self._local = threading.local()
        self._opened = ExitStack()
        self._lock = threading.Lock()
        self.pool = ThreadPoolExecutor(workers, "lazulite-copy")
        """Runs the work of several items at once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        self._opened.close()

    def pair(self) -> SenderPair:
        """Return the senders of this thread."""
        pair: SenderPair | None = getattr(self._local, "pair", None)
        if pair is None:
            with self._lock:
                enter = self._opened.enter_context
                pair = self._local.pair = SenderPair(enter(self._source()), enter(self._target()))
        return pair
