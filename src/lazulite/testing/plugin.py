"""Fixtures for pytest, there wherever Lazulite is installed. The server is imported by the first test that uses one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lazulite.testing import Account, Faults, Storage


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting `lazulite_seed`."""
    parser.addini("lazulite_seed", "seed file of lazulite_server, relative to the root directory", default="")


@pytest.fixture(scope="session")
def lazulite_server(request: pytest.FixtureRequest) -> "Iterator[Storage]":
    """Yield a server in memory that all tests of a process share. It begins with the seed of `lazulite_seed`."""
    from lazulite.testing import server  # noqa: PLC0415 - see above

    seed = request.config.getini("lazulite_seed")
    with server(seed=request.config.rootpath / seed if seed else None) as storage:
        yield storage


@pytest.fixture
def lazulite_storage(lazulite_server: "Storage") -> "Iterator[Storage]":
    """Yield the shared server with the data of its seed, and return it to them after the test."""
    yield lazulite_server
    lazulite_server.reset()


@pytest.fixture
def lazulite_account(lazulite_server: "Storage") -> "Account":
    """Return an account of the shared server that no other test has, without a table."""
    return lazulite_server.account()


@pytest.fixture
def lazulite_faults(lazulite_server: "Storage") -> "Iterator[Faults]":
    """Yield the rules of faults of the shared server, none at first, and remove them after the test."""
    yield lazulite_server.faults
    lazulite_server.faults.clear()
