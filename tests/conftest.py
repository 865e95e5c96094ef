"""The tiers of tests: what `make check` leaves to `make test`.

`make check` passes `--tier check`; without it everything under tests/ runs, as in `make test`. Campaigns are no tests:
`make campaigns` runs them.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent

NOT_IN_CHECK = {
    "SDKs": ("sdk", "test_examples.py", "test_docs.py"),
    "processes": (
        *("app/test_location_modes.py", "cli/test_argv_secrets.py", "cli/test_backup.py", "cli/test_copy.py"),
        *("cli/test_serve.py", "cli/test_serve_addressing.py", "cli/test_serve_bearer.py", "cli/test_serve_clock.py"),
        *("cli/test_serve_telemetry.py", "cli/test_serve_tls.py", "cli/test_serve_workers.py", "server/workers"),
        *("settings/test_extras.py", "test_portability.py", "test_telemetry_docs.py", "testing/test_plugin.py"),
    ),
    "engines": (
        *("engine/postgres", "postgres", "migration", "cli/test_copy_database.py", "cli/test_serve_database.py"),
        *("engine/rocksdb/test_crash.py", "engine/rocksdb/test_linearizability.py"),
        *("engine/rocksdb/test_corruption.py", "engine/test_model.py"),
    ),
    "installation": ("test_deploy.py", "test_package.py"),
    "long searches": ("table/test_heavy_bodies.py", "table/test_service_model.py"),
    "campaigns and benchmarks, in small": (*("torture", "fuzz", "test_benchmarks.py", "test_benchmarks_database.py"),),
}
"""Why -> the directories and files, from this directory, that only `make test` runs."""
ENGINE_NOT_IN_CHECK = "[postgres"
"""In the name of a test that runs once for each engine: that case needs a server of PostgreSQL."""

_LEFT_OUT = {ROOT / each for paths in NOT_IN_CHECK.values() for each in paths}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--tier`."""
    parser.addoption(
        "--tier", choices=("check", "test"), default="test", help="which tests to collect (tests/conftest.py)"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is not in the tier, without importing it."""
    return True if config.getoption("--tier") == "check" and collection_path in _LEFT_OUT else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of engines that are not in the tier."""
    if config.getoption("--tier") == "check":
        left_out = [item for item in items if ENGINE_NOT_IN_CHECK in item.name]
        items[:] = [item for item in items if ENGINE_NOT_IN_CHECK not in item.name]
        config.hook.pytest_deselected(items=left_out)
