"""Plans: what flags and files may say, and which load follows from it."""

import pytest

from lazulite.stress.plan import Load, PlanError, plan_of, plan_values


def test_loads_have_the_margin() -> None:
    assert plan_of({"clients": [1, 8], "margin": 0.25}).loads() == [Load(2, None), Load(10, None)]
    assert plan_of({"rate": [100, 200.0], "margin": 0.5}).loads() == [Load(64, 150), Load(64, 300)]
    assert plan_of({"rate": [10], "clients": [3]}).loads() == [Load(3, 10)]
    assert plan_of({}).loads() == [Load(8, None)]


def test_a_file_has_the_names_of_flags() -> None:
    plan = plan_of(plan_values('workload = "batch"\nbatch = 20\nclients = [1, 2]\nseconds = 5\n'))
    assert (plan.workload, plan.cost, plan.clients, plan.seconds) == ("batch", 20, (1, 2), 5.0)
    with pytest.raises(PlanError):
        plan_values("workload = [")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"workers": 1}, "there is no such setting"),
        ({"workload": "delete"}, "'delete' is not one of"),
        ({"partitions": 0}, "expected a whole number from 1"),
        ({"partitions": 1.5}, "expected a whole number"),
        ({"processes": True}, "expected a whole number"),
        ({"clients": []}, "expected 1 to 20 steps"),
        ({"rate": ["x"]}, "expected a number"),
        ({"targets": 1}, "expected text"),
        ({"size": 40_000}, "at most 30,000"),
        ({"workload": "queue", "partitions": 2}, "a queue is one partition"),
    ],
)
def test_a_plan_is_in_bounds(values: dict[str, object], text: str) -> None:
    with pytest.raises(PlanError, match=text):
        plan_of(values)


def test_the_load_is_spread_by_the_scheme() -> None:
    spread = {
        keys: plan_of({"keys": keys, "partitions": 16}).spread(8)
        for keys in ("random", "append", "hash-prefix", "buckets")
    }
    assert spread == {"random": 8, "append": 1, "hash-prefix": 16, "buckets": 16}


def test_the_estimate_of_a_rate_is_its_requests() -> None:
    plan = plan_of({"rate": [100], "seconds": 10, "warm_seconds": 5, "entities": 7})
    assert plan.transactions() == 1507
