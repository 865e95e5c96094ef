"""The page of the architecture states what requests enter, and keeps it true."""

from benchmarks.request_trace import MODULES_MAX, stated, traces

SLACK = 1.1
"""So much more than stated is left to versions of Python, and to what other requests leave to be done."""


async def test_no_request_enters_more_than_the_page_states() -> None:
    found = await traces()
    assert found.keys() == stated().keys() == MODULES_MAX.keys()
    for name, (modules, calls) in stated().items():
        assert len(found[name].modules) <= min(modules * SLACK, MODULES_MAX[name]), f"{name}: {found[name].modules}"
        assert found[name].calls <= calls * SLACK, f"{name}: python -m benchmarks.request_trace --write"
