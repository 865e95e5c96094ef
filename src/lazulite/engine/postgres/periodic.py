"""Actions of an engine in the background, each repeated after a time; an unavailable database stops none of them."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from lazulite.engine.contract import EngineError

Action = Callable[[], Awaitable[object]]


class Periodic:
    """Repeats actions in a task each, since one of them may take long.

    Args:
        actions: they are called in no order.
        seconds: the pause before each call.

    Attributes:
        tasks: those of the actions, while they are repeated.
    """

    def __init__(self, actions: tuple[Action, ...], seconds: float) -> None:
        self._actions = actions
        self._seconds = seconds
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin with the first pause."""
        self.tasks = [asyncio.create_task(self._repeated(action)) for action in self._actions]

    async def close(self) -> None:
        """Cancel the actions."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _repeated(self, action: Action) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            with contextlib.suppress(EngineError):  # The database is unavailable; the next round tries again.
                await action()
