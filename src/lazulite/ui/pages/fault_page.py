"""The rules of faults: what they are, what they have hit, and their changes."""

from http import HTTPStatus

from lazulite.control.command import ControlError, NoArguments
from lazulite.faults.commands import (
    ADD_FAULTS,
    CLEAR_FAULTS,
    LIST_FAULTS,
    REMOVE_FAULT,
    RuleArguments,
    RulesArguments,
)
from lazulite.faults.rules_file import BYTES_MAX, PRESETS, source_of
from lazulite.ui.calls import Context, PageCall, PageError, Redirect

PATH = "/faults"


async def show_faults(call: PageCall) -> Context:
    """Return the rules in force."""
    try:
        rules = list(await call.command(LIST_FAULTS, NoArguments()))
    except ControlError as error:
        if error.code != "unknown-command":  # Processes on a database have no rules in common.
            raise
        return {"rules": [], "presets": [], "is_available": False, "bytes_max": BYTES_MAX}
    return {"rules": rules, "presets": PRESETS, "is_available": True, "bytes_max": BYTES_MAX}


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
