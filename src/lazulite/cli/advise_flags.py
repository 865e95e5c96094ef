"""The flags of `lazulite advise`, and the values that they take."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Final

from lazulite.cli.flag_types import duration, entity_count, number

EXAMPLES = """\
Exit codes: 0 there is an answer, 1 failed, 2 wrong flags, 3 no keys keep all demands.

examples:
  lazulite advise queries.toml
  lazulite advise queries.toml -o advice.html --program rekey.py
  lazulite advise --record 10m --table Orders
  lazulite advise --logs 6h --targets study-2010
"""
SAMPLE_ROWS_MAX: Final = 100_000
"""The most rows that are sampled."""


def add(parser: ArgumentParser) -> None:
    """Add all flags but the account's."""
    flag = parser.add_argument
    text = "file that declares queries and writes (or one of --record, --logs and --log-file)"
    flag("queries", nargs="?", type=Path, metavar="FILE.toml", help=text)
    text = "record the requests of a running server with --meter for so long, such as 10m"
    flag("--record", type=duration, metavar="TIME", help=text)
    text = "end the recording after N requests, if they come sooner"
    flag("--requests", type=entity_count, default=0, metavar="N", help=text)
    text = "take the requests of so long from $logs of the account, here or in the cloud, such as 6h"
    flag("--logs", type=duration, metavar="TIME", help=text)
    text = "take the requests from a file of lines of $logs; repeatable"
    flag("--log-file", type=Path, action="append", metavar="FILE", help=text)
    text = "table (the busiest one); with FILE.toml: the table whose rows are sampled (none)"
    flag("--table", metavar="NAME", help=text)
    text = "rows to sample, to know the values of properties; 0: none (10000)"
    flag("--sample", type=_sample_rows, default=10_000, metavar="N", help=text)
    flag("--rows", type=entity_count, default=0, metavar="N", help="rows of the table (those sampled)")
    text = "targets that the keys must keep: current, study-2010, study-2010-strict or a FILE.toml (current)"
    flag("--targets", default="current", metavar="NAME", help=text)
    flag("--top", type=entity_count, default=4, metavar="N", help="most candidates (4)")
    text = "write a page or JSON to FILE, by its ending .html or .json (a text is printed)"
    flag("-o", "--output", type=_advice_file, metavar="FILE", help=text)
    text = "write the Python program that gives the table the keys of the first candidate"
    flag("--program", type=Path, metavar="FILE.py", help=text)
    flag("--json", action="store_true", help="print an object of JSON")
    text = "file that has the connection string of the account; -: standard input"
    flag("--connection-string-file", type=Path, metavar="FILE", help=text)


def _sample_rows(text: str) -> int:
    """Return a number of rows to sample."""
    return number(text, 0, SAMPLE_ROWS_MAX, f"a number from 0 to {SAMPLE_ROWS_MAX:,}")


def _advice_file(text: str) -> Path:
    """Return the path of a page or of JSON, by its ending."""
    path = Path(text)
    if path.suffix not in (".html", ".json"):
        raise ArgumentTypeError(f"{text!r} ends in neither .html nor .json")
    return path
