"""The authenticator that most tests of credentials use."""

import pytest

from .credentials import Fixture


@pytest.fixture
def service() -> Fixture:
    return Fixture()
