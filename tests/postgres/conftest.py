"""The server that the tests of a run share."""

import pytest

from tests.postgres.server import Postgres, shared


@pytest.fixture
def postgres() -> Postgres:
    """A running server; make databases on it."""
    return shared()
