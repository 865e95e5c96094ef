"""Requests to all services: each has the lines, and counts once in each row, that the reference gives it."""

from collections import Counter

from tests.analytics.mixed_requests import PHASES, count_requests


async def test_metrics_and_lines_agree_with_the_request_log() -> None:
    outcome = await count_requests(220 * len(PHASES))
    assert outcome.by_metrics == outcome.by_log
    assert outcome.lines == outcome.lines_expected
    assert outcome.lines.total() == 240 * len(PHASES)
    assert outcome.dropped == 0
    rows = Counter[str]()
    for (table, _, row), count in outcome.by_metrics.items():
        period = "minute" if table.endswith("Minute") else "hour"
        rows[f"{period} {'All' if row == 'user;All' else 'operation'}"] += count
    expected = outcome.requests
    assert rows == dict.fromkeys(("minute All", "minute operation", "hour All", "hour operation"), expected)
    assert expected == 200 * len(PHASES)
