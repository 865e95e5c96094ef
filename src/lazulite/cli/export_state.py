"""`lazulite export --state`: write what an account has as a seed file."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lazulite.app.commands import QUEUE_MESSAGES, QueueArguments
from lazulite.cli.account_stores import choose_account
from lazulite.cli.connection_string import connection_text
from lazulite.cli.errors import CommandError
from lazulite.cli.http_sender import HttpSender
from lazulite.cli.running_addresses import control_socket, with_running_addresses
from lazulite.cli.summary import CommandOutput
from lazulite.control.client import Client
from lazulite.control.command import ControlError
from lazulite.resources.queues import Message
from lazulite.resources.sender import RequestError
from lazulite.seed.value import SeedError
from lazulite.seed.writing import FILE, Messages, write_state


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Write the state to a folder, and print what is left out."""
    folder: Path = args.state
    if args.table is not None or args.output != "-":
        raise CommandError("--state writes a folder with all that the account has; leave TABLE and --output out", 2)
    with CommandOutput.from_args(args) as output, ExitStack() as stack:
        try:
            sender, messages = _opened(args, environ, stack)
            left_out = write_state(sender, folder, messages, lambda _: None)
        except FileExistsError:
            raise CommandError(f"{folder / FILE} exists already; name another folder") from None
        except (RequestError, SeedError, ControlError) as error:
            raise CommandError(error) from None
        output.tell_line("state", str(folder / FILE))
        for line in left_out:
            output.tell_item("left_out", f"left out   {line}", {"text": line})
    return 0


def _opened(args: Namespace, environ: Mapping[str, str], stack: ExitStack) -> tuple[HttpSender, Messages | None]:
    """Return a sender of the account, and what tells the messages of its queues, if its server is here."""
    if args.connection is not None:
        return stack.enter_context(HttpSender(connection_text(args.connection, environ))), None
    reached = with_running_addresses(args, environ)
    sender = stack.enter_context(HttpSender.from_args(reached, choose_account(args, environ)))
    socket = control_socket(args)
    return sender, _kept(Client.at(socket), sender.account) if socket.exists() else None


def _kept(server: Client, account: str) -> Messages:
    """Return what yields the messages of a queue, as the server of the location tells them."""

    def messages(queue: str) -> Iterator[Message]:
        for item in server.stream(QUEUE_MESSAGES, QueueArguments(account, queue)):
            told: Any = item
            yield Message(told["text"], told["hidden_seconds"], told["lives_seconds"])

    return messages
