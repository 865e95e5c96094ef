"""The first page: accounts, services, processes, sizes and health."""

from collections.abc import Mapping
from dataclasses import dataclass

from lazulite import __version__
from lazulite.app.commands import COUNT_RESOURCES, STATUS
from lazulite.control.command import AccountArguments, ControlError, NoArguments
from lazulite.ui.calls import Context, PageCall

NOUNS = ("tables", "queues", "containers")
SIZES = {
    "file_bytes": "Files",
    "memtable_bytes": "Writes in memory",
    "cache_bytes": "Cache",
    "compaction_debt_bytes": "To be compacted",
}
"""Gauge of the store -> its name for people."""
ACCOUNTS_MAX = 50
"""The accounts whose resources are counted on one page."""


@dataclass(frozen=True, slots=True)
class AccountSummary:
    """An account and how much it has."""

    name: str
    tables: int | None
    queues: int | None
    containers: int | None


async def show_overview(call: PageCall) -> Context:
    """Return what the server is, and what it has."""
    settings, names = call.services.settings, call.services.directory.names()
    processes = await call.command(STATUS, NoArguments())
    statistics = call.services.statistics()
    return {
        "version": __version__,
        "store": call.services.store_name,
        "services": list(call.backend.services),
        "workers": settings.workers,
        "processes": processes,
        "summaries": [await _summary(call, name) for name in names[:ACCOUNTS_MAX]],
        "uncounted": names[ACCOUNTS_MAX:],
        "sizes": {text: statistics[name] for name, text in SIZES.items() if name in statistics},
        "is_healthy": all("error" not in each for each in processes if isinstance(each, Mapping)),
    }


async def _summary(call: PageCall, name: str) -> AccountSummary:
    try:
        (counts,) = await call.command(COUNT_RESOURCES, AccountArguments(name))
    except ControlError:
        return AccountSummary(name, None, None, None)
    assert isinstance(counts, Mapping)
    return AccountSummary(name, *(_count_of(counts, noun) for noun in NOUNS))


def _count_of(counts: Mapping[str, object], noun: str) -> int:
    """Return the count of a noun, which is singular if there is one."""
    found = counts.get(noun, counts.get(noun.removesuffix("s"), 0))
    return found if isinstance(found, int) else 0
