"""The verdict by the study's rule, and the limit that it names."""

from collections import Counter
from typing import Any

import pytest

from lazulite.partitions.targets import CURRENT, STUDY_2010_STRICT
from lazulite.stress.client import refusal
from lazulite.stress.histogram import bucket_of
from lazulite.stress.plan import Load, Plan, plan_of
from lazulite.stress.run import Step
from lazulite.stress.verdict import Limit, Outcome, judge, table_lines
from lazulite.stress.window import Window, is_steady, total, window_of

PLAN = plan_of({"rate": [400]})


def step(
    per_second: float,
    refused: dict[str, int] | None = None,
    failed: dict[str, int] | None = None,
    *,
    load: Load | None = None,
    busy: float = 0.3,
    latency: float = 0.01,
    round_trip: float | None = None,
    is_steady: bool = True,
) -> Step:
    """Return a step of one second."""
    requests = int(per_second)
    window = Window(
        0, 1, requests, Counter(refused or {}), Counter(failed or {}), Counter({bucket_of(latency): requests}), busy
    )
    return Step(load or Load(64, per_second), 1, [window], 1.0, 3.0, is_steady, round_trip)


def judged(*steps: Step, plan: Plan = PLAN, **_: Any) -> tuple[Outcome, Limit, str]:
    return judge(steps, plan, STUDY_2010_STRICT)


def test_a_load_within_the_target_passes() -> None:
    outcome, limit, sentence = judged(step(400))
    assert (outcome, limit, outcome.value) == (Outcome.PASS, Limit.RATE, 0)
    assert "400 entities per second on one partition are within the target of 500" in sentence
    assert "a margin of 25% included" in judge([step(400)], plan_of({"rate": [320], "margin": 0.25}), CURRENT).sentence


def test_a_load_above_the_target_fails_also_if_nothing_was_throttled() -> None:
    outcome, limit, sentence = judged(step(600))
    assert (outcome, limit, outcome.value) == (Outcome.FAIL, Limit.PARTITION, 1)
    assert "nothing was throttled, but the service may throttle that later" in sentence


def test_partitions_share_a_load() -> None:
    plan = plan_of({"rate": [600], "partitions": 2})
    assert judge([step(600)], plan, STUDY_2010_STRICT).outcome == Outcome.PASS
    plan = plan_of({"rate": [600], "partitions": 2, "keys": "append"})
    assert judge([step(600)], plan, STUDY_2010_STRICT).limit == Limit.PARTITION
    plan = plan_of({"rate": [6000], "partitions": 64})
    assert judge([step(6000)], plan, STUDY_2010_STRICT).limit == Limit.ACCOUNT


@pytest.mark.parametrize(
    ("word", "rate", "limit"),
    [
        ("partition", 100, Limit.PARTITION),
        ("account", 100, Limit.ACCOUNT),
        ("ingress", 100, Limit.ACCOUNT),
        ("server", 100, Limit.SERVER),
        ("move", 100, Limit.SERVER),
        ("ServerBusy", 100, Limit.SERVER),
        ("ServerBusy", 450, Limit.PARTITION),
        ("OperationTimedOut", 450, Limit.PARTITION),
    ],
)
def test_a_refusal_fails_and_names_its_limit(word: str, rate: float, limit: Limit) -> None:
    outcome, found, sentence = judged(step(50, load=Load(64, 50)), step(rate, {word: 1}))
    assert (outcome, found) == (Outcome.FAIL, limit)
    assert limit.value in sentence
    assert "nothing was throttled at 50 requests/s" in sentence


def test_a_saturated_client_gives_no_verdict() -> None:
    outcome, limit, sentence = judged(step(600, busy=0.97))
    assert (outcome, limit, outcome.value) == (Outcome.NONE, Limit.CLIENT, 3)
    assert "used or wanted 97% of one" in sentence


def test_a_saturated_server_is_told_from_a_saturated_client() -> None:
    slow = step(150, load=Load(64, 400))
    assert judged(slow)[:2] == (Outcome.FAIL, Limit.SERVER)
    assert judged(step(150, load=Load(64, 400), busy=1.0))[:2] == (Outcome.NONE, Limit.CLIENT)
    far = step(150, load=Load(64, 400), latency=0.1, round_trip=0.09)
    assert judged(far)[:2] == (Outcome.FAIL, Limit.NETWORK)


@pytest.mark.parametrize(
    ("loops", "limit", "sentence"),
    [
        ({8: 400}, Limit.CLIENTS, "the limit is the number of clients: more --clients may get a higher rate"),
        ({4: 200, 8: 390}, Limit.CLIENTS, "the limit is the number of clients: more --clients may get a higher rate"),
        ({4: 200, 8: 205}, Limit.SERVER, "the limit is the server: more clients got no higher rate"),
    ],
)
def test_a_closed_loop_that_passes_names_its_limit(loops: dict[int, float], limit: Limit, sentence: str) -> None:
    steps = [step(rate, load=Load(clients, None)) for clients, rate in loops.items()]
    found = judge(steps, plan_of({"clients": [*loops]}), CURRENT)
    assert found[:2] == (Outcome.PASS, limit)
    assert found.sentence.endswith(sentence)


