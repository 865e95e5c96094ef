"""A command of the control channel: its name, its arguments, and the errors of both sides.

The package that owns a command declares it as a `Command`, whose arguments are a frozen dataclass. The fields are the
schema: the server checks a request by them, and a client sends them. A handler yields the items of the response.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType
from typing import Any, Generic, TypeAlias, TypeVar, get_args, get_type_hints

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""What a line of JSON can hold."""
A = TypeVar("A")

Handler: TypeAlias = Callable[[A], AsyncGenerator[Json, None]]
"""Takes the arguments, and yields the items. May raise `ControlError` and `EngineError`. It is closed when the client
closes the connection or the time is over, so its cleanup stands in a `finally`."""

_TYPES: Mapping[type, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float), bool: (bool,)}
"""Type of a field -> types of JSON values that it takes. `bool` is no `int` here."""
_NOUNS = {str: "text", int: "an integer", float: "a number", bool: "true or false", NoneType: "null"}


class ControlError(Exception):
    """A command was rejected or failed. Handlers raise it, and the client that sent the command raises it again.

    Args:
        code: for programs, such as `unknown-command`; see docs/operations/control.md.
        text: one line for people, without secrets.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class NoArguments:
    """The arguments of a command that has none."""


@dataclass(frozen=True, slots=True)
class AccountArguments:
    """The arguments of a command about an account."""

    account: str


@dataclass(frozen=True, slots=True)
class Command(Generic[A]):
    """A command, as its client and its server know it."""

    name: str
    arguments: type[A]
    """A frozen dataclass. Its fields are `str`, `int`, `float` or `bool`, or one of these and None."""
    seconds_max: float | None = 60.0
    """The time that the server gives it; None: until the client closes the connection."""

    def parse(self, given: Json) -> A:
        """Return the arguments of a request.

        Raises:
            ControlError: there are others, one is missing, or a value has another type.
        """
        if not isinstance(given, Mapping):
            raise ControlError("bad-request", f"the arguments of {self.name} must be an object")
        assert is_dataclass(self.arguments)
        types: Mapping[str, Any] = get_type_hints(self.arguments)
        needed = {each.name for each in fields(self.arguments) if each.default is MISSING}
        for wrong, names in (("has no", given.keys() - types.keys()), ("needs the", needed - given.keys())):
            if names:
                raise ControlError("bad-request", f"{self.name} {wrong} argument {min(names)[:64]!r}")
        for name, value in given.items():
            self._check(name, value, get_args(types[name]) or (types[name],))
        try:
            return self.arguments(**given)
        except ValueError as error:  # Of `__post_init__`, which checks what types cannot say.
            raise ControlError("bad-request", f"{self.name}: {error}") from None

    def _check(self, name: str, value: Json, types: tuple[type, ...]) -> None:
        if not any(type(value) in _TYPES.get(each, (each,)) for each in types):
            nouns = " or ".join(_NOUNS[each] for each in types)
            raise ControlError("bad-request", f"{self.name}: {name} must be {nouns}")


async def single(result: Coroutine[None, None, Json]) -> AsyncGenerator[Json, None]:
    """Yield the result of a coroutine: the response of a command that has one item."""
    yield await result
