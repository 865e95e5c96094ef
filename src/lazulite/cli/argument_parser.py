"""The class of the parsers of all commands: help that names a flag once, and errors in a line, with what was meant."""

import re
import sys
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class HelpFormatter(RawDescriptionHelpFormatter):
    """Names each flag once, without Azurite's spelling if there is another one, and its value once."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)

    def _format_action_invocation(self, action: Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        own = [each for each in action.option_strings if each == each.lower() or len(each) == 2]
        value = "" if action.nargs == 0 else f" {self._format_args(action, action.dest.upper())}"
        return f"{', '.join(sorted(own, key=len))}{value}"


class Parser(ArgumentParser):
    """Report an error in one line, without URLs, since a URL may contain a password.

    A flag or a command that does not exist is reported with the nearest one, and with the help that lists it.
    """

    def name_flags(self, title: str) -> None:
        """Replace the title of the flags that are in no group."""
        self._optionals.title = title

    def error(self, message: str) -> NoReturn:
        """Print an error of the command line in one line, and exit with code 2."""
        message = re.sub(r"(?<=:/).*", "…", message, flags=re.DOTALL)
        self.exit(2, f'lazulite: {" ".join(message.split())} (see "{self.prog} --help")\n')

    def parse_known_args(  # type: ignore[override]  # its overloads are for namespaces of other classes
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """Parse the arguments of this command; reject the others here, where the flags are known."""
        given = sys.argv[1:] if args is None else list(args)
        self._reject_unknown_flags(given)
        parsed, others = super().parse_known_args(given, namespace)
        if others:
            self.error(f"unexpected argument: {others[0]}")
        return parsed, []

    def _reject_unknown_flags(self, given: Sequence[str]) -> None:
        """Reject an unknown flag before arguments are missed whose flag was misspelt.

        The flags of a subcommand begin behind its name.
        """
        known = self._option_string_actions
        for argument in given:
            if argument == "--" or (self._subparsers is not None and not argument.startswith("-")):
                return
            flag = argument.partition("=")[0]
            if flag.startswith("--") and flag not in known:
                behind = "; flags stand behind the command" if self._subparsers is not None else ""
                self.error(f"unknown flag {flag}{_nearest(flag, known)}{behind}")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            name = "/".join(action.option_strings) or action.metavar
            self.error(f"{name}: {value!r} is not one of {', '.join(choices)}{_nearest(str(value), choices)}")


def _nearest(word: str, known: Collection[str]) -> str:
    """Return the question whether the nearest of the known words was meant; "" if none is near.

    A flag such as --port gets the flags that end with it, of which no spelling is nearer than another.
    """
    found = [flag for flag in known if flag.endswith(word[1:])][:3] if word.startswith("--") else []
    found = found or get_close_matches(word, list(known), 1)
    return f"; did you mean {' or '.join(found)}?" if found else ""


class StoreExplicit(Action):
    """Store a value as `dest`, and True as `{dest}_given`: the flag is explicit, not a default."""

    def __call__(self, _: ArgumentParser, namespace: Namespace, values: object, __: str | None = None) -> None:
        """See `Action`."""
        setattr(namespace, self.dest, values)
        setattr(namespace, f"{self.dest}_given", True)
