"""Drive a protocol: perform each of its effects, and send back the result or the error."""

from collections.abc import Callable
from typing import TypeVar, cast

from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.failpoints import Crash

T = TypeVar("T")


def drive(protocol: Protocol[T], perform: Callable[[Effect[object]], object]) -> T:
    """Run a protocol to its end, and return what it returns or raise what it raises.

    Args:
        protocol: the protocol.
        perform: performs one effect. A `Crash` that it raises ends the run; the protocol sees every other error.
    """
    answer: object = None
    error: Exception | None = None
    while True:
        try:
            effect = protocol.send(answer) if error is None else protocol.throw(error)
        except StopIteration as stop:
            return cast(T, stop.value)
        answer, error = None, None
        try:
            answer = perform(effect)
        except Crash:
            raise
        except Exception as failed:  # noqa: BLE001 - the protocol sees every error of its effect.
            error = failed
