"""The verdict about a run, by the study's rule, and what limited the load.

The rule: a sample table with the chosen keys takes the peak load of an application, on one partition. It passes if
nothing is throttled and the rate is within the target. A rate above the target does not pass, throttled or not, as the
service may throttle it later. Invariant: what the clients could not send says nothing about the endpoint, and a load
that never became steady does not pass.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from lazulite.partitions.targets import Targets
from lazulite.stress.plan import Plan
from lazulite.stress.run import Step, reasons
from lazulite.stress.window import STEADY_SHARE

BUSY_SHARE = 0.9
"""A process of clients that used or wanted a CPU for so much of the time was at its limit."""
FAILED_SHARE = 0.01
"""More failed requests than this leave no verdict."""
REACHED_SHARE = 0.95
"""A rate is reached if so much of it was."""
RISE = 1.05
"""A rate that rises less than this under more clients is at a limit."""
ROUND_TRIP_SHARE = 0.5
"""A network that takes so much of the median latency is its greater part."""
NEAR_TARGET_SHARE = 0.8
"""Above this share of the target, a refusal that names no limit is taken to be the partition's."""


class Outcome(Enum):
    """A verdict; the value is the exit code."""

    PASS = 0
    FAIL = 1
    NONE = 3


class Limit(Enum):
    """What limited the load, as reports name it."""

    CLIENT = "the client's own CPU"
    PARTITION = "the partition"
    SERVER = "the server"
    ACCOUNT = "the account"
    NETWORK = "the network"
    RATE = "the rate asked for"
    CLIENTS = "the number of clients"
    WARM_UP = "the time to warm up"


class Verdict(NamedTuple):
    """A verdict."""

    outcome: Outcome
    limit: Limit
    sentence: str


def judge(steps: Sequence[Step], plan: Plan, targets: Targets) -> Verdict:
    """Return the verdict about the last step, which is the peak.

    Args:
        steps: what was measured.
        plan: what was asked for.
        targets: to pass.
    """
    for check in (_failed, _refused, _client_bound, _above_target, _not_reached, _unsteady):
        found = check(steps, plan, targets)
        if found is not None:
            return found
    return _passed(steps, plan, targets)


def partition_rate(step: Step, plan: Plan) -> float:
    """Return the entities, messages or requests per second that a partition was asked to take."""
    return step.offered / plan.spread(step.load.clients)


def partition_target(plan: Plan, targets: Targets) -> float:
    """Return the target of a partition per second: of entities, messages or, of a blob, requests."""
    rates = {"table": targets.partition, "queue": targets.queue, "blob": targets.blob}
    return rates[plan.service].target


def _failed(steps: Sequence[Step], _: Plan, __: Targets) -> Verdict | None:
    found = steps[-1].sum
    count = found.failed.total()
    if found.answered and count <= FAILED_SHARE * found.answered:
        return None
    if not found.answered:
        sentence = "the limit is the server, or the network before it: no request was answered"
        return Verdict(Outcome.NONE, Limit.SERVER, sentence)
    limit = Limit.SERVER if any(reason.isdigit() for reason in found.failed) else Limit.NETWORK
    share = f"{count / found.answered:.1%} of the requests failed"
    return Verdict(Outcome.NONE, limit, f"the limit is {limit.value}: {share} ({reasons(found.failed)})")


_WORDS = {"partition": Limit.PARTITION, "account": Limit.ACCOUNT, "ingress": Limit.ACCOUNT, "egress": Limit.ACCOUNT}
"""What refuses requests by its word in their responses; all others are the server."""


def _refused(steps: Sequence[Step], plan: Plan, targets: Targets) -> Verdict | None:
    step = next((each for each in steps if each.sum.refused), None)
    if step is None:
        return None
    refused = step.sum.refused
    word = refused.most_common(1)[0][0]
    rate, target = partition_rate(step, plan), partition_target(plan, targets)
    limit = _WORDS.get(word, Limit.SERVER)
    if word in ("ServerBusy", "OperationTimedOut", "429") and rate >= NEAR_TARGET_SHARE * target:
        limit = Limit.PARTITION
    good = steps[: steps.index(step)]
    before = f"; nothing was throttled at {good[-1].load.name}" if good else ""
    sentence = (
        f"the limit is {limit.value}, which throttled {step.refused_share:.2%} of the requests ({word}) "
        f"at {step.load.name}, that is {rate:,.0f} {_units(plan)} per second on {_where(step, plan)}{before}"
    )
    return Verdict(Outcome.FAIL, limit, sentence)


