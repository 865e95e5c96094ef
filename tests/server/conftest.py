"""A server without a socket for every test that asks for one; tests with sockets run on both event loops."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from lazulite.server.limits import Limits

from .wire import Wire


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.path.name in ("test_lifecycle.py", "test_outbound.py", "test_tls.py"):
        return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture
async def wire() -> Wire:
    return Wire(Limits())
