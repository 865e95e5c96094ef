"""`lazulite copy`: a whole store moved to another place, which may be of another kind; then both compared."""

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import aclosing

from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.argv_secrets import VARIABLES
from lazulite.cli.copy_endpoints import End, end_at, opened
from lazulite.cli.errors import Refusal
from lazulite.cli.progress_line import ProgressLine
from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.migration.compare import Comparing, Comparison, Facts
from lazulite.migration.copying import Means, copy
from lazulite.migration.endpoint import Store, TransferError
from lazulite.migration.journal import Journal
from lazulite.migration.monotonic_clock import RisingClock
from lazulite.migration.progress import Tally
from lazulite.protocol.clock import system_clock
from lazulite.server import lifecycle

Report = Callable[[Tally], None]


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Copy and compare, or compare."""
    source, target = (
        end_at(getattr(args, name), environ, VARIABLES[flag])
        for name, flag in (("source", "--from"), ("target", "--to"))
    )
    if source == target:
        raise Refusal("--from and --to are the same store")
    try:
        lifecycle.run(_run(args, source, target))
    except (TransferError, EngineError, AccountsError) as error:
        raise Refusal(error) from error
    return 0


async def _run(args: Namespace, source_end: End, target_end: End) -> None:
    progress = None if args.silent else ProgressLine(sys.stderr)
    clock = RisingClock(system_clock)
    async with (
        opened(source_end, system_clock, must_exist=True) as source,
        opened(target_end, clock, must_exist=args.verify_only) as target,
    ):
        if args.verify_only:
            if await Journal.unfinished(target.engine) is not None:
                raise Refusal(f"{target.name} is an unfinished copy; finish it first")
            await _verify(source, target, None, progress)
            return
        report = progress.show if progress is not None else _ignore
        try:
            journal = await copy(source, target, Means(clock, time.monotonic), report)
        except EngineUnavailableError as error:
            raise Refusal(f"{error}; run the same command again to resume the copy") from error
        await _verify(source, target, journal.progress.entities, progress)
        await journal.end()


async def _verify(source: Store, target: Store, entities: int | None, progress: ProgressLine | None) -> None:
    """Compare two stores, and print what they hold.

    Raises:
        Refusal: there is a difference.
    """
    print(f"from      {source.name}")
    print(f"to        {target.name}")
    accounts = await source.accounts.load()
    differences = [] if accounts == await target.accounts.load() else ["the accounts"]
    print(f"accounts  {len(accounts):,}")
    comparing = Comparing(source.engine, target.engine, _ignore if progress is None else progress.show)
    tables = rows = 0
    async with aclosing(comparing.run(entities)) as comparisons:
        async for comparison in comparisons:
            if progress is not None:
                progress.clear()
            if not comparison.equal:
                differences.append(comparison.part.name)
            if comparison.part.is_table:
                tables += 1
                rows += comparison.source.rows
            for line in _lines(comparison):
                print(line, flush=True)
    totals = comparing.totals()
    print(f"tables    {tables:,}")
    print(f"entities  {rows:,}")
    print(f"bytes     {totals.source.size_bytes:,}")
    print(f"checksum  {totals.source.checksum}")
    if differences:
        raise Refusal(_complaint(differences, target))
    print("no difference found")


def _lines(comparison: Comparison) -> list[str]:
    part = comparison.part
    if comparison.equal:
        return [f"table     {part.name}: {_told(comparison.source)}"] if part.is_table else []
    return [
        f"differs   {part.name}, from: {_told(comparison.source)}",
        f"differs   {part.name}, to:   {_told(comparison.target)}",
    ]


def _told(facts: Facts) -> str:
    return f"{facts.rows:,} entities, {facts.size_bytes:,} bytes, {facts.checksum}"


def _complaint(differences: list[str], target: Store) -> str:
    more = f" and {len(differences) - 1:,} more" if len(differences) > 1 else ""
    return (
        f"{target.name} differs from its source: {differences[0]}{more}; "
        "if the source was written to meanwhile, empty the target and copy again"
    )


def _ignore(_: Tally) -> None:
    """Ignore a progress report."""
