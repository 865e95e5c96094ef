"""The flags of `lazulite sas`, by the kind of the token.

Only light modules of the standard library are imported, so that help is printed at once.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping

OVERRIDE_FLAGS = {
    "--cache-control": "rscc",
    "--content-disposition": "rscd",
    "--content-encoding": "rsce",
    "--content-language": "rscl",
    "--content-type": "rsct",
}
"""Flag of a field of the response -> the query parameter of the token, in the order in which they are signed."""
_BLOB_LETTERS = "r (read), a (append), c (create), w (write), d (delete), x (delete versions), y (delete forever)"


def add_account(parser: ArgumentParser) -> None:
    """Add the flags of an account SAS."""
    flag = parser.add_argument
    flag("--permissions", "--sp", required=True, help="letters such as rwdlacu, as in Azure's account SAS")
    flag("--services", "--ss", default="t", help="letters of b, q, t, f (t)")
    text = "letters of s (service), c (containers, queues, tables), o (blobs, messages, entities) (sco)"
    flag("--resource-types", "--srt", default="sco", help=text)
    _add_terms(parser)


def add_table(parser: ArgumentParser) -> None:
    """Add the flags of a SAS for a table."""
    _add_resource(parser, "table", "NAME", "letters of r (read), a (add), u (update), d (delete)")
    for end in ("start", "end"):
        for part, key in (("partition", "PartitionKey"), ("row", "RowKey")):
            text = f"{key} at the {end} of the key range"
            parser.add_argument(f"--{end}-{part}", f"--{end[0]}{part[0]}k", default="", metavar="KEY", help=text)
    _add_terms(parser)


def add_queue(parser: ArgumentParser) -> None:
    """Add the flags of a SAS for a queue."""
    _add_resource(parser, "queue", "NAME", "letters of r (read), a (add), u (update), p (process)")
    _add_terms(parser)


def add_container(parser: ArgumentParser) -> None:
    """Add the flags of a SAS for the blobs of a container."""
    letters = f"letters of {_BLOB_LETTERS}, l (list), t (tags), f (find by tags)"
    _add_resource(parser, "container", "NAME", letters)
    _add_overrides(parser)
    _add_terms(parser)


def add_blob(parser: ArgumentParser) -> None:
    """Add the flags of a SAS for a blob."""
    _add_resource(parser, "blob", "CONTAINER/NAME", f"letters of {_BLOB_LETTERS}, t (tags)")
    part = parser.add_mutually_exclusive_group().add_argument
    part("--snapshot", default="", metavar="TIME", help="the snapshot that the token is for, as the service names it")
    part("--version-id", default="", metavar="TIME", help="the version that the token is for, as the service names it")
    part("--directory", action="store_true", help="the token is for all blobs below CONTAINER/NAME/")
    _add_overrides(parser)
    _add_terms(parser)


KINDS: Mapping[str, tuple[str, Callable[[ArgumentParser], None]]] = {
    "account": ("an account", add_account),
    "table": ("a table", add_table),
    "queue": ("a queue", add_queue),
    "container": ("the blobs of a container", add_container),
    "blob": ("a blob", add_blob),
}
"""Kind -> what such a token is for, and what adds the flags."""


def _add_resource(parser: ArgumentParser, kind: str, metavar: str, letters: str) -> None:
    flag = parser.add_argument
    flag(kind, metavar=metavar, help=f"{kind} name" if metavar == "NAME" else "name of the container, and of the blob")
    flag("--permissions", "--sp", default="", help=letters)
    holder = "container" if kind == "blob" else kind
    flag("--policy", "--si", default="", metavar="ID", help=f"stored access policy of the {holder}")


def _add_overrides(parser: ArgumentParser) -> None:
    for name, short in OVERRIDE_FLAGS.items():
        field = name.removeprefix("--").title()
        parser.add_argument(name, f"--{short}", default="", metavar="TEXT", help=f"{field} of responses to reads")


def _add_terms(parser: ArgumentParser) -> None:
    flag = parser.add_argument
    flag("--expiry", "--se", default="", metavar="TIME", help="time at which the token expires")
    flag("--start", "--st", default="", metavar="TIME", help="time from which the token is valid (now)")
    flag("--ip", "--sip", default="", metavar="A[-B]", help="allowed IPv4 address, or range from A to B")
    flag(
        "--protocol",
        "--spr",
        default="",
        choices=("https", "https,http"),
        metavar="https[,http]",
        help="allowed protocols",
    )
    flag("--url", action="store_true", help="print a URL that contains the token")
