"""Effects that run a program's own functions, bound requests in time, or repeat a protocol while another one runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lazulite_patterns.effects.effect import Effect, Protocol

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Call(Effect[object]):
    """Call a function of the program. The asynchronous driver awaits what it returns, if it is awaitable.

    The synchronous driver raises TypeError for an asynchronous function.
    """

    function: Callable[..., object]
    arguments: tuple[object, ...] = ()
    requests: bool = False
    """Whether the function sends a request: it takes the options of the SDK that bound the time of one."""


@dataclass(frozen=True)
class WithTimeout(Effect[T], Generic[T]):
    """Perform a request, and wait for its answer for a limited time. After that its result is unknown.

    The time holds for the connection, and for each part of the answer that comes.
    """

    effect: Effect[T]
    seconds: float


@dataclass(frozen=True, eq=False)
class WithHeartbeat(Effect[T], Generic[T]):
    """Run a protocol, and another one again and again until the first ends. The result is that of the first.

    A `heartbeat` that is running when the first ends is awaited. Its errors are ignored: it reports by what it changes.
    """

    protocol: Protocol[T]
    heartbeat: Callable[[], Protocol[None]]
    every_seconds: float
