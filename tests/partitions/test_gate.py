"""The gate: what passes, waits and is refused, and the figures of the study."""

import heapq
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.partitions.gate import BUCKETS_MAX, PASS, Buckets, Decision, Gate, Limit, Subject
from lazulite.partitions.targets import CURRENT, STUDY_2010, Rate, Targets

TARGETS = replace(CURRENT, partition=Rate(10, 10), account=Rate(50, 50), server_cap=20, timeout_share=0)
HOT = ("acct", "table", "Orders", "p")


def subject(partition: tuple[str, ...] = HOT, *, server: int | None = None, is_moving: bool = False) -> Subject:
    return Subject("acct", partition, TARGETS.partition, server, is_moving)


def refusals(gate: Gate, count: int, now: float, where: Subject, cost: float = 1) -> list[Limit]:
    decisions = [gate.decide(where, cost, now) for _ in range(count)]
    return [each.limit for each in decisions if each.error is not None and each.limit is not None]


def test_a_partition_passes_its_cap_each_second() -> None:
    gate = Gate(TARGETS)
    assert refusals(gate, 15, 0, subject()) == [Limit.PARTITION] * 5
    assert refusals(gate, 15, 0.5, subject()) == [Limit.PARTITION] * 10
    assert refusals(gate, 15, 10, subject()) == [Limit.PARTITION] * 5


def test_a_refused_request_costs_nothing() -> None:
    gate = Gate(TARGETS)
    refusals(gate, 1_000, 0, subject())
    assert gate.decide(subject(), 5, 0.5) == PASS


def test_a_batch_costs_its_entities_and_one_above_the_burst_needs_all_of_it() -> None:
    gate = Gate(TARGETS)
    assert refusals(gate, 3, 0, subject(), 5) == [Limit.PARTITION]
    assert refusals(gate, 2, 10, subject(), 20) == [Limit.PARTITION]
    assert refusals(gate, 1, 11, subject(), 1) == [Limit.PARTITION]  # It is in debt.
    assert refusals(gate, 1, 11.2, subject(), 1) == []


def test_rows_that_were_scanned_are_a_debt() -> None:
    gate = Gate(TARGETS)
    assert gate.decide(subject(), 1, 0) == PASS
    gate.owe(subject(), 40, 0)
    assert refusals(gate, 1, 3, subject()) == [Limit.PARTITION]
    assert refusals(gate, 1, 4, subject()) == []


@given(
    st.lists(st.tuples(st.floats(0, 0.5), st.integers(1, 12), st.integers(0, 3)), max_size=200),
    st.sampled_from([0, 0.01, 0.2]),
)
def test_no_window_takes_more_than_cap_and_burst(
    requests: list[tuple[float, int, int]], request_seconds: float
) -> None:
    """Whatever comes when: in any window, a partition takes its cap, a burst, and the rest of one large request."""
    gate, now, ends = Gate(replace(TARGETS, request_seconds=request_seconds)), 0.0, list[float]()
    passed: list[tuple[float, int]] = []
    for pause, cost, server in requests:
        now += pause
        decision = gate.decide(subject(server=server), cost, now)
        if decision.error is None:
            passed.append((now, cost))
            ends.append(now + decision.delay_seconds)
            assert decision.delay_seconds <= TARGETS.queue_seconds + request_seconds + cost * TARGETS.entity_seconds
    assert ends == sorted(ends)  # In turn, though they wait.
    for index, (begin, _) in enumerate(passed):
        total = 0
        for at, cost in passed[index:]:
            total += cost
            assert total <= 10 * (at - begin) + 10 + max(0, cost - 10) + 1e-6


