"""`lazulite pull` and `lazulite push`: copy an account to or from the running server of a location, and compare."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from lazulite.account_copy.comparing import Comparison
from lazulite.account_copy.copying import AccountCopy, Copied, MessageSource
from lazulite.account_copy.journal import CopyError, Journal
from lazulite.account_copy.messages import HIDDEN_SECONDS, KeptMessages, MessagesByGet
from lazulite.account_copy.sender_pairs import OpenSender, SenderPairs
from lazulite.app.commands import QUEUE_MESSAGES, QueueArguments
from lazulite.cli.account_stores import choose_account
from lazulite.cli.connection_string import connection_text, endpoints_of, read_connection_string
from lazulite.cli.errors import CommandError
from lazulite.cli.http_sender import HttpSender
from lazulite.cli.running_addresses import control_socket, served, with_running_addresses
from lazulite.cli.summary import CommandOutput, labelled
from lazulite.control.client import Client
from lazulite.control.command import ControlError
from lazulite.control.socket_file import SOCKET
from lazulite.resources import blobs, containers
from lazulite.resources.sender import RequestError, Sender

_DIFFERENCES_MAX = 20
_VARIABLES = {"pull": "LAZULITE_FROM_CONNECTION", "push": "LAZULITE_TO_CONNECTION"}
_NOT_COPIED = (
    "leases, snapshots, versions and deleted blobs; blocks that are in no list",
    "ETags, and times of creation and of the last write; ids, insertion times and dequeue counts of messages",
    "accounts, keys, settings of services, indexes, and the containers $logs and $blobchangefeed",
)
"""What no copy has, a line each."""


class _Side(NamedTuple):
    open: OpenSender
    account: str
    name: str
    """In the journal and in messages: endpoint without secrets."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Copy, compare, and print what was copied and what was not."""
    here, there = _here(args, environ), _there(args, environ)
    source, target = (there, here) if args.direction == "pull" else (here, there)
    if source.name == target.name:
        raise CommandError("both sides are the same account")
    path = args.journal or Path(f"lazulite-{args.direction}.json")
    with CommandOutput.from_args(args, silent=args.silent) as output:
        try:
            with SenderPairs(source.open, target.open, args.parallel) as pairs:
                journal = Journal.open(path, f"{source.name} to {target.name}")
                messages = _messages(args, source, pairs.pair().source)
                copied = AccountCopy(pairs, journal, messages, output.progress.show).run()
                left = [*copied.left_out, *_snapshots(pairs.pair().source)]
                differences = _compare(pairs, output, counts_messages=messages is not None and messages.repeats)
                _report(copied, left, messages, output)
                journal.remove()
        except CopyError as error:
            raise CommandError(f"{error}; run the same command again to go on") from None
        except (RequestError, ControlError) as error:
            raise CommandError(error) from None
        if differences:
            raise CommandError(f"the target differs from the source: {differences[0]}")
        output.tell("no difference found")
    return 0


def _here(args: Namespace, environ: Mapping[str, str]) -> _Side:
    """Return the side of the running server that the flags name."""
    chosen, args = choose_account(args, environ), with_running_addresses(args, environ)
    name = served(endpoints_of(args, chosen.name), "blob")
    return _Side(lambda: HttpSender.from_args(args, chosen), chosen.name, name)


def _there(args: Namespace, environ: Mapping[str, str]) -> _Side:
    """Return the side that `--from` or `--to` names."""
    variable = _VARIABLES[args.direction]
    text = connection_text(args.other or f"env:{variable}", environ)
    stated = read_connection_string(text, "blob")
    return _Side(lambda: HttpSender(text), stated.account.name, stated.endpoint)


def _messages(args: Namespace, source: _Side, sender: Sender) -> MessageSource | None:
    """Return what tells the messages of the source, and say what that loses; None if they are left out."""
    location = args.from_location if args.direction == "pull" else None
    socket = control_socket(args) if args.direction == "push" else location and location / SOCKET
    if socket is not None and socket.exists():
        return KeptMessages(partial(_kept, Client.at(socket), source.account))
    if location is not None:
        raise CommandError(f"no server runs in {location}")
    if args.messages == "get":
        _say(
            f"messages are got from the source, which hides them from its programs for {HIDDEN_SECONDS // 60} minutes "
            "and counts a dequeue; hidden ones are not copied; if this command is killed, up to 32 may be left out"
        )
        return MessagesByGet(sender)
    _say("messages of queues are not copied; --messages get copies the visible ones")
    return None


def _kept(server: Client, account: str, queue: str) -> Iterable[Mapping[str, Any]]:
    for item in server.stream(QUEUE_MESSAGES, QueueArguments(account, queue)):
        assert isinstance(item, Mapping)
        yield item


def _say(text: str) -> None:
    print(f"lazulite: {text}", file=sys.stderr)


def _compare(pairs: SenderPairs, output: CommandOutput, *, counts_messages: bool) -> list[str]:
    """Print the first differences, a line each, and return them."""
    comparison = Comparison(pairs, output.progress.show, counts_messages=counts_messages)
    found = list(islice(comparison.differences(), _DIFFERENCES_MAX))
    for line in found:
        output.tell_item("differences", labelled("differs", line), {"text": line})
    return found


def _snapshots(source: Sender) -> Iterator[str]:
    """Yield how many snapshots and versions containers of the source have, as far as the service tells."""
    for name in containers.container_names(source):
        with suppress(RequestError):  # Not each service lists versions.
            count = blobs.leftovers(source, name)
            if count:
                yield f"container {name}: {count:,} snapshots and versions"


def _report(copied: Copied, left: Iterable[str], messages: MessageSource | None, output: CommandOutput) -> None:
    for noun, count in copied.counts.items():
        output.tell_line(noun, count or 0)
    for line in (*left, *_NOT_COPIED, *(() if messages else ("messages of queues",))):
        output.tell_item("not_copied", labelled("not copied", line), {"text": line})
