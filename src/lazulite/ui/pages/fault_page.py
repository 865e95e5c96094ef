"""The rules of faults: what they are, what they have hit, and their changes."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

from lazulite.control.command import ControlError, Json, NoArguments
from lazulite.faults.commands import (
    ADD_FAULTS,
    CLEAR_FAULTS,
    LIST_FAULTS,
    REMOVE_FAULT,
    RuleArguments,
    RulesArguments,
)
from lazulite.faults.rules_file import BYTES_MAX, PRESETS, description_of, source_of
from lazulite.ui.calls import Context, PageCall, PageError, Redirect

PATH = "/faults"


class Preset(NamedTuple):
    """Rules that come with the server."""

    name: str
    description: str


def toml_text(value: Json) -> str:
    """Return a value of a rule as its file has it, in TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(name)} = {toml_text(each)}' for name, each in value.items())} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(toml_text, value))}]"
    return json.dumps(value, ensure_ascii=False)


async def show_faults(call: PageCall) -> Context:
    """Return the rules in force."""
    try:
        rules = [_shown(each) for each in await call.command(LIST_FAULTS, NoArguments())]
    except ControlError as error:
        if error.code != "unknown-command":  # Processes on a database have no rules in common.
            raise
        return {"rules": [], "presets": [], "is_available": False, "bytes_max": BYTES_MAX}
    presets = [Preset(name, description_of(name)) for name in PRESETS]
    return {"rules": rules, "presets": presets, "is_available": True, "bytes_max": BYTES_MAX}


def _shown(item: Json) -> Mapping[str, object]:
    """Return a rule with the text of each of its keys."""
    assert isinstance(item, Mapping)
    rule = item["rule"]
    assert isinstance(rule, Mapping)
    return {**item, "texts": [f"{name} = {toml_text(each)}" for name, each in rule.items() if name != "name"]}


async def add_rules(call: PageCall) -> Redirect:
    """Add the rules of a preset, or of the text of the form."""
    preset, text, source = call.form.get("preset", ""), call.form.get("text", ""), "the text"
    if preset:
        if preset not in PRESETS:
            raise PageError(HTTPStatus.BAD_REQUEST, f"there is no preset {preset[:40]!r}")
        source, text = source_of(preset)
    (count,) = await call.command(ADD_FAULTS, RulesArguments(text.replace("\r\n", "\n"), source))
    return Redirect(PATH, f"{count} {'rule is' if count == 1 else 'rules are'} in force.")


async def remove_rule(call: PageCall) -> Redirect:
    """Remove one rule."""
    name = call.form.get("name", "")
    await call.command(REMOVE_FAULT, RuleArguments(name))
    return Redirect(PATH, f"Rule {name} is removed.")


async def clear_rules(call: PageCall) -> Redirect:
    """Remove all rules."""
    await call.command(CLEAR_FAULTS, NoArguments())
    return Redirect(PATH, "No rule is in force.")
