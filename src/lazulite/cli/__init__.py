"""The command `lazulite`.

Invariants:

- A mistake of the user prints one line to stderr, `lazulite: …`, and no traceback. The exit code is 2 for the command
  line and 1 for the rest.
- A command's modules are imported only when that command runs.
- A password does not stay in the command line, where other users of the machine could read it.
"""

import mmap
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module

from lazulite.cli.errors import CommandError

Run = Callable[[Namespace, Mapping[str, str]], int]
"""A command: the parsed flags and the environment in, the exit code out. May raise `CommandError`."""

_INTERRUPTED = 130
_BROKEN_PIPE = 141

_ADDRESS_BYTES = {"lazulite.cli.serve": 1 << 30}
"""The address space that a command needs: most of it is for stacks of threads and for libraries, and never used. With
less, a library may end the process where nothing can be caught."""

_NO_MEMORY = ("can't start new thread", "failed to map segment", "annot allocate memory")
"""What errors say that mean a lack of memory, beside `MemoryError`: of threads, libraries and the system."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: the command line without the program's name; None takes the process's own.
    """
    try:
        return _run(arguments)
    except (MemoryError, RuntimeError, ImportError) as error:
        if not isinstance(error, MemoryError) and not any(text in str(error) for text in _NO_MEMORY):
            raise
        print("lazulite: there is not enough memory; see ulimit -v", file=sys.stderr)
        return 1


def _run(arguments: Sequence[str] | None) -> int:
    # Imported here, as importing takes memory, too.
    from lazulite.cli.argv_secrets import hide_passwords  # noqa: PLC0415
    from lazulite.cli.parser import build_parser  # noqa: PLC0415

    if arguments is None:
        hide_passwords(sys.argv[1:], sys.orig_argv, os.environ)
    parser = build_parser()
    args = parser.parse_args(arguments)
    if args.module is None:
        parser.print_help()
        return 0
    try:
        _check_address_space(_ADDRESS_BYTES.get(args.module, 0))
        run: Run = import_module(args.module).run
        return run(args, os.environ)
    except BrokenPipeError:
        # The reader of the output, such as `head`, has all that it wanted. Nothing more can be flushed at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except CommandError as error:
        _print_error(error, args)
        return error.exit_code
    except OSError as error:
        _print_error(error, args)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED


def _print_error(error: Exception, args: Namespace) -> None:
    if getattr(args, "json_lines", False):
        import json  # noqa: PLC0415 - most commands print no such error

        print(json.dumps({"event": "error", "text": str(error)}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"lazulite: {error}", file=sys.stderr)


def _check_address_space(needed_bytes: int) -> None:
    """Raise `CommandError` if the process cannot have so much address space. No memory is used."""
    if needed_bytes and hasattr(mmap, "PROT_READ"):
        try:
            mmap.mmap(-1, needed_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
        except (OSError, MemoryError):
            size = f"{needed_bytes >> 20} MiB"
            raise CommandError(
                f"the process needs {size} of address space, and cannot have it; see ulimit -v"
            ) from None
