"""The plan of a stress test: what clients send, how many of them there are or at which rate, and for how long.

A plan is made of flags and of a file, whose keys have the same names. Invariant: all numbers of a plan are in bounds.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

WORKLOADS = ("insert", "get", "update", "upsert", "batch", "page", "queue", "blob")
KEY_SCHEMES = ("random", "append", "hash-prefix", "buckets")
RETRIES = ("none", "pause", "backoff")
BACKOFF_SECONDS = (2.0, 4.0, 10.0, 30.0)
"""The pauses before each repetition of a refused request, as the service documents them."""
PAUSE_SECONDS = 3.0
"""The pause of a client after a refusal, as in the study, which repeats no request."""
OPEN_CLIENTS = 64
"""The connections of a test at a rate, if the plan names none."""
_STEPS_MAX = 20
_TEXT_CHOICES = {"workload": WORKLOADS, "keys": KEY_SCHEMES, "retry": RETRIES}
_SIZES_MAX = {"queue": 40_000, "blob": 4_000_000}
_ENTITY_SIZE_MAX = 30_000
"""Less than a property holds, and a batch of 100 is within the limit of the service."""


class PlanError(ValueError):
    """A plan is invalid. The text is one line for people."""


class Load(NamedTuple):
    """The load of one step."""

    clients: int
    """Connections, each with at most one request under way."""
    rate: float | None
    """Requests per second; None: each client sends the next request when it has the response."""

    @property
    def name(self) -> str:
        """What a report calls it."""
        if self.rate is not None:
            return f"{self.rate:,g} requests/s"
        return f"{self.clients:,} {'client' if self.clients == 1 else 'clients'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan."""

    workload: str = "insert"
    """What clients send, one of `WORKLOADS`."""
    keys: str = "random"
    """How partitions are chosen, one of `KEY_SCHEMES`."""
    partitions: int = 1
    size: int = 1024
    """Bytes of an entity, a message or a blob."""
    batch: int = 100
    """Entities of a batch or a page."""
    entities: int = 1000
    """Entities that are stored before, for reads and updates."""
    clients: tuple[int, ...] = ()
    """The clients of each step; with a rate, the connections."""
    rate: tuple[float, ...] = ()
    """Requests per second of each step; (): closed loops."""
    processes: int = 1
    seconds: float = 10.0
    """How long a step is measured."""
    warm_seconds: float = 30.0
    """The longest time until the load of a step is steady."""
    retry: str = "none"
    """What clients do after a refusal, one of `RETRIES`."""
    margin: float = 0.0
    """The share that is added to each load, for growth."""
    targets: str = "current"
    """The targets to pass, as `lazulite serve --targets` names them."""

    @property
    def cost(self) -> int:
        """The entities, messages or blobs of one request."""
        return self.batch if self.workload in ("batch", "page") else 1

    @property
    def service(self) -> str:
        """The service that is tested."""
        return self.workload if self.workload in ("queue", "blob") else "table"

    def loads(self) -> Sequence[Load]:
        """Return the load of each step, with the margin."""
        more = 1 + self.margin
        if self.rate:
            return [Load(max(self.clients, default=OPEN_CLIENTS), rate * more) for rate in self.rate]
        return [Load(math.ceil(round(count * more, 6)), None) for count in self.clients or (8,)]

    def spread(self, clients: int) -> int:
        """Return how many partitions the load of a moment goes to."""
        if self.service == "queue" or self.keys == "append":
            return 1
        return min(self.partitions, clients) if self.keys == "random" else self.partitions

    def transactions(self) -> int:
        """Return an estimate of the requests of the whole test, which the cloud bills.

        A closed loop is taken to have responses within 5 ms, so there are hardly more requests.
        """
        seconds = self.seconds + self.warm_seconds
        return round(sum((load.rate or load.clients / 0.005) * seconds for load in self.loads())) + self.entities


def plan_of(values: Mapping[str, object]) -> Plan:
    """Return the plan of some values, by name; the others have their defaults.

    Raises:
        PlanError: a name is unknown, or a value is not allowed.
    """
    known = {each.name for each in fields(Plan)}
    for name in values:
        if name not in known:
            raise PlanError(f"{name}: there is no such setting, but {', '.join(sorted(known))}")
    return _checked(Plan(**{name: _value(name, value) for name, value in values.items()}))  # type: ignore[arg-type]


def plan_values(document: str) -> Mapping[str, object]:
    """Return the values of a file's text.

    Raises:
        PlanError: it is no TOML.
    """
    try:
        return tomllib.loads(document)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError(str(error)) from error


_BOUNDS: Mapping[str, tuple[float, float]] = {
    "partitions": (1, 10_000),
    "size": (1, 4_000_000),
    "batch": (1, 100),
    "entities": (1, 1_000_000),
    "clients": (1, 2_000),
    "rate": (0.1, 1_000_000),
    "processes": (1, 64),
    "seconds": (0.1, 3_600),
    "warm_seconds": (0, 600),
    "margin": (0, 10),
}
"""The least and the greatest value of each number."""
_FRACTIONS = {"rate", "seconds", "warm_seconds", "margin"}
_LISTS = {"clients", "rate"}


def _value(name: str, value: object) -> object:
    if name in _TEXT_CHOICES and value not in _TEXT_CHOICES[name]:
        raise PlanError(f"{name}: {value!r} is not one of {', '.join(_TEXT_CHOICES[name])}")
    if name not in _BOUNDS:
        if not isinstance(value, str):
            raise PlanError(f"{name}: expected text")
        return value
    if name not in _LISTS:
        return _number(name, value)
    given = value if isinstance(value, (list, tuple)) else [value]
    if not 1 <= len(given) <= _STEPS_MAX:
        raise PlanError(f"{name}: expected 1 to {_STEPS_MAX} steps")
    return tuple(_number(name, each) for each in given)


def _number(name: str, value: object) -> float | int:
    least, most = _BOUNDS[name]
    kinds = (int, float) if name in _FRACTIONS else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        kind = "a number" if name in _FRACTIONS else "a whole number"
        raise PlanError(f"{name}: expected {kind} from {least:,g} to {most:,g}")
    return float(value) if name in _FRACTIONS else value


def _checked(plan: Plan) -> Plan:
    """Return a plan whose values go together."""
    most = _SIZES_MAX.get(plan.workload, _ENTITY_SIZE_MAX)
    if plan.size > most:
        raise PlanError(f"size: {plan.workload} takes at most {most:,} bytes")
    if plan.service == "queue" and plan.partitions > 1:
        raise PlanError("partitions: a queue is one partition")
    return plan
