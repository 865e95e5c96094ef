"""`lazulite restore`: a backup made a location again."""

import sys
from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.backup_manifest import LIST, BackupError, compare, copy_tree, placed, read_list
from lazulite.cli.check import verified
from lazulite.cli.embedded_only import refuse_database
from lazulite.cli.errors import Refusal


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Copy a backup to a location, and put it there once it has passed what `lazulite check` looks for."""
    refuse_database(args, environ, "use pg_restore")
    source, location = args.source, args.location
    try:
        listing = read_list(source)
        with placed(location) as made:
            found = copy_tree(source, made)
            found.pop(LIST)
            compare(source, listing, found)
            (made / LIST).unlink()
            lines = list(verified(made, lambda text: print(f"lazulite: {text}", file=sys.stderr)))
    except BackupError as error:
        raise Refusal(error) from error
    for line in lines:
        print(line.replace(str(made), str(location)))
    return 0
