"""Calls of a method that travel together: which do, in which order, and how each gets its own outcome."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.remote.procedures import BYTES_MAX, CALLS_MAX, PLAIN, Form, Interface, Method, several

NAME = Form(str.encode, bytes.decode)


class Shelf:
    """What the primary has: texts by name."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.error: Exception | None = None
        self.called, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()

    async def put(self, name: str, text: bytes, number: int) -> int:
        [answer] = await self.put_all(name, [(text, number)])
        return answer

    async def put_all(self, name: str, puts: Sequence[tuple[bytes, int]]) -> list[int]:
        self.calls.append((name, len(puts)))
        self.called.set()
        await self.go.wait()
        if self.error is not None:
            raise self.error
        return [2 * number for _, number in puts]


SHELF: Interface[Shelf] = Interface(
    "shelf",
    {
        "put": Method((NAME, PLAIN, PLAIN), together="put_all"),
        "put_all": Method((NAME, several(Form(tuple, tuple))), several(PLAIN)),
    },
)


class Direct:
    """The primary, in this process."""

    def __init__(self, shelf: Shelf) -> None:
        self._procedures = SHELF.procedures(shelf)

    async def call(self, procedure: str, *arguments: Any) -> Any:
        return await self._procedures[procedure](*arguments)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 9)), max_size=20))
async def test_calls_of_one_moment_with_one_first_argument_are_one_call(asked: list[tuple[str, int]]) -> None:
    shelf = Shelf()
    stub = SHELF.stub(Direct(shelf))
    results = await asyncio.gather(*(stub.put(name, b"x", number) for name, number in asked))
    assert results == [2 * number for _, number in asked]
    names = [name for name, _ in asked]
    assert shelf.calls == [(name, names.count(name)) for name in dict.fromkeys(names)]


async def test_what_travels_together_is_bounded() -> None:
    shelf = Shelf()
    stub = SHELF.stub(Direct(shelf))
    await asyncio.gather(*(stub.put("a", b"", number) for number in range(2 * CALLS_MAX + 1)))
    assert shelf.calls == [("a", CALLS_MAX), ("a", CALLS_MAX), ("a", 1)]
    shelf.calls.clear()
    await asyncio.gather(*(stub.put("a", bytes(size), 0) for size in (BYTES_MAX, 1, BYTES_MAX - 1, 1)))
    assert shelf.calls == [("a", 1), ("a", 2), ("a", 1)]


async def test_an_error_is_every_callers_own() -> None:
    shelf = Shelf()
    shelf.error = EngineUnavailableError("full")
    stub = SHELF.stub(Direct(shelf))
    one, other = await asyncio.gather(stub.put("a", b"", 1), stub.put("a", b"", 2), return_exceptions=True)
    assert (repr(one), repr(other)) == (repr(shelf.error),) * 2
    assert one is not other
    shelf.error = LookupError("no")
    with pytest.raises(LookupError, match="no"):
        await stub.put("a", b"", 1)


async def test_a_caller_that_is_cancelled_takes_no_other_along() -> None:
    shelf = Shelf()
    shelf.go.clear()
    stub = SHELF.stub(Direct(shelf))
    one, other = (asyncio.create_task(stub.put("a", b"", number)) for number in (1, 2))
    await shelf.called.wait()
    one.cancel()
    shelf.go.set()
    assert await other == 4
    with pytest.raises(asyncio.CancelledError):
        await one
