"""A task that calls a function of the program: what `Tasks.task` makes of it.

The argument of `start` is in the message as JSON, and the function gets it with the type of its parameter. So the
argument may be all that msgspec writes as JSON and reads again: numbers, texts, times, lists, dataclasses.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

from lazulite_patterns.effects.calls import Call
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.transactions.messages import MessageFormatError, TaskMessage
from lazulite_patterns.transactions.task import Task

A = TypeVar("A")
R = TypeVar("R")


class FunctionTask(Task[A], Generic[A, R]):
    """Calls a function with the argument of the message, once or more. It can be called as the function itself."""

    def __init__(self, name: str, function: Callable[[A], R]) -> None:
        """Take the name in messages, and the function.

        Raises:
            TypeError: the function has not one parameter.
        """
        super().__init__(name)
        self._function = function
        self._type = _parameter_type(function)
        self.__doc__ = function.__doc__

    def __call__(self, argument: A) -> R:
        """Call the function at once, without a message."""
        return self._function(argument)

    def begin(self, argument: A) -> Protocol[TaskMessage]:
        """Return the message with the argument.

        Raises:
            TypeError: JSON has no form for the argument, or no worker could read it as the parameter's type.
        """
        body: object = msgspec.to_builtins(argument, str_keys=True)
        try:
            self._argument_of(body)
        except msgspec.ValidationError as error:
            raise TypeError(f"task {self.name}: {error}") from error
        return TaskMessage(self.name, (yield from perform(NewId())), body)

    def handle(self, message: TaskMessage) -> Protocol[None]:
        """Call the function, which may raise errors: then the message is delivered again.

        Raises:
            MessageFormatError: the message has no argument of the parameter's type.
        """
        try:
            argument = self._argument_of(message.body)
        except msgspec.ValidationError as error:
            raise MessageFormatError(f"task {self.name}: {error}") from error
        yield from perform(Call(self._function, (argument,)))

    def _argument_of(self, body: object) -> Any:
        return msgspec.convert(body, self._type, str_keys=True)


def _parameter_type(function: Callable[[A], R]) -> Any:
    """Return the annotation of a function's parameter; `Any` if it has none."""
    parameters = list(signature(function).parameters)
    if len(parameters) != 1:
        raise TypeError(f"a task has one argument, and {function} takes {len(parameters)}")
    hints = get_type_hints(function) if hasattr(function, "__annotations__") else {}
    return hints.get(parameters[0], Any)
