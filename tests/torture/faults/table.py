"""The faults by name: what a disk does then, and what may be asked of the service meanwhile.

What the numbers of a fault are is drawn from the seed. `lasting` faults fail every write from some point on; during one
of them the service must say that it is not well, and must go on to answer reads.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from .faulty_disk import Rule

Rules = Mapping[str, Rule]


class DiskFault(NamedTuple):
    """A way in which a disk fails.

    Attributes:
        rules: drawn from random numbers.
        lasting: every write fails.
        cold: needs a server that has just started, whose memory holds nothing of the disk.
    """

    rules: Callable[[Random], Rules]
    lasting: bool = False
    cold: bool = False


def _full(error: str) -> Callable[[Random], Rules]:
    def rules(random: Random) -> Rules:
        return {"write": Rule(error, random.randrange(60_000)), "room": Rule(error)}

    return rules


def _read_only(random: Random) -> Rules:
    return {kind: Rule("EROFS") for kind in ("create", "name", "write", "room")}


def _write_error(random: Random) -> Rules:
    return {"write": Rule("EIO", random.randrange(60_000), random.randint(1, 5))}


def _no_write(random: Random) -> Rules:
    return {"write": Rule("EIO", random.randrange(60_000))}


def _sync_error(random: Random) -> Rules:
    return {"sync": Rule("EIO", random.randrange(4), random.randint(1, 3), name=random.choice(["", ".log"]))}


def _no_sync(random: Random) -> Rules:
    return {"sync": Rule("EIO", random.randrange(20))}


def _read_error(random: Random) -> Rules:
    chance = random.choice([100, 500, 1000])
    return {"read": Rule("EIO", permille=chance, name=".sst"), "open": Rule("EIO", permille=chance, name=".sst")}


def _no_handle(random: Random) -> Rules:
    return {"open": Rule("EMFILE", name=".sst"), "create": Rule("EMFILE"), "sync": Rule("EIO", random.randrange(4), 1)}


def _hindered(random: Random) -> Rules:
    """A failed sync, and errors of all kinds while the store is opened again."""
    return {
        "sync": Rule("EIO", random.randrange(4), 1 + random.randrange(3)),
        "create": Rule("EIO", permille=random.choice([20, 100, 400])),
        "name": Rule("EIO", permille=random.choice([20, 100, 400])),
        "open": Rule("EMFILE", permille=random.choice([20, 100, 400])),
        "read": Rule("EIO", permille=random.choice([5, 50])),
    }


DISK_FAULTS: dict[str, DiskFault] = {
    "full disk": DiskFault(_full("ENOSPC"), lasting=True),
    "quota used up": DiskFault(_full("EDQUOT"), lasting=True),
    "read-only disk": DiskFault(_read_only, lasting=True),
    "I/O errors of writes": DiskFault(_write_error),
    "I/O error of every write": DiskFault(_no_write, lasting=True),
    "I/O errors of syncs": DiskFault(_sync_error),
    "I/O error of every sync": DiskFault(_no_sync, lasting=True),
    "I/O errors of reads": DiskFault(_read_error, cold=True),
    "no file can be opened": DiskFault(_no_handle),
    "errors while reopening": DiskFault(_hindered),
}
