"""The suites that talk to a running server, through two workers: the parts where the workers show through.

All of them: `LAZULITE_TEST_ENGINE=workers pytest tests/conformance tests/sdk`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.postgres.engine_under_test import VARIABLE

TESTS = Path(__file__).parent.parent
SUITES = {
    "conformance": ("batch_rules", "continuation", "entity_writes", "if_match", "query_classes", "stored_policies"),
    "conformance/queue": ("authorization", "messages", "queues"),
    "sdk": ("python_blobs", "python_queues", "python_service", "python_transactions"),
}


@pytest.mark.skipif(VARIABLE in os.environ, reason="all of the suites are on another engine")
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_passes_through_workers(suite: str) -> None:
    files = [str(TESTS / suite / f"test_{name}.py") for name in SUITES[suite]]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        cwd=TESTS.parent,
        env={**os.environ, VARIABLE: "workers"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
