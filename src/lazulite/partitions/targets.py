"""Scalability targets: what a service promises, and what it enforces.

Invariant: a target is what documents state, and a cap is what the gate enforces. The service of the study had spare
capacity, so its caps are above its targets; a strict one has caps equal to its targets.

Sources: the study's targets of 2010, the documents of today, and the caps that fit the study's figures 13 and 15.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

_MEBIBYTE = 1024 * 1024
_GIGABIT = 1_000_000_000 // 8


class TargetsError(ValueError):
    """A file of targets is invalid. The text is one line for people."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate per second."""

    target: float
    """What the documents promise; a stress test passes or fails by it."""
    cap: float
    """What the gate enforces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balancing:
    """When ranges split, move and merge. All times are in seconds, and `time_scale` divides them."""

    servers: int = 4
    """The number of virtual servers."""
    round_seconds: float = 15.0
    """The pause between two rounds of the balancer."""
    decide_after_seconds: float = 300.0
    """How long a load lasts until the balancer acts on it, so that it ignores short spikes."""
    move_seconds: float = 15.0
    """How long the requests of a moving range are refused."""
    cold_after_seconds: float = 600.0
    """How long two neighbours are cold, and how old they are, before they are merged."""
    split_share: float = 0.5
    """The share of a virtual server's cap above which a range is split."""
    merge_share: float = 0.1
    """The share of a virtual server's cap below which a range is cold."""
    split_bytes: int = 10 * 1024 * _MEBIBYTE
    """The size above which a range is split."""
    splits_per_round: int = 2
    """The most splits of one round, over all tables."""
    ranges_low: int = 10
    """The ranges per server above which merging is twice as fast."""
    ranges_high: int = 20
    """The ranges per server at which no range is split for its load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The targets of a server."""

    name: str = ""
    partition: Rate
    """Entities per second of one partition of a table."""
    server_cap: float = 0
    """Operations per second of one virtual server; 0: twice the cap of a partition."""
    account: Rate
    """Entities, messages and requests to blobs per second of one account."""
    queue: Rate
    """Messages per second of one queue."""
    blob: Rate
    """Requests per second of one blob."""
    blob_bytes: Rate
    """Bytes per second of one blob."""
    ingress_bytes: Rate
    """Bytes of request bodies per second of one account."""
    egress_bytes: Rate
    """Bytes of response bodies per second of one account."""
    burst_seconds: float = 1
    """How many seconds of unused rate a burst may use."""
    request_seconds: float = 0
    """How long a partition serves one request, one after the other; 0: it serves any number at once."""
    entity_seconds: float = 0
    """How much longer it takes for each further entity of a request."""
    queue_seconds: float = 1
    """How long a request may wait for the ones before it; it is refused if it would wait longer."""
    timeout_share: float = 0.2
    """The share of refusals by a partition or a move that are time-outs, whose writes may have been made."""
    indexes: bool = False
    """Whether queries use declared indexes, and are charged for what they read by these. The cloud would scan."""
    balancing: Balancing = field(default_factory=Balancing)

    @property
    def server(self) -> float:
        """The operations per second that a virtual server takes."""
        return self.server_cap or 2 * self.partition.cap


def _both(rate: float) -> Rate:
    return Rate(rate, rate)


STUDY_2010 = Targets(
    name="study-2010",
    partition=Rate(500, 2_500),
    account=Rate(5_000, 20_000),
    queue=Rate(500, 2_500),
    blob=_both(500),
    blob_bytes=_both(60_000_000),
    ingress_bytes=_both(3 * _GIGABIT),
    egress_bytes=_both(3 * _GIGABIT),
    request_seconds=0.001,
    entity_seconds=0.000_39,
)
"""The service that the study measured. Caps and times of service are derived from its figures 8, 13 and 15."""

STUDY_2010_STRICT = replace(
    STUDY_2010,
    name="study-2010-strict",
    partition=_both(500),
    account=_both(5_000),
    queue=_both(500),
)
"""The same targets without spare capacity."""

CURRENT = Targets(
    name="current",
    partition=_both(2_000),
    account=_both(20_000),
    queue=_both(2_000),
    blob=_both(500),
    blob_bytes=_both(60 * _MEBIBYTE),
    ingress_bytes=_both(25 * _GIGABIT),
    egress_bytes=_both(50 * _GIGABIT),
)
"""The targets of today."""

PRESETS: Mapping[str, Targets] = {each.name: each for each in (STUDY_2010, STUDY_2010_STRICT, CURRENT)}
"""The targets that have a name."""

OFF = "off"
"""The name for no targets."""


