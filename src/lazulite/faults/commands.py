"""The commands of the control channel that list and change the rules of a running server, for both sides."""

from dataclasses import dataclass

from lazulite.control.command import Command, NoArguments


@dataclass(frozen=True, slots=True)
class RulesArguments:
    """Rules to be added."""

    text: str
    """TOML, as in a file."""
    source: str = "rules"
    """Names the text in errors."""


@dataclass(frozen=True, slots=True)
class RuleArguments:
    """One rule."""

    name: str


LIST_FAULTS = Command("faults-list", NoArguments)
"""Has an item for each rule: as it was written, its seed, and how many requests it has seen and hit."""
ADD_FAULTS = Command("faults-add", RulesArguments)
"""Adds rules, all or none. Its item is the number of rules that there are then."""
REMOVE_FAULT = Command("faults-remove", RuleArguments)
"""Removes a rule. Its item is likewise."""
CLEAR_FAULTS = Command("faults-clear", NoArguments)
"""Removes all rules, and forgets what they counted. Its item is the number of rules that were removed."""
