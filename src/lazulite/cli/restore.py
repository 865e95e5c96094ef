"""`lazulite restore`: copy a backup to a new location."""

from argparse import Namespace
from collections.abc import Mapping

from lazulite.cli.backup_manifest import BackupError, atomic_directory, compare_manifest, copy_tree, read_manifest
from lazulite.cli.check import tell_undamaged, verify_location
from lazulite.cli.errors import CommandError
from lazulite.cli.selected_database import reject_database
from lazulite.cli.summary import CommandOutput, SummaryLine
from lazulite.settings.config import BACKUP_MANIFEST


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Copy a backup to a staging directory, verify it as `lazulite check` does, and rename it to the location."""
    reject_database(args, environ, "use pg_restore")
    source, location = args.source, args.location
    with CommandOutput.from_args(args) as output:
        try:
            manifest = read_manifest(source)
            with atomic_directory(location) as staging:
                found = copy_tree(source, staging, output.progress)
                found.pop(BACKUP_MANIFEST)
                compare_manifest(source, manifest, found)
                (staging / BACKUP_MANIFEST).unlink()
                lines = list(verify_location(staging, output.progress.write_note, output.progress))
        except BackupError as error:
            raise CommandError(error) from error
        place = SummaryLine("location", location)
        tell_undamaged(output, (place if line.label == place.label else line for line in lines))
    return 0