def test_server_and_account_limit_many_partitions() -> None:
    gate = Gate(TARGETS)
    on_one_server = [subject(("acct", str(number)), server=1) for number in range(30)]
    assert [limit for where in on_one_server for limit in refusals(gate, 1, 0, where)] == [Limit.SERVER] * 10
    elsewhere = [subject(("acct", "more", str(number)), server=number) for number in range(2, 42)]
    assert [limit for where in elsewhere for limit in refusals(gate, 1, 0, where)] == [Limit.ACCOUNT] * 10
    other = Subject("other", ("other",), TARGETS.partition)
    assert refusals(gate, 1, 0, other) == []


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Limit.ACCOUNT, "Operations per second is over the account limit."),
        (Limit.INGRESS, "Ingress is over the account limit."),
        (Limit.EGRESS, "Egress is over the account limit."),
        (Limit.PARTITION, "The server is currently unable to receive requests. Please retry your request."),
    ],
)
def test_the_texts_are_those_of_the_service(limit: Limit, text: str) -> None:
    gate = Gate(replace(TARGETS, ingress_bytes=Rate(100, 100), egress_bytes=Rate(100, 100)))
    wide = Subject("acct", HOT, Rate(1e6, 1e6))
    decision = Decision()
    if limit is Limit.ACCOUNT:
        gate.decide(wide, 50, 0)
        decision = gate.decide(wide, 1, 0)
    elif limit is Limit.INGRESS:
        gate.decide(wide, 1, 0, 100)
        decision = gate.decide(wide, 1, 0, 1)
    elif limit is Limit.EGRESS:
        gate.owe_bytes("acct", 101, 0)
        decision = gate.decide(wide, 1, 0)
    else:
        gate.decide(subject(), 10, 0)
        decision = gate.decide(subject(), 1, 0)
    assert decision.error is not None
    assert (decision.limit, decision.error.status, decision.error.code) == (limit, 503, "ServerBusy")
    assert decision.error.message == text


def test_a_moving_range_is_refused_whatever_its_load() -> None:
    gate = Gate(TARGETS)
    assert refusals(gate, 3, 0, subject(is_moving=True)) == [Limit.MOVE] * 3
    assert refusals(gate, 1, 0, subject()) == []


def test_a_share_of_refusals_is_a_time_out_and_half_of_their_writes_are_made() -> None:
    def decisions(seed: int) -> list[tuple[str, bool]]:
        gate = Gate(replace(TARGETS, timeout_share=0.2), seed)
        found = [gate.decide(subject(is_moving=True), 1, 0) for _ in range(2_000)]
        return [(each.error.code, each.is_made) for each in found if each.error is not None]

    once = decisions(1)
    assert once == decisions(1) != decisions(2)
    made = once.count(("OperationTimedOut", True))
    lost = once.count(("OperationTimedOut", False))
    assert made + lost + once.count(("ServerBusy", False)) == 2_000
    assert 150 <= made <= 250
    assert 150 <= lost <= 250


def test_buckets_are_bounded_and_the_used_ones_stay() -> None:
    buckets = Buckets(1, 100)
    kept = buckets.get("kept", 10, 0)
    for number in range(1_000):
        buckets.get(number, 10, 0)
        assert buckets.get("kept", 10, 0) is kept
        assert len(buckets) <= 100
    assert BUCKETS_MAX >= 1_000


def closed_loop(targets: Targets, threads: int, cost: int, answer_s: float, seconds: float) -> tuple[float, float]:
    """Return the entities per second that passed, and those refused, of the study's client: 3 s pause after an error.

    Args:
        targets: of the gate.
        threads: each sends one request after the other to the same partition.
        cost: the entities of a request.
        answer_s: how long an answer takes without a gate.
        seconds: the length of the run, of which the first tenth is not counted.
    """
    gate, passed, refused = Gate(targets), 0, 0
    where = Subject("acct", HOT, targets.partition)
    due = [(answer_s * number / threads, number) for number in range(threads)]
    while due[0][0] < seconds:
        now, number = due[0]
        decision = gate.decide(where, cost, now, cost * 1_024)
        if now > seconds / 10:
            passed += cost * (decision.error is None)
            refused += cost * (decision.error is not None)
        pause = answer_s + 3 if decision.error is not None else max(answer_s, decision.delay_seconds)
        heapq.heapreplace(due, (now + pause, number))
    return passed / (seconds * 0.9), refused / (seconds * 0.9)


@pytest.mark.parametrize(("threads", "share"), [(10, 0), (20, 0), (30, 0.08), (40, 0.16), (50, 0.23)])
def test_figure_15_of_the_study(threads: int, share: float) -> None:
    passed, refused = closed_loop(STUDY_2010, threads, 100, 0.87, 300)
    assert refused / (passed + refused) == pytest.approx(share, abs=0.04)
    assert passed == pytest.approx(min(2_500, threads * 100 / 0.87), rel=0.02)


def test_figure_8_of_the_study() -> None:
    rates = [closed_loop(STUDY_2010, 15 * machines, 1, 0.05, 60) for machines in (1, 2, 5, 16)]
    assert [passed for passed, _ in rates] == pytest.approx([300, 600, 1_000, 1_000], rel=0.02)
    assert all(refused <= 0.01 * passed for passed, refused in rates)
