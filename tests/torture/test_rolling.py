"""A short form of the campaign behind load balancers, where they are installed, and what it must find."""

from pathlib import Path

import pytest

from .balancers import Balancer, HAProxy, Nginx, program
from .campaign import Budget
from .rolling import roll
from .rolling_visitor import WRITES

SECONDS_MAX = 300


def installed(balancer: type[Balancer]) -> pytest.MarkDecorator:
    reason = f"no {balancer.name} here: apt-get install {balancer.name}"
    return pytest.mark.skipif(program(balancer.name) is None, reason=reason)


@installed(HAProxy)
def test_no_request_fails_while_processes_are_replaced_and_a_kill_takes_only_writes_on_their_way(
    tmp_path: Path,
) -> None:
    report = roll(Budget(SECONDS_MAX, 3), 1, tmp_path, HAProxy, kills_every=3)
    assert report.problems == ()
    assert (report.counts["restarts"], report.counts["kills"]) == (2, 1)
    assert {*WRITES, "get", "query"} <= report.counts.keys()


@installed(Nginx)
def test_nginx_goes_elsewhere_when_a_process_is_killed(tmp_path: Path) -> None:
    report = roll(Budget(SECONDS_MAX, 1), 1, tmp_path, Nginx, kills_every=1)
    assert report.problems == ()
    assert report.counts["kills"] == 1


@installed(HAProxy)
def test_a_process_that_hangs_up_is_found(tmp_path: Path) -> None:
    report = roll(Budget(SECONDS_MAX, 50), 1, tmp_path, HAProxy, server=("tests.torture.sabotage", "hang_up"))
    assert any(f"{kind} failed" in problem for kind in WRITES for problem in report.problems), report
