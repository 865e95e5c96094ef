"""Rules as TOML: the schema as tables, and errors that name the line.

The file has `seed`, `header` and a table `[[rule]]` for each rule. A rule has a name, keys of its condition, and one
key of its effect. `docs/faults.md` has the schema for people.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import Any

from lazulite.faults.patterns import Pattern, pattern
from lazulite.faults.rule import OPERATIONS, Condition, Rule
from lazulite.faults.rules import RULES_MAX
from lazulite.protocol.errors import CATALOGUE
from lazulite.protocol.fault import Break, Effect, Moment
from lazulite.protocol.secret_headers import SECRET_HEADERS

BYTES_MAX = 48 * 1024
"""The most bytes of the text of rules: less than the control channel takes."""
TEXT_MAX = 1024
PRESETS = ("ambiguous-writes", "cautious-client", "flaky-network")

_SERVICES = ("table", "queue", "blob")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_RULE = re.compile(r"\s*\[\[\s*rule\s*\]\]")
_AT_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)")
_SECONDS_MAX = 366 * 24 * 3600
_COUNT_MAX = 2**53

_Read = Callable[[Any], Any]
"""Takes a value of TOML, and returns what it means. Raises `ValueError`, whose text tells what the value must be."""


class RulesFileError(ValueError):
    """The text does not state rules. The message names the source and the line."""


def _number(least: float, most: float) -> _Read:
    def read(value: Any) -> float:
        if type(value) not in (int, float) or not least <= value <= most:
            raise ValueError(f"must be a number from {least:g} to {most:g}")
        return float(value)

    return read


def _integer(least: int, most: int = _COUNT_MAX) -> _Read:
    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"must be an integer from {least}" + ("" if most == _COUNT_MAX else f" to {most}"))
        return value

    return read


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("must be true or false")
    return value


def _true(value: Any) -> bool:
    if value is not True:
        raise ValueError("must be true")
    return True


def _text(value: Any) -> str:
    if type(value) is not str or not 0 < len(value) <= TEXT_MAX:
        raise ValueError(f"must be a text of 1 to {TEXT_MAX} characters")
    return value


def _one_of(*choices: str) -> _Read:
    def read(value: Any) -> str:
        if type(value) is not str or value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return read


def _several(read_one: _Read) -> _Read:
    def read(value: Any) -> tuple[Any, ...]:
        values = value if type(value) is list else [value]
        if not values or len(values) > RULES_MAX:
            raise ValueError("must be a text, or a list of some")
        return tuple(map(read_one, values))

    return read


def _pattern(value: Any) -> Pattern:
    return pattern(_text(value))


def _pattern_of_name(value: Any) -> Pattern:
    return pattern(_text(value).lower())


def _headers(value: Any) -> tuple[tuple[str, Pattern], ...]:
    if type(value) is not dict or not 0 < len(value) <= RULES_MAX:
        raise ValueError("must be a table of names and patterns")
    secret = sorted(SECRET_HEADERS & {name.lower() for name in value})
    if secret:
        raise ValueError(f"must not name {' or '.join(secret)}, which has a secret")
    return tuple((name.lower(), _pattern(text)) for name, text in value.items())


def _code(value: Any) -> str:
    if type(value) is not str or value not in CATALOGUE:
        raise ValueError("must be an error code, such as ServerBusy; docs/errors.md has all")
    return value


_CONDITIONS: Mapping[str, tuple[str, _Read]] = {
    "service": ("services", _several(_one_of(*_SERVICES))),
    "operation": ("operations", _several(_pattern)),
    "account": ("account", _pattern_of_name),
    "resource": ("resource", _pattern_of_name),
    "key": ("key", _pattern),
    "header": ("headers", _headers),
    "secondary": ("secondary", _boolean),
    "changes": ("changes", _boolean),
    "from_seconds": ("from_seconds", _number(0, _SECONDS_MAX)),
    "until_seconds": ("until_seconds", _number(0, _SECONDS_MAX)),
}
"""Key of a rule -> the field of `Condition`, and what reads it."""
_FREQUENCIES: Mapping[str, _Read] = {"probability": _number(0, 1), "every": _integer(1), "first": _integer(1)}
"""Key of a rule, and field of `Rule` -> what reads it."""
_EFFECTS: Mapping[Effect, _Read] = {
    Effect.DELAY: _number(0, 3600),
    Effect.ERROR: _code,
    Effect.OVERTAKEN: _true,
    Effect.RESET: _one_of(*Break),
    Effect.TRUNCATE: _number(0, 1),
    Effect.SLOW: _number(1, 2**40),
    Effect.PAGE: _integer(0, 5000),
    Effect.DUPLICATE: _true,
    Effect.STALE: _true,
    Effect.CLOCK: _number(-_SECONDS_MAX, _SECONDS_MAX),
}
"""Key of a rule -> what reads it."""
_TIMED = frozenset({Effect.DELAY, Effect.ERROR})
"""The effects that may come before or after the operation."""
_CLOCK_KEYS = frozenset({"name", "service", "from_seconds", "until_seconds", Effect.CLOCK.value})
KEYS = ("name", *_CONDITIONS, *_FREQUENCIES, *(effect.value for effect in Effect), "when")
"""All keys of a rule."""


def source_of(text: str) -> tuple[str, str]:
    """Return the name and the text of rules, given a path or the name of a preset.

    Raises:
        RulesFileError: the file cannot be read, is too long, or no UTF-8.
    """
    if text in PRESETS:
        return text, files("lazulite.faults").joinpath("presets", f"{text}.toml").read_text("utf-8")
    try:
        with Path(text).open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        reason = f"cannot read {text}: {error.strerror}; the presets are {', '.join(PRESETS)}"
        raise RulesFileError(reason) from None
    try:
        return text, data.decode()
    except UnicodeDecodeError:
        raise RulesFileError(f"{text}: the file is not UTF-8") from None


def description_of(preset: str) -> str:
    """Return what a preset is for: the comment at the beginning of its file."""
    lines = source_of(preset)[1].splitlines()
    return " ".join(line.removeprefix("#").strip() for line in takewhile(lambda line: line.startswith("#"), lines))


def parse_rules(text: str, operations: Collection[str], source: str = "rules") -> tuple[Rule, ...]:
    """Return the rules of a text.

    Args:
        text: TOML.
        operations: the names of all operations of the services.
        source: the name of the text, for errors.

    Raises:
        RulesFileError: it is too long, or not of the schema; the error names the first such line.
    """
    lines = _Lines(text, source)
    if len(text) > BYTES_MAX:
        raise RulesFileError(f"{source}: rules have at most {BYTES_MAX} characters")
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        number = at[1] if at is not None and at[1] else str(len(lines.lines))
        raise RulesFileError(f"{source}:{number}: {_AT_LINE.sub('', str(error))}") from None
    except RecursionError:
        raise RulesFileError(f"{source}: the text is nested too deeply") from None
    for name in given.keys() - {"seed", "header", "rule"}:
        raise lines.error(None, name, "is unknown: there are seed, header and [[rule]]")
    rows = given.get("rule", [])
    if type(rows) is not list or not all(type(row) is dict for row in rows):
        raise lines.error(None, "rule", "must be written as [[rule]]")
    if len(rows) > RULES_MAX:
        raise RulesFileError(f"{source}: there are at most {RULES_MAX} rules")
    seed = lines.read(None, given, "seed", _integer(0), 0)
    shown = lines.read(None, given, "header", _boolean, default=False)
    names: set[str] = set()
    rules = []
    for index, row in enumerate(rows):
        rule = _rule(lines, index, row, operations)._replace(seed=seed, shown=shown)
        if rule.name in names:
            raise lines.error(index, "name", f"{rule.name} is that of another rule")
        names.add(rule.name)
        rules.append(rule)
    return tuple(rules)


class _Lines:
    """The lines of a text, for errors."""

    def __init__(self, text: str, source: str) -> None:
        self.lines = text.splitlines()
        self._source = source
        self._starts = [number for number, line in enumerate(self.lines, 1) if _RULE.match(line)]

    def error(self, index: int | None, key: str, reason: str) -> RulesFileError:
        """Return the error of a key of a rule, or of the whole text (None)."""
        first = 1 if index is None else self._starts[index] if index < len(self._starts) else 1
        ends = [start for start in self._starts if start > first]
        last = ends[0] if ends else len(self.lines) + 1
        key_of = re.compile(rf"\s*(?:\[+\s*)?(?:rule\s*\.\s*)?[\"']?{re.escape(key)}[\"']?\s*[=.\]]")
        number = next((at for at in range(first, last) if key_of.match(self.lines[at - 1])), first)
        return RulesFileError(f"{self._source}:{number}: {key} {reason}")

    def read(self, index: int | None, row: Mapping[str, Any], key: str, read: _Read, default: Any) -> Any:
        """Return what a key means; the default without it."""
        if key not in row:
            return default
        try:
            return read(row[key])
        except ValueError as error:
            raise self.error(index, key, str(error)) from None


def _rule(lines: _Lines, index: int, row: Mapping[str, Any], operations: Collection[str]) -> Rule:
    for key in row:
        if key not in KEYS:
            raise lines.error(index, key, f"is unknown: the keys are {', '.join(KEYS)}")
    if "name" not in row:
        raise lines.error(index, "name", "is missing")
    name = row["name"]
    if type(name) is not str or _NAME.fullmatch(name) is None:
        raise lines.error(index, "name", "must have 1 to 64 of the characters A-Z a-z 0-9 _ . -")
    effects = [effect for effect in Effect if effect.value in row]
    if len(effects) != 1:
        every = ", ".join(effect.value for effect in Effect)
        if effects:
            raise lines.error(index, effects[1].value, f"is a second effect: a rule has one of {every}")
        raise lines.error(index, "name", f"is that of a rule without effect: a rule has one of {every}")
    effect = effects[0]
    fields = {field: lines.read(index, row, key, read, None) for key, (field, read) in _CONDITIONS.items()}
    condition = Condition(**{field: value for field, value in fields.items() if value is not None})
    frequencies = {key: lines.read(index, row, key, read, None) for key, read in _FREQUENCIES.items()}
    value = lines.read(index, row, effect.value, _EFFECTS[effect], None)
    moment = Moment(lines.read(index, row, "when", _one_of(*Moment), Moment.BEFORE))
    rule = Rule(name, condition, effect, value, moment, given=row)
    rule = rule._replace(**{key: value for key, value in frequencies.items() if value is not None})
    _check(lines, index, row, rule, operations)
    return rule


def _check(lines: _Lines, index: int, row: Mapping[str, Any], rule: Rule, operations: Collection[str]) -> None:
    """Check what no key alone tells. Raises `RulesFileError`."""
    condition, effect = rule.condition, rule.effect
    if "when" in row and effect not in _TIMED:
        raise lines.error(index, "when", f"is for {' and '.join(sorted(_TIMED))} alone")
    if condition.until_seconds is not None and condition.until_seconds <= condition.from_seconds:
        raise lines.error(index, "until_seconds", "must be greater than from_seconds")
    if effect is Effect.CLOCK:
        for key in row.keys() - _CLOCK_KEYS:
            raise lines.error(index, key, "is not for a clock, which all requests of a service share")
    known = OPERATIONS.get(effect, operations)
    for each in condition.operations:
        if not any(each.matches(name) for name in known):
            what = "operation" if effect not in OPERATIONS else f"operation that has {effect.value}"
            raise lines.error(index, "operation", f"matches no {what}")
    if effect is Effect.STALE and condition.secondary is False:
        raise lines.error(index, "secondary", "must be true for stale")
    if effect is Effect.PAGE and not rule.value and rule.probability == 1 and rule.every == 1 and rule.first is None:
        raise lines.error(
            index, effect.value, "of 0 needs a probability below 1, every or first: else no list would ever end"
        )


assert set(_EFFECTS) == set(Effect), "each effect has a reader"
