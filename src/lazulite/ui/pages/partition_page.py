"""The ranges of a table, and the targets that requests must keep to."""

from http import HTTPStatus
from typing import Any

from lazulite.app.commands import PARTITIONS, SET_TARGETS, TARGETS, PartitionsArguments, SetTargetsArguments
from lazulite.control.command import NoArguments
from lazulite.partitions.targets import OFF, PRESETS
from lazulite.settings.addresses import TABLE
from lazulite.ui.calls import Context, PageCall, PageError, Redirect, link
from lazulite.ui.pages.heat_page import names_of

RANGES_MAX = 500
"""The ranges on one page; the page says how many more there are."""


async def show_partitions(call: PageCall) -> Context:
    """Return the ranges of the table that the query names, and the targets of the server."""
    name = call.query.get("name", "")
    (targets,) = await call.command(TARGETS, NoArguments())
    context: dict[str, object] = {"name": name, "targets": targets, "choices": [OFF, *PRESETS]}
    context |= {"names": await names_of(call, TABLE), "head": None, "ranges": [], "more": 0}
    if not name:
        return context
    head, *ranges = await call.command(PARTITIONS, PartitionsArguments(name, call.account))
    shown: list[Any] = list(ranges[:RANGES_MAX])
    return {**context, "head": head, "ranges": shown, "more": len(ranges) - len(shown)}


async def set_targets(call: PageCall) -> Redirect:
    """Switch the targets of the server, or switch them off."""
    name = call.form.get("targets", "")
    if name != OFF and name not in PRESETS:
        raise PageError(HTTPStatus.BAD_REQUEST, f"there are no targets {name[:40]!r}")
    await call.command(SET_TARGETS, SetTargetsArguments(name))
    text = "Requests have no targets now." if name == OFF else f"Requests must keep to the targets {name} now."
    return Redirect(link("/{account}/partitions", account=call.account, name=call.query.get("name")), text)
