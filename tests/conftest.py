"""The tiers of tests: what `make check` leaves to `make test`, that to CI, and CI to `make mutations`.

`make check` passes `--tier check`, `make test` `--tier test`, and so do `make mutations` and `make browser`. Without it
tests run as in CI. Campaigns are no tests: `make campaigns` runs them, and `make mutations` beside them.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # No property test fails because the machine is busy.
settings.register_profile("check", settings.get_profile("untimed"), max_examples=25)
"""For `make check`: CI draws four times as many, where a test does not say how many."""

NOT_IN_CHECK = {
    "SDKs": ("sdk", "test_examples.py", "test_docs.py"),
    "processes": (
        *("app/test_stores.py", "cli/test_argv_secrets.py", "cli/test_backup.py", "cli/test_copy.py"),
        *("cli/test_serve.py", "cli/test_serve_addressing.py", "cli/test_serve_bearer.py", "cli/test_serve_clock.py"),
        *("cli/test_control.py", "cli/test_faults.py", "cli/test_heat.py", "cli/test_serve_queues.py"),
        *("engine/content/test_processes.py", "cli/test_serve_blobs.py"),
        *("cli/test_serve_telemetry.py", "cli/test_serve_tls.py", "cli/test_serve_workers.py", "server/workers"),
        "cli/test_old_store.py",
        *("analytics/test_processes.py", "cli/test_check_database.py", "cli/test_expiry.py", "cli/test_index.py"),
        *("cli/test_partitions.py", "cli/test_serve_seed.py", "partitions/test_processes.py"),
        *("settings/test_extras.py", "table/indexes/test_crashes.py", "table/test_stretches.py"),
        *("test_portability.py", "test_telemetry_docs.py", "testing/test_plugin.py"),
    ),
    "browsers, and processes of the explorer": ("ui/browser", "ui/test_off.py", "cli/test_serve_ui.py"),
    "engines": (
        *("engine/postgres", "postgres", "migration", "cli/test_copy_database.py", "cli/test_serve_database.py"),
        *("engine/rocksdb/test_crash.py", "engine/rocksdb/test_linearizability.py"),
        *("engine/rocksdb/test_corruption.py", "engine/test_model.py"),
    ),
    "installation": ("test_deploy.py", "test_package.py"),
    "long searches": (
        *("engine/rocksdb/test_rollback_journal.py", "partitions/test_balancer.py", "queue/test_flat.py"),
        *("queue/test_schedules.py", "table/indexes/test_queries.py", "table/template/test_fuzz.py"),
        *("table/test_heavy_bodies.py", "table/test_service_model.py"),
        "queue/test_model.py",  # On four engines.
    ),
    "pytest in pytest": ("test_tiers.py",),
    "pages and names, which parse all files": ("test_docs_errors.py", "test_words.py"),
    "large data": ("service/test_large_bodies.py", "traffic/test_memory.py"),
    "campaigns and benchmarks, in small": (
        *("torture", "fuzz", "test_benchmarks.py", "test_benchmarks_database.py", "test_benchmarks_in_process.py"),
        *("service/test_metered.py", "test_benchmarks_analytics_cost.py", "test_benchmarks_observers_cost.py"),
        *("test_benchmarks_sdk_loops.py", "test_benchmarks_study.py", "test_benchmarks_worker_cpu.py"),
    ),
}
"""Why -> the directories and files, from this directory, that only `make test` runs."""
ENGINE_NOT_IN_CHECK = "[postgres"
"""In the name of a test that runs once for each engine: that case needs a server of PostgreSQL."""

CAMPAIGN = "campaign"
"""Marks a test that a campaign finds a mutation, which takes long: one of each campaign, for CI."""
MUTATION = "mutation"
"""Marks all other tests of that kind (`tests.torture.campaign.mutation_cases`): for `make mutations`."""
JOURNEY = "journey"
"""Marks a test that drives a browser through many pages, which takes long: for `make browser`."""
LEFT_OUT_OF = {
    "check": {CAMPAIGN, MUTATION, JOURNEY},
    "test": {CAMPAIGN, MUTATION, JOURNEY},
    "ci": {MUTATION, JOURNEY},
    "mutations": set[str](),
    "browser": set[str](),
}
"""Tier -> the markers of tests that it leaves out."""

_LEFT_OUT = {ROOT / each for paths in NOT_IN_CHECK.values() for each in paths}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--tier`."""
    parser.addoption(
        "--tier", choices=tuple(LEFT_OUT_OF), default="ci", help="which tests to collect (tests/conftest.py)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers; choose how many examples property tests draw."""
    if config.getoption("--tier") == "check":
        settings.load_profile("check")
    config.addinivalue_line("markers", f"{CAMPAIGN}: shows that a campaign finds a mutation; for CI")
    config.addinivalue_line("markers", f"{JOURNEY}: drives a browser through many pages; for make browser")
    config.addinivalue_line("markers", f"{MUTATION}: shows that it finds another one; for make mutations")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what is not in the tier, without importing it."""
    return True if config.getoption("--tier") == "check" and collection_path in _LEFT_OUT else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases that are not in the tier; put long files first, so that processes end together."""
    items.sort(key=lambda item: _LEFT_OUT.isdisjoint((item.path, *item.path.parents)))
    tier = config.getoption("--tier")

    def is_left_out(item: pytest.Item) -> bool:
        marks = {mark.name for mark in item.iter_markers()}
        if tier == "mutations":
            return marks.isdisjoint((CAMPAIGN, MUTATION))
        return not marks.isdisjoint(LEFT_OUT_OF[tier]) or (tier == "check" and ENGINE_NOT_IN_CHECK in item.name)

    left_out = {item for item in items if is_left_out(item)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))
