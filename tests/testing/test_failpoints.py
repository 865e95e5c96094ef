"""Failures that are counted."""

import pytest

from lazulite.engine.contract import EngineUnavailableError
from lazulite.testing.failpoints import NextFailures


def test_a_step_fails_as_often_as_was_asked_for_and_the_others_pass() -> None:
    failpoints = NextFailures()
    failpoints.fail("before_sync", 2)
    for _ in range(2):
        failpoints["before_write"]()
        with pytest.raises(EngineUnavailableError, match="before_sync"):
            failpoints["before_sync"]()
    for failpoint in failpoints.values():
        failpoint()
