"""The rules of faults of a server that a test has started."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lazulite.control.client import Client
from lazulite.control.command import NoArguments
from lazulite.faults.commands import (
    ADD_FAULTS,
    CLEAR_FAULTS,
    LIST_FAULTS,
    REMOVE_FAULT,
    RuleArguments,
    RulesArguments,
)
from lazulite.faults.rules_file import PRESETS, source_of

Value = bool | int | float | str | list[str] | Mapping[str, str]
"""A value of a rule's key, as in a file of rules."""


class Faults:
    """The rules of a running server; see docs/faults.md. Safe to use from any thread.

    Args:
        control: sends commands to the server.
    """

    def __init__(self, control: Client) -> None:
        self._control = control

    def add(self, rules: str) -> None:
        """Add rules behind the others.

        Args:
            rules: the text of a file of rules, or the name of a preset.

        Raises:
            ControlError: the text does not state rules, or a name is taken. The text names the line.
        """
        text = source_of(rules)[1] if rules in PRESETS else rules
        self._control.ask(ADD_FAULTS, RulesArguments(text))

    def add_rule(self, name: str = "rule", *, seed: int = 0, show: bool = False, **keys: Value) -> None:
        """Add one rule.

        Args:
            name: of the rule.
            seed: of what is left to chance.
            show: whether responses name the rule in `x-lazulite-fault`.
            keys: those of the rule, as in a file.

        Raises:
            ControlError: as `add`.
        """
        lines = [f"seed = {seed}", f"header = {_toml(show)}", "[[rule]]", f"name = {_toml(name)}"]
        self.add("\n".join([*lines, *(f"{key} = {_toml(value)}" for key, value in keys.items())]))

    @contextmanager
    def rule(self, name: str = "rule", *, seed: int = 0, show: bool = False, **keys: Value) -> Iterator[None]:
        """Have one rule inside the block; see `add_rule`."""
        self.add_rule(name, seed=seed, show=show, **keys)
        try:
            yield
        finally:
            self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a rule.

        Raises:
            ControlError: there is none of that name.
        """
        self._control.ask(REMOVE_FAULT, RuleArguments(name))

    def clear(self) -> None:
        """Remove all rules, and forget what they counted."""
        self._control.ask(CLEAR_FAULTS, NoArguments())

    def hits(self) -> Mapping[str, int]:
        """Return how many requests each rule has hit, by its name."""
        items: list[Any] = list(self._control.stream(LIST_FAULTS, NoArguments()))
        return {item["rule"]["name"]: item["hits"] for item in items}


def _toml(value: Value) -> str:
    """Return a value as TOML, whose texts, numbers and lists are those of JSON."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {json.dumps(text)}" for name, text in value.items()) + "}"
    return json.dumps(value)