def test_each_sentence_names_its_limit() -> None:
    far = step(150, load=Load(64, 400), latency=0.1, round_trip=0.09)
    failed = [step(0), step(400, failed={"404": 50}), step(400, failed={"timeout": 9})]
    for each in (
        *failed,
        step(400, {"account": 9}),
        step(300, busy=1),
        step(600),
        far,
        step(9, is_steady=False),
        step(1),
    ):
        found = judge([each], PLAN, STUDY_2010_STRICT)
        assert f"the limit is {found.limit.value}" in found.sentence


@pytest.mark.parametrize(
    ("failed", "limit"), [({"404": 50}, Limit.SERVER), ({"connection lost": 9, "timeout": 3}, Limit.NETWORK)]
)
def test_failed_requests_give_no_verdict(failed: dict[str, int], limit: Limit) -> None:
    assert judged(step(400, failed=failed))[:2] == (Outcome.NONE, limit)
    assert judged(step(400, failed={"404": 1}))[0] == Outcome.PASS


def test_no_response_gives_no_verdict() -> None:
    assert judged(step(0))[0] == Outcome.NONE


def test_a_peak_that_never_became_steady_does_not_pass() -> None:
    outcome, limit, sentence = judged(step(100), step(400, is_steady=False))
    assert (outcome, limit, outcome.value) == (Outcome.NONE, Limit.WARM_UP, 3)
    assert "in 3 s, the rate and the median latency at 400 requests/s did not settle within 5%" in sentence
    assert judged(step(100, is_steady=False), step(400))[0] == Outcome.PASS
    assert judged(step(400, {"partition": 1}, is_steady=False))[0] == Outcome.FAIL
    assert judged(step(600, is_steady=False))[0] == Outcome.FAIL


def test_the_table_has_a_line_for_each_step() -> None:
    lines = list(table_lines([step(400), step(50, {"partition": 50}, load=Load(1, None))]))
    assert [line.split()[:2] for line in lines[1:]] == [["400", "requests/s"], ["1", "client"]]
    assert "50.00%" in lines[2]


@pytest.mark.parametrize(
    ("status", "response", "word"),
    [
        (503, b'HTTP/1.1 503 X\r\nServer-Timing: gate;desc="move"\r\nx-ms-error-code: ServerBusy\r\n\r\n', "move"),
        (503, b"HTTP/1.1 503 X\r\nx-ms-error-code: ServerBusy\r\n\r\n", "ServerBusy"),
        (503, b"HTTP/1.1 503 X\r\n\r\nOperations per second is over the account limit.", "account"),
        (500, b"HTTP/1.1 500 X\r\nx-ms-error-code: OperationTimedOut\r\n\r\n", "OperationTimedOut"),
        (500, b"HTTP/1.1 500 X\r\nx-ms-error-code: InternalError\r\n\r\n", None),
        (500, b'--b\r\nHTTP/1.1 500 X\r\n\r\n{"code":"OperationTimedOut"}', "OperationTimedOut"),
        (503, b"--b\r\nHTTP/1.1 503 X\r\n\r\n{}", "ServerBusy"),
        (429, b"HTTP/1.1 429 X\r\n\r\n", "429"),
        (404, b"HTTP/1.1 404 X\r\nx-ms-error-code: ServerBusy\r\n\r\n", None),
    ],
)
def test_what_throttled_a_request(status: int, response: bytes, word: str | None) -> None:
    assert refusal(status, response) == word


def windows(*requests: int, latency: float = 0.01) -> list[Window]:
    return [Window(requests=each, latencies=Counter({bucket_of(latency): each})) for each in requests]


def test_a_load_is_steady_when_rate_and_median_stay() -> None:
    assert not is_steady(windows(100, 100, 100, 100, 100))
    assert is_steady(windows(10, 100, 104, 98, 100, 103, 99))
    assert not is_steady(windows(0, 0, 0, 0, 0, 0))
    assert not is_steady(windows(80, 85, 90, 95, 100, 105))
    assert not is_steady([*windows(100, 100, 100), *windows(100, 100, 100, latency=0.02)])


def test_windows_are_added_up_and_read_again() -> None:
    one = Window(3, 1, 5, Counter(partition=2), Counter({"404": 1}), Counter({-5: 5}), 0.2, Counter({-9: 5}))
    other = Window(3, 1, 1, busy=0.6)
    assert window_of(one.as_json()) == one
    found = total([one, other])
    assert (found.requests, found.answered) == (6, 9)
    assert found.busy == pytest.approx(0.4)
