"""A protocol is a generator of effects. It does no I/O: a driver performs each effect and sends its result back.

So a protocol is written once, for synchronous and asynchronous programs and for simulations. Every effect is a place at
which a test lets the process crash, loses the answer, or lets a rival write first.
"""

from collections.abc import Generator
from typing import Any, Generic, TypeAlias, TypeVar, cast

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
T = TypeVar("T")


class Effect(Generic[R_co]):
    """What a protocol asks for; `R_co` is the type of its result."""

    __slots__ = ()


Protocol: TypeAlias = Generator[Effect[object], object, T]


def perform(effect: Effect[R]) -> Protocol[R]:
    """Ask for an effect: `stored = yield from perform(Read(…))`. Errors of the effect are raised here."""
    return cast(R, (yield effect))


def immediately(value: R) -> Generator[Any, object, R]:
    """Return a protocol without an effect."""
    return value
    yield
