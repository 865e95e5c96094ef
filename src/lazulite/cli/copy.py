"""`lazulite copy`: copy a whole store to another location or database, then compare the two."""

import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import aclosing

from lazulite.app.registry import SPACES
from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.argv_secrets import VARIABLES
from lazulite.cli.copy_endpoints import EndpointAddress, endpoint_address, open_endpoint
from lazulite.cli.errors import CommandError
from lazulite.cli.summary import CommandOutput, labelled
from lazulite.engine.contract import EngineError, EngineUnavailableError
from lazulite.migration.compare import ComparedStore, ContentSummary, PartComparison, StoreComparer
from lazulite.migration.copying import Timing, copy
from lazulite.migration.endpoint import Endpoint, MigrationError
from lazulite.migration.journal import Journal
from lazulite.migration.monotonic_clock import MonotonicClock
from lazulite.protocol.clock import system_clock
from lazulite.server import lifecycle


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Copy and compare, or with `--verify-only` compare only."""
    source, target = (
        endpoint_address(getattr(args, name), environ, VARIABLES[flag])
        for name, flag in (("source", "--from"), ("target", "--to"))
    )
    if source == target:
        raise CommandError("--from and --to are the same store")
    try:
        with CommandOutput.from_args(args, silent=args.silent) as output:
            lifecycle.run(_run(args, source, target, output))
    except (MigrationError, EngineError, AccountsError) as error:
        raise CommandError(error) from error
    return 0


async def _run(
    args: Namespace, source_address: EndpointAddress, target_address: EndpointAddress, output: CommandOutput
) -> None:
    clock = MonotonicClock(system_clock)
    async with (
        open_endpoint(source_address, system_clock, must_exist=True) as source,
        open_endpoint(target_address, clock, must_exist=args.verify_only) as target,
    ):
        if args.verify_only:
            if await Journal.unfinished(target.engine) is not None:
                raise CommandError(f"{target.name} is an unfinished copy; finish it first")
            await _verify(source, target, None, output)
            return
        try:
            journal = await copy(source, target, SPACES, Timing(clock, time.monotonic), output.progress.show)
        except EngineUnavailableError as error:
            raise CommandError(f"{error}; run the same command again to resume the copy") from error
        await _verify(source, target, journal.position.entities, output)
        await journal.end()


async def _verify(source: Endpoint, target: Endpoint, entities: int | None, output: CommandOutput) -> None:
    """Compare two stores and print a summary of their contents.

    Raises:
        CommandError: the stores differ.
    """
    output.tell_line("from", source.name)
    output.tell_line("to", target.name)
    accounts = await source.accounts.load()
    differences = [] if accounts == await target.accounts.load() else ["the accounts"]
    output.tell_line("accounts", len(accounts))
    sides = ComparedStore(source.engine, source.contents), ComparedStore(target.engine, target.contents)
    comparer = StoreComparer(*sides, SPACES, output.progress.show)
    counts = {noun: 0 for nouns in SPACES.nouns for noun in (nouns.spaces, nouns.rows)}
    async with aclosing(comparer.run(entities)) as comparisons:
        async for comparison in comparisons:
            if not comparison.equal:
                differences.append(comparison.part.name)
            catalog = comparison.part.catalog
            if catalog is not None:
                counts[catalog.nouns.spaces] += 1
                counts[catalog.nouns.rows] += comparison.source.rows
            _tell(output, comparison)
    totals = comparer.totals()
    for noun, count in counts.items():
        output.tell_line(noun, count)
    output.tell_line("bytes", totals.source.size_bytes)
    output.tell_line("checksum", totals.source.checksum)
    if differences:
        raise CommandError(_difference_message(differences, target))
    output.tell("no difference found")


def _tell(output: CommandOutput, comparison: PartComparison) -> None:
    part = comparison.part
    nouns = None if part.catalog is None else part.catalog.nouns
    rows = "rows" if nouns is None else nouns.rows
    if comparison.equal:
        if nouns is not None:
            text = labelled(nouns.space, f"{part.name}: {_described(comparison.source, rows)}")
            output.tell_item("parts", text, {"kind": nouns.space, "name": part.name, **_values(comparison.source)})
        return
    for side, summary in (("from", comparison.source), ("to", comparison.target)):
        text = labelled("differs", f"{part.name}, {f'{side}:':<5} {_described(summary, rows)}")
        output.tell_item("differences", text, {"name": part.name, "side": side, **_values(summary)})


def _values(summary: ContentSummary) -> Mapping[str, object]:
    return {"rows": summary.rows, "bytes": summary.size_bytes, "checksum": summary.checksum}


def _described(summary: ContentSummary, rows: str) -> str:
    return f"{summary.rows:,} {rows}, {summary.size_bytes:,} bytes, {summary.checksum}"


def _difference_message(differences: list[str], target: Endpoint) -> str:
    more = f" and {len(differences) - 1:,} more" if len(differences) > 1 else ""
    return (
        f"{target.name} differs from its source: {differences[0]}{more}; "
        "if the source was written to meanwhile, empty the target and copy again"
    )