def _client_bound(steps: Sequence[Step], plan: Plan, _: Targets) -> Verdict | None:
    busy = steps[-1].sum.busy
    if busy < BUSY_SHARE:
        return None
    advice = "use more --processes, or another machine" if plan.processes < 64 else "use another machine"
    sentence = f"the limit is the client's own CPU: its busiest process used or wanted {busy:.0%} of one; {advice}"
    return Verdict(Outcome.NONE, Limit.CLIENT, sentence)


def _above_target(steps: Sequence[Step], plan: Plan, targets: Targets) -> Verdict | None:
    step = steps[-1]
    checks = (
        (Limit.PARTITION, partition_rate(step, plan), partition_target(plan, targets), f" on {_where(step, plan)}"),
        (Limit.ACCOUNT, step.offered, targets.account.target, ""),
    )
    for limit, rate, target, where in checks:
        if rate > target:
            sentence = (
                f"the limit is {limit.value}: {rate:,.0f} {_units(plan)} per second{where} are above the target of "
                f"{target:,.0f}; nothing was throttled, but the service may throttle that later"
            )
            return Verdict(Outcome.FAIL, limit, sentence)
    return None


def _not_reached(steps: Sequence[Step], plan: Plan, _: Targets) -> Verdict | None:
    step = steps[-1]
    if step.load.rate is None or step.offered >= REACHED_SHARE * step.load.rate * plan.cost:
        return None
    limit = _slowest(step)
    sentence = (
        f"the limit is {limit.value}: of {step.load.rate * plan.cost:,.0f} {_units(plan)} per second asked for, "
        f"{step.offered:,.0f} were answered, and the clients had a CPU to spare"
    )
    return Verdict(Outcome.FAIL, limit, sentence)


def _unsteady(steps: Sequence[Step], _: Plan, __: Targets) -> Verdict | None:
    step = steps[-1]
    if step.is_steady:
        return None
    sentence = (
        f"the limit is the time to warm up: in {step.warm_seconds:,g} s, the rate and the median latency at "
        f"{step.load.name} did not settle within {STEADY_SHARE:.0%}; use more --warm-seconds, or more --seconds, "
        "as windows then are longer"
    )
    return Verdict(Outcome.NONE, Limit.WARM_UP, sentence)


def _passed(steps: Sequence[Step], plan: Plan, targets: Targets) -> Verdict:
    step = steps[-1]
    limit = _limit_of_passed(steps)
    rate, target = partition_rate(step, plan), partition_target(plan, targets)
    margin = f", a margin of {plan.margin:.0%} included" if plan.margin else ""
    sentence = (
        f"nothing was throttled at {step.load.name}{margin}: {rate:,.0f} {_units(plan)} per second on "
        f"{_where(step, plan)} are within the target of {target:,.0f}; the limit is {limit.value}: {_BEYOND[limit]}"
    )
    return Verdict(Outcome.PASS, limit, sentence)


_BEYOND = {
    Limit.RATE: "a higher --rate was not tried",
    Limit.CLIENTS: "more --clients may get a higher rate",
    Limit.SERVER: "more clients got no higher rate",
    Limit.NETWORK: "more clients got no higher rate, and a round trip takes most of the latency",
}
"""What is known about more load than one that passed."""


def _limit_of_passed(steps: Sequence[Step]) -> Limit:
    """Return what limited a load that passed: that no more was asked for, or else what takes the time."""
    step = steps[-1]
    if step.load.rate is not None:
        return Limit.RATE
    fewer = [each for each in steps if each.load.clients < step.load.clients]
    if not fewer or step.rate > RISE * fewer[-1].rate:
        return Limit.CLIENTS
    return _slowest(step)


def _slowest(step: Step) -> Limit:
    """Return the network if most of the median latency is a round trip, else the server."""
    median = step.quantile_ms(0.5) / 1000
    is_far = step.round_trip is not None and step.round_trip >= ROUND_TRIP_SHARE * median > 0
    return Limit.NETWORK if is_far else Limit.SERVER


def _where(step: Step, plan: Plan) -> str:
    count = plan.spread(step.load.clients)
    return "one partition" if count == 1 else f"each of {count:,} partitions"


def _units(plan: Plan) -> str:
    return {"table": "entities", "queue": "messages", "blob": "requests"}[plan.service]


def table_lines(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of a table of all steps."""
    yield f"{'load':<20} {'per second':>11} {'throttled':>10} {'p50 ms':>9} {'p99 ms':>9} {'client CPU':>11}"
    for step in steps:
        p50, p99 = step.quantile_ms(0.5), step.quantile_ms(0.99)
        row = f"{step.load.name:<20} {step.rate:>11,.0f} {step.refused_share:>10.2%} {p50:>9,.2f} {p99:>9,.2f} "
        yield f"{row}{step.sum.busy:>11.0%}{'' if step.is_steady else '  not steady'}"
