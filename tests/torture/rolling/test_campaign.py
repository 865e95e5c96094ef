"""A short form of the campaign behind load balancers, where they are installed, and what it must find."""

from pathlib import Path

import pytest

from tests.torture.campaign import Budget

from .balancers import Balancer, HAProxy, Nginx, program
from .campaign import roll
from .client import WRITES

SECONDS_MAX = 300


def installed(balancer: type[Balancer]) -> pytest.MarkDecorator:
    reason = f"no {balancer.name} here: apt-get install {balancer.name}"
    return pytest.mark.skipif(program(balancer.name) is None, reason=reason)


@installed(HAProxy)
def test_rolling_restarts_fail_no_request_and_kills_only_running_writes(
    tmp_path: Path,
) -> None:
    report = roll(Budget(SECONDS_MAX, 3), 1, tmp_path, HAProxy, kills_every=3)
    assert report.problems == ()
    assert (report.counts["restarts"], report.counts["kills"]) == (2, 1)
    assert {*WRITES, "get", "query"} <= report.counts.keys()


@installed(Nginx)
def test_nginx_retries_at_another_process_after_a_kill(tmp_path: Path) -> None:
    report = roll(Budget(SECONDS_MAX, 1), 1, tmp_path, Nginx, kills_every=1)
    assert report.problems == ()
    assert report.counts["kills"] == 1


@installed(HAProxy)
@pytest.mark.campaign
def test_mutation_is_found(tmp_path: Path) -> None:
    report = roll(Budget(SECONDS_MAX, 50), 1, tmp_path, HAProxy, server=("tests.torture.mutations", "hang_up"))
    assert any(f"{kind} failed" in problem for kind in WRITES for problem in report.problems), report
