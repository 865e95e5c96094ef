"""The suites that talk to a running server, on PostgreSQL: the parts where the engine shows through.

All of them: `LAZULITE_TEST_ENGINE=postgres make test`.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres.engine_under_test import VARIABLE
from tests.postgres.server import Postgres

TESTS = Path(__file__).parent.parent
SUITES = {
    "conformance": (
        "batch_rules",
        "continuation",
        "entity_keys",
        "entity_writes",
        "etags",
        "if_match",
        "order",
        "point_queries",
        "query_classes",
        "service_properties",
        "stored_policies",
        "tables",
    ),
    "sdk": ("python_blobs", "python_entities", "python_queries", "python_service", "python_transactions"),
}


@pytest.mark.skipif(os.environ.get(VARIABLE) == "postgres", reason="all of the suites are on PostgreSQL")
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_passes(suite: str, postgres: Postgres) -> None:
    before = set(postgres.databases())
    files = [str(TESTS / suite / f"test_{name}.py") for name in SUITES[suite]]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        cwd=TESTS.parent,
        env={**os.environ, VARIABLE: "postgres", "LAZULITE_TEST_POSTGRES": postgres.dsn()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    made = set(postgres.databases()) - before
    assert made
    for database in made:
        assert postgres.execute("SELECT FROM lazulite.rows LIMIT 1", database=database), "nothing was on PostgreSQL"
        postgres.drop_database(database)
    print(run.stdout.splitlines()[-1])
