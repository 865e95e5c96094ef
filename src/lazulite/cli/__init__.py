"""The command `lazulite`.

Invariants:

- A mistake of the user prints one line to stderr, `lazulite: …`, and no traceback. The exit code is 2 for the command
  line and 1 for the rest.
- A command's modules are imported only when that command runs.
- A password does not stay in the command line, where other users of the machine could read it.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from lazulite.cli.argv_secrets import hide_passwords
from lazulite.cli.errors import CommandError
from lazulite.cli.parser import build_parser

Run = Callable[[Namespace, Mapping[str, str]], int]
"""A command: the parsed flags and the environment in, the exit code out. May raise `CommandError`."""

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: the command line without the program's name; None takes the process's own.
    """
    if arguments is None:
        hide_passwords(sys.argv[1:], sys.orig_argv, os.environ)
    parser = build_parser()
    args = parser.parse_args(arguments)
    if args.module is None:
        parser.print_help()
        return 0
    try:
        run: Run = import_module(args.module).run
        return run(args, os.environ)
    except CommandError as error:
        print(f"lazulite: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"lazulite: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
