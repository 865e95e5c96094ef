"""The page of the architecture states what requests enter, and keeps it true."""

from benchmarks.request_trace import MODULES_MAX, stated, traces

SLACK = 1.1
"""So much more than stated is left to versions of Python, and to what other requests leave to be done."""


async def test_no_request_enters_more_than_the_page_states() -> None:
    several = [await traces() for _ in range(3)]  # A second that passes has a request read its time again.
    assert several[0].keys() == stated().keys() == MODULES_MAX.keys()
    for name, (modules, calls) in stated().items():
        found = min((each[name] for each in several), key=lambda trace: len(trace.modules))
        assert len(found.modules) <= min(modules * SLACK, MODULES_MAX[name]), f"{name}: {found.modules}"
        fewest = min(each[name].calls for each in several)
        assert fewest <= calls * SLACK, f"{name}: python -m benchmarks.request_trace --write"