def targets_from(text: str) -> Targets:
    """Return the targets of a preset's name, or of a file's path.

    Raises:
        TargetsError: there is neither, or the file is invalid.
    """
    if text in PRESETS:
        return PRESETS[text]
    path = Path(text)
    if path.suffix != ".toml":
        raise TargetsError(f"no targets {text!r}; there are {', '.join(PRESETS)}, off, and files that end in .toml")
    try:
        return targets_of(path.read_text(encoding="utf-8"), path.stem)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TargetsError(f"cannot read {text}: {reason}") from error
    except TargetsError as error:
        raise TargetsError(f"{text}: {error}") from error


def targets_of(document: str, name: str) -> Targets:
    """Return the targets of the text of a file.

    Raises:
        TargetsError: the text is invalid.
    """
    try:
        return _parse(tomllib.loads(document), name)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TargetsError(str(error)) from error


def _parse(document: Mapping[str, object], name: str) -> Targets:
    """Return the targets of a document: a preset to begin with, and what differs from it."""
    given = dict(document)
    base = given.pop("base", CURRENT.name)
    if base not in PRESETS:
        raise TargetsError(f"base: there are {', '.join(PRESETS)}")
    changes: dict[str, object] = {"name": name}
    balancing = given.pop("balancing", {})
    if not isinstance(balancing, dict):
        raise TargetsError("balancing: expected a table")
    preset = PRESETS[str(base)]
    known = {each.name for each in fields(Targets)} - {"name"}
    for key, value in given.items():
        if key not in known:
            raise TargetsError(f"{key}: there is no such target")
        changes[key] = _value(key, value, getattr(preset, key))
    changes["balancing"] = _balancing(preset.balancing, balancing)
    return _checked(replace(preset, **changes))  # type: ignore[arg-type]  # Each was checked against its field.


def _value(key: str, value: object, preset: object) -> object:
    """Return a value of the type that the preset has."""
    if isinstance(preset, Rate):
        return _rate(key, value, preset)
    if not isinstance(preset, bool):
        return _number(key, value)
    if not isinstance(value, bool):
        raise TargetsError(f"{key}: expected true or false")
    return value


def _rate(key: str, value: object, preset: Rate) -> Rate:
    """Return a rate: a number is target and cap, a table has one or both."""
    if not isinstance(value, dict):
        return _both(_number(key, value))
    unknown = set(value) - {"target", "cap"}
    if unknown:
        raise TargetsError(f"{key}.{min(unknown)}: expected target or cap")
    target = _number(f"{key}.target", value.get("target", preset.target))
    return Rate(target, _number(f"{key}.cap", value.get("cap", max(target, preset.cap))))


def _balancing(preset: Balancing, given: Mapping[str, object]) -> Balancing:
    changes: dict[str, float] = {}
    for key, value in given.items():
        if key not in Balancing.__dataclass_fields__:
            raise TargetsError(f"balancing.{key}: there is no such setting")
        number = _number(f"balancing.{key}", value)
        if isinstance(getattr(preset, key), int) and not number.is_integer():
            raise TargetsError(f"balancing.{key}: expected a whole number")
        changes[key] = int(number) if isinstance(getattr(preset, key), int) else number
    return replace(preset, **changes)  # type: ignore[arg-type]  # Each was checked against its field.


def _number(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise TargetsError(f"{key}: expected a number that is not negative")
    return float(value)


def _checked(targets: Targets) -> Targets:
    """Return targets that the gate and the balancer can work with."""
    for each in fields(Targets):
        value = getattr(targets, each.name)
        if isinstance(value, Rate) and not 0 < value.target <= value.cap:
            raise TargetsError(f"{each.name}: expected a target above 0, and a cap that is not below it")
    balancing = targets.balancing
    if not 1 <= balancing.servers <= SERVERS_MAX:
        raise TargetsError(f"balancing.servers: expected 1 to {SERVERS_MAX}")
    if balancing.round_seconds <= 0 or targets.burst_seconds <= 0:
        raise TargetsError("round_seconds and burst_seconds: expected more than 0")
    if not balancing.merge_share < balancing.split_share <= 1 or targets.timeout_share > 1:
        raise TargetsError("expected merge_share < split_share <= 1, and timeout_share <= 1")
    if not 1 <= balancing.ranges_low <= balancing.ranges_high <= RANGES_MAX:
        raise TargetsError(f"expected 1 <= ranges_low <= ranges_high <= {RANGES_MAX}")
    return targets


SERVERS_MAX = 64
"""The most virtual servers."""
RANGES_MAX = 100
"""The most ranges per virtual server."""
