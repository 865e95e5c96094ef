"""The arguments of `lazulite export` and `lazulite import`."""

from argparse import ArgumentParser
from pathlib import Path

FORMATS = ("csv", "plain-csv", "jsonl", "parquet")
_CONNECTION = "connection string of another account: env:NAME, file:PATH, or itself (that of the location)"


def add_export(parser: ArgumentParser) -> None:
    """Add the arguments of an export."""
    flag = parser.add_argument
    flag("table", nargs="?", metavar="TABLE", help="table name")
    text = "write a seed file of all that the account has, and contents of blobs, to this folder"
    flag("--state", type=Path, metavar="DIR", help=text)
    flag("--output", "-o", default="-", metavar="FILE", help="file; -: standard output (-)")
    _add_format(parser)
    flag("--filter", default="", metavar="TEXT", help='condition, such as "Total gt 10"')
    flag("--select", default="", metavar="LIST", help="names of properties, separated by commas")
    flag("--start-partition", metavar="KEY", help="first PartitionKey")
    flag("--end-partition", metavar="KEY", help="last PartitionKey")
    text = "in CSV, put ' before texts that a spreadsheet would run as formulas; changes the data"
    flag("--guard-formulas", action="store_true", help=text)
    flag("--from", dest="connection", metavar="CONN", help=_CONNECTION)


def add_import(parser: ArgumentParser) -> None:
    """Add the arguments of an import."""
    flag = parser.add_argument
    flag("table", metavar="TABLE", help="table name; created if it does not exist")
    flag("file", metavar="FILE", help="file; -: standard input")
    _add_format(parser)
    text = "an entity that exists: insert fails, merge and replace change it (insert)"
    flag("--mode", choices=("insert", "merge", "replace"), default="insert", metavar="MODE", help=text)
    text = "type of a column of CSV that has none, such as Zip=String; repeatable"
    flag("--type", action="append", default=[], metavar="NAME=TYPE", help=text)
    flag("--no-guess", action="store_true", help="take the other columns as String")
    text = "number or uuid: what rows with a blank RowKey get"
    flag("--row-keys", choices=("number", "uuid"), default="", metavar="KIND", help=text)
    text = "file for rows that are not stored, and why (FILE.errors.jsonl)"
    flag("--errors", type=Path, metavar="FILE", help=text)
    flag("--dry-run", action="store_true", help="print the first 20 rows with their types; store nothing")
    flag("--restart", action="store_true", help="begin again, even if an earlier run was interrupted")
    flag("--to", dest="connection", metavar="CONN", help=_CONNECTION)


def _add_format(parser: ArgumentParser) -> None:
    text = f"format of the file: {', '.join(FORMATS[:-1])} or {FORMATS[-1]} (by the name's ending)"
    parser.add_argument("--format", choices=FORMATS, metavar="NAME", help=text)
