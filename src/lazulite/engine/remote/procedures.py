"""Procedures of the primary, as tables: the methods of an object that all processes of a store share.

An `Interface` tells how the arguments and the result of each method are sent. From it follow the procedures at the
primary, which has the object, and the object of the same methods that a worker has in its place.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from lazulite.engine.commit import Plain
from lazulite.engine.remote.messages import Primary, Procedure

T = TypeVar("T")


class Form(NamedTuple):
    """How values of one kind are sent."""

    encode: Callable[[Any], Plain]
    decode: Callable[[Plain], Any]


PLAIN = Form(lambda value: value, lambda value: value)
"""The form of values that are plain already."""


def several(form: Form) -> Form:
    """Return the form of lists."""
    return Form(
        lambda values: [form.encode(value) for value in values], lambda sent: [form.decode(each) for each in sent]
    )


def optional(form: Form) -> Form:
    """Return the form of values that may be None."""
    return Form(
        lambda value: None if value is None else form.encode(value),
        lambda sent: None if sent is None else form.decode(sent),
    )


class Method(NamedTuple):
    """How the calls of one method are sent. All its arguments are positional."""

    arguments: Sequence[Form]
    result: Form = PLAIN


class Interface(Generic[T]):
    """The methods of an object that workers call at the primary.

    Args:
        name: begins the names of the procedures.
        methods: by name.
    """

    def __init__(self, name: str, methods: Mapping[str, Method]) -> None:
        self._name = name
        self._methods = methods

    def procedures(self, target: T) -> Mapping[str, Procedure]:
        """Return the procedures of the process that has the object."""
        return {
            f"{self._name}.{name}": partial(_run, method, getattr(target, name))
            for name, method in self._methods.items()
        }

    def stub(self, primary: Primary) -> T:
        """Return an object whose methods call those at the primary."""
        methods = {
            name: partial(_call, method, primary, f"{self._name}.{name}") for name, method in self._methods.items()
        }
        return cast("T", _Stub(methods))


class _Stub:
    def __init__(self, methods: Mapping[str, object]) -> None:
        self.__dict__.update(methods)


async def _call(method: Method, primary: Primary, name: str, *arguments: object) -> Plain:
    sent = [form.encode(argument) for form, argument in zip(method.arguments, arguments, strict=True)]
    return method.result.decode(await primary.call(name, *sent))


async def _run(method: Method, function: Procedure, *sent: Plain) -> Plain:
    arguments = [form.decode(each) for form, each in zip(method.arguments, sent, strict=True)]
    return method.result.encode(await function(*arguments))
