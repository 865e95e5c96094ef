"""Procedures of the primary, as tables: the methods of an object that all processes of a store share.

An `Interface` tells how the arguments and the result of each method are sent. From it follow the procedures at the
primary, which has the object, and the object of the same methods that a worker has in its place.

Calls of a method that is called often can travel together: the calls of one iteration of the event loop become one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from lazulite.engine.commit import Plain
from lazulite.engine.contract import EngineError
from lazulite.engine.remote.messages import Primary, Procedure

T = TypeVar("T")

CALLS_MAX = 64
"""So many calls are sent together."""
BYTES_MAX = 1 << 18
"""So many bytes are among the arguments of calls that are sent together, or a single call has more."""


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
    together: str = ""
    """The method that takes several calls with the same first argument: that argument, and the others of each call. It
    returns their results, or fails all of them. Empty: there is none."""


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
            if not method.together
        }

    def stub(self, primary: Primary) -> T:
        """Return an object whose methods call those at the primary."""
        methods: dict[str, Callable[..., Awaitable[Plain]]] = {
            name: partial(_call, method, primary, f"{self._name}.{name}") for name, method in self._methods.items()
        }
        for name, method in self._methods.items():
            if method.together:
                methods[name] = _CallCollector(method.arguments[0], methods[method.together]).call
        return cast("T", _Stub(methods))


class _Stub:
    def __init__(self, methods: Mapping[str, object]) -> None:
        self.__dict__.update(methods)


class _CallCollector:
    """Gathers the calls of a method in one iteration of the event loop.

    Args:
        form: of the first argument.
        send: takes several calls, see `Method.together`.
    """

    def __init__(self, form: Form, send: Callable[[object, list[tuple[object, ...]]], Awaitable[Plain]]) -> None:
        self._form = form
        self._send = send
        self._gathered: dict[Plain, _GatheredCalls] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def call(self, first: object, *others: object) -> Plain:
        """Send a call soon; return its result."""
        key = self._form.encode(first)
        calls = self._gathered.get(key)
        size_bytes = sum(len(each) for each in others if isinstance(each, bytes))
        if calls is not None and (len(calls.waiters) >= CALLS_MAX or calls.size_bytes + size_bytes > BYTES_MAX):
            self._flush()
            calls = None
        loop = asyncio.get_running_loop()
        if calls is None:
            if not self._gathered:
                loop.call_soon(self._flush)
            calls = self._gathered[key] = _GatheredCalls(first)
        waiter: asyncio.Future[Plain] = loop.create_future()
        calls.others.append(others)
        calls.waiters.append(waiter)
        calls.size_bytes += size_bytes
        try:
            return await waiter
        finally:
            del waiter  # An error's traceback refers to this frame, and the frame would refer to the error.

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for calls in gathered.values():
            task = asyncio.get_running_loop().create_task(self._run(calls))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _run(self, calls: "_GatheredCalls") -> None:
        try:
            results = await self._send(calls.first, calls.others)
        except Exception as error:  # noqa: BLE001 - whatever it is, the callers wait for it
            for waiter in calls.waiters:
                if not waiter.done():
                    # A traceback grows where one error is raised twice.
                    waiter.set_exception(type(error)(*error.args) if isinstance(error, EngineError) else error)
        else:
            for waiter, result in zip(calls.waiters, results, strict=True):
                if not waiter.done():
                    waiter.set_result(result)


class _GatheredCalls:
    """Calls with the same first argument, which are sent together."""

    __slots__ = ("first", "others", "size_bytes", "waiters")

    def __init__(self, first: object) -> None:
        self.first = first
        self.others: list[tuple[object, ...]] = []
        self.waiters: list[asyncio.Future[Plain]] = []
        self.size_bytes = 0


async def _call(method: Method, primary: Primary, name: str, *arguments: object) -> Plain:
    sent = [form.encode(argument) for form, argument in zip(method.arguments, arguments, strict=True)]
    return method.result.decode(await primary.call(name, *sent))


async def _run(method: Method, function: Procedure, *sent: Plain) -> Plain:
    arguments = [form.decode(each) for form, each in zip(method.arguments, sent, strict=True)]
    return method.result.encode(await function(*arguments))
