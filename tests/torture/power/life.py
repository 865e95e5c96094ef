"""What a cycle of the power campaign is like: drawn before it begins, so that a seed tells all of it."""

import random
from typing import NamedTuple

CALLS = {"none": range(400), "accounts": range(900), "backups": range(1600)}
"""After so many calls to the disk under load a cut comes, by the kind of commands that run beside it."""
LONG_CALLS = range(800, 2400)
"""And in a long life, which has hundreds of commit groups."""
WORKERS = 2


class Mix(NamedTuple):
    """How often what happens: numbers from 0 to 1.

    Attributes:
        fresh: the disk is empty at first.
        early: the cut comes while the server starts.
        in_sync: it comes while something is synced, which takes longer then so that readers look.
        strict: the disk keeps no more names than POSIX promises, see `disk`.
        accounts: accounts and keys are changed meanwhile.
        backups: backups are made meanwhile.
        long: the life is a long one, if no commands run beside it.
        small: the store has small buffers, so that tables are written and compacted all the time.
        workers: several processes serve.
        hindsight: the cut is moved to an earlier moment, if no commands ran beside; see `hindsight.riskiest`.
    """

    fresh: float = 0.1
    early: float = 0.2
    in_sync: float = 0.5
    strict: float = 0.5
    accounts: float = 0.2
    backups: float = 0.15
    long: float = 0.3
    small: float = 0.5
    workers: float = 0.2
    hindsight: float = 0.5

    @property
    def looking_back(self) -> "Mix":
        """The mix of lives that show what is wrong for a moment of a long life: an unsynced group, an unsynced name."""
        return self._replace(early=0, strict=1, accounts=0, backups=0, long=1, hindsight=1)


LOOKING_BACK_EACH = 4
"""One life of so many is `Mix.looking_back`, whatever else is drawn: so a campaign finds such faults in a few cuts."""


class Life(NamedTuple):
    """One cycle, as drawn from a mix.

    Attributes:
        kind: of the commands beside the service: "accounts", "backups" or "none".
        calls: after so many calls to the disk under load the cut comes.
        workers: how many processes answer requests.
    """

    fresh: bool
    early: bool
    in_sync: bool
    strict: bool
    kind: str
    calls: range
    small: bool
    workers: int
    hindsight: bool


def drawn(mix: Mix, chance: random.Random, number: int) -> Life:
    """Draw the life of a cycle, given its number, from a mix."""
    if number % LOOKING_BACK_EACH == LOOKING_BACK_EACH - 1:
        mix = mix.looking_back

    def happens(share: float) -> bool:
        return chance.random() < share

    [kind] = chance.choices(list(CALLS), [1 - mix.accounts - mix.backups, mix.accounts, mix.backups])
    alone = kind == "none"
    return Life(
        fresh=happens(mix.fresh),
        early=happens(mix.early),
        in_sync=happens(mix.in_sync),
        strict=happens(mix.strict),
        kind=kind,
        calls=LONG_CALLS if happens(mix.long) and alone else CALLS[kind],
        small=happens(mix.small),
        workers=WORKERS if happens(mix.workers) else 1,
        hindsight=happens(mix.hindsight) and alone,
    )
