"""A progress bar in the terminal, by `rich`, which is an extra: `rich`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from lazulite_patterns.bulk.job import Progress


@contextmanager
def bar(
    total: int | None = None, title: str = "rows", console: Console | None = None
) -> Iterator[Callable[[Progress], None]]:
    """Show a bar while the block runs: `with bar(10**6) as progress: load(table, rows, progress=progress)`.

    Args:
        total: rows; None if that is not known.
        title: stands before the bar.
        console: of rich; None for that of the process.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, TextColumn("{task.fields[failed]} failed"), console=console) as shown:
        task = shown.add_task(title, total=total, failed=0)

        def show(progress: Progress) -> None:
            shown.update(task, completed=progress.rows_done, failed=progress.failed)

        yield show
