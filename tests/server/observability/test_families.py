"""Metrics of several processes: the way there and back, and their sums."""

from lazulite.protocol.message import Request, RequestRecord, Response
from lazulite.server.observability.exchange import Exchange
from lazulite.server.observability.families import Families, Family, cumulative, dumped, loaded, total
from lazulite.server.observability.metrics import Metrics, page_of


def counter(value: float, operation: str = "a") -> Families:
    return {"n": Family("counter", "text", {("n_total", (("operation", operation),)): value})}


def gauge(name: str, value: float) -> Families:
    return {name: Family("gauge", "text", {(name, ()): value})}


async def test_a_page_is_the_same_after_the_way_between_processes() -> None:
    metrics = Metrics("1", {"op"}, ())
    metrics.record(Exchange(Request("GET", "/", record=RequestRecord(operation="op")), Response(200), 3.5, 1, 2))
    families = loaded(dumped(await metrics.families(lambda: {"connections": 3})))

    def ours(page: bytes) -> list[bytes]:
        return [line for line in page.splitlines() if b"process_" not in line and b"python_" not in line]

    expected = ours(await metrics.render(lambda: {"connections": 3}))
    assert b'lazulite_request_seconds_bucket{le="0.005",operation="op"} 1.0' in expected
    assert ours(await page_of(families)) == expected


def test_samples_with_the_same_labels_are_added() -> None:
    sums = total(counter(1), [counter(2), counter(4, "b"), gauge("g", 5), gauge("g", 6)])
    assert sums["n"].samples == {("n_total", (("operation", "a"),)): 3, ("n_total", (("operation", "b"),)): 4}
    assert sums["g"].samples == {("g", ()): 11}


def test_sums_change_no_summand() -> None:
    one, other = counter(1), counter(2)
    total(one, [other, other])
    assert (one, other) == (counter(1), counter(2))


def test_the_start_and_the_version_are_the_primarys() -> None:
    name = "process_start_time_seconds"
    assert total(gauge(name, 1000), [gauge(name, 2000)]) == gauge(name, 1000)
    assert total({}, [gauge(name, 2000)]) == {}


def test_gauges_are_not_cumulative() -> None:
    histogram = {"h": Family("histogram", "text", {("h_count", ()): 1.0})}
    assert cumulative({**counter(1), **histogram, **gauge("g", 1)}) == {**counter(1), **histogram}
