"""`lazulite upgrade`: upgrade the tables of a database to the format of this version."""

from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import ProgressLine, StepsDone
from lazulite.cli.selected_database import selected_database
from lazulite.engine.contract import EngineError
from lazulite.server import lifecycle


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Upgrade the database that the flags name, and print its format before and after."""
    database = selected_database(args, environ)
    if database is None:
        raise CommandError("pass --engine: only the tables of a database need an upgrade", 2)
    from lazulite.engine.postgres.schema import upgrade  # noqa: PLC0415 - it needs an extra

    line = ProgressLine.of_user()

    def begin(done: int, total: int) -> None:
        line.show(StepsDone(f"upgrading {database.name}", total, done), at_once=True)

    try:
        before, after = lifecycle.run(upgrade(database, begin))
    except EngineError as error:
        raise CommandError(f"{database.name}: {error}") from error
    finally:
        line.clear()
    done = f"is of format {after} already" if before == after else f"was of format {before}, and is of {after} now"
    print(f"{database.name} {done}")
    return 0
