"""Handlers of signals on an event loop, on platforms whose loops have none too."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from types import FrameType


def handle_signals(loop: asyncio.AbstractEventLoop, handlers: Mapping[int, Callable[[], None]]) -> Callable[[], None]:
    """Call handlers on a loop at signals; return what ends that.

    Windows' event loops take no handlers. There, Python's own handlers wake the loop.

    Args:
        loop: the running loop, of the main thread.
        handlers: signal number -> what to call.
    """
    try:
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
    except NotImplementedError:
        return _handle_by_python(loop, handlers)

    def restore() -> None:
        for number in handlers:
            loop.remove_signal_handler(number)

    return restore


def _handle_by_python(
    loop: asyncio.AbstractEventLoop, handlers: Mapping[int, Callable[[], None]]
) -> Callable[[], None]:
    def on_signal(number: int, _: FrameType | None) -> None:
        loop.call_soon_threadsafe(handlers[number])

    before = {number: signal.signal(number, on_signal) for number in handlers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore
