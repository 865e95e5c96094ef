"""The commands that promise something durable beside the service: accounts, keys, backups.

One runs after the other until the power is cut. What a command said when it ended well is kept; what the last
one was about to do may be there or not, but whole.
"""

import base64
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.check import verify_location
from lazulite.cli.errors import CommandError
from lazulite.settings.config import account_file
from tests.server_process import Account

Command = Callable[..., str | None]
"""Runs a command with some arguments; returns what it printed, None if it was broken off."""

KeyName = tuple[str, int]
"""An account, and which of its two keys."""


class Commands:
    """What the commands promised about a location, `data`, and its `backups`, from one cut to the next."""

    def __init__(self, root: Path, counts: Counter[str]) -> None:
        """`counts` counts the commands of each kind that ended well."""
        self._counts = counts
        self._root = root
        self._begun = 0
        self._keys: dict[KeyName, str] = {}
        self._changing: KeyName | None = None
        self._finished: set[str] = set()

    def work(self, kind: str, command: Command, chance: random.Random) -> None:
        """Run commands of a kind, "accounts" or "backups", until one is broken off."""
        step = self._change_account if kind == "accounts" else self._back_up
        while step(command, chance):
            self._counts[kind] += 1

    def _change_account(self, command: Command, chance: random.Random) -> bool:
        """Add an account or give one a new key."""
        self._begun += 1
        names = sorted({name for name, _ in self._keys})
        if not names or chance.random() < 0.4:
            changing = (f"account{self._begun}", 1)
            arguments = ["add", changing[0]]
        else:
            changing = (chance.choice(names), chance.choice([1, 2]))
            arguments = ["rotate-key", changing[0], "--key", str(changing[1])]
        self._changing = changing
        printed = command("account", *arguments, "--location", str(self._root / "data"))
        if printed is None:
            return False
        self._keys[changing] = Account.parse(printed).key
        self._changing = None
        return True

    def _back_up(self, command: Command, chance: random.Random) -> bool:
        self._begun += 1
        name = f"backup{self._begun}"
        if command("backup", "--location", str(self._root / "data"), str(self._root / "backups" / name)) is None:
            return False
        self._finished.add(name)
        return True

    def problems(self, root: Path) -> Iterator[str]:
        """Yield what is not as promised on a disk that a cut left, a sentence each."""
        try:
            yield from self._account_problems(_keys_at(root))
        except AccountsError as problem:
            yield str(problem)
        there = {path.name for path in (root / "backups").glob("backup*")}
        for name in sorted(self._finished | there):
            try:
                list(verify_location(root / "backups" / name, lambda _: None))
            except (CommandError, OSError) as problem:
                yield f"{name}, which was {'finished' if name in self._finished else 'broken off'}: {problem}"

    def settle(self) -> None:
        """Go on from what there is now, which is without problems; the backups are removed."""
        self._keys, self._changing = _keys_at(self._root), None
        self._finished.clear()
        shutil.rmtree(self._root / "backups", ignore_errors=True)

    def _account_problems(self, found: Mapping[KeyName, str]) -> Iterator[str]:
        for key in sorted((self._keys.keys() | found.keys()) - {self._changing}):
            if key not in found:
                yield f"account {key[0]} was added and is not there"
            elif found[key] != self._keys.get(key, found[key]):
                yield f"key {key[1]} of account {key[0]} is not the one that was printed"
        unexpected = {name for name, _ in found} - {name for name, _ in [*self._keys, self._changing or ("", 0)]}
        if unexpected:
            yield f"no command added these accounts: {unexpected}"


def _keys_at(root: Path) -> dict[KeyName, str]:
    accounts = account_file(root / "data").load()
    return {
        (name, which): base64.b64encode(key).decode()
        for name, account in accounts.items()
        for which, key in enumerate(account.keys, 1)
    }
