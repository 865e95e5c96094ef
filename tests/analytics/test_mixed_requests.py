"""Requests to all services: metrics count each of them once in each row that the reference gives it."""

from collections import Counter

from tests.analytics.mixed_requests import PHASES, count_requests


async def test_metrics_agree_with_the_request_log() -> None:
    outcome = await count_requests(210 * len(PHASES))
    assert outcome.by_metrics == outcome.by_log
    assert outcome.dropped == 0
    rows = Counter[str]()
    for (table, _, row), count in outcome.by_metrics.items():
        period = "minute" if table.endswith("Minute") else "hour"
        rows[f"{period} {'All' if row == 'user;All' else 'operation'}"] += count
    expected = outcome.requests
    assert rows == dict.fromkeys(("minute All", "minute operation", "hour All", "hour operation"), expected)
    assert expected == 190 * len(PHASES)
