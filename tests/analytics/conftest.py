from collections.abc import AsyncIterator

import pytest

from tests.analytics.store import Store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = Store()
    yield opened
    await opened.engine.close()
