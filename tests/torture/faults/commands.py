"""Faults during a start and during the commands: done or not done, said in one line, and nothing half there."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from random import Random

from .bench import Bench
from .faulty_disk import KINDS, Rule

_ERRORS = {
    "write": "ENOSPC",
    "sync": "EIO",
    "create": "EROFS",
    "name": "EIO",
    "room": "EIO",
    "read": "EIO",
    "open": "EMFILE",
}
_CALLS = {"write": 40_000, "sync": 12, "create": 12, "name": 8, "room": 3, "read": 60, "open": 30}
"""How many calls may succeed first, at most."""


def _rules(random: Random) -> dict[str, Rule]:
    """One kind of call fails once, or from some call on."""
    kind = random.choice(KINDS)
    return {kind: Rule(_ERRORS[kind], random.randrange(_CALLS[kind]), random.choice([1, -1]))}


async def start(bench: Bench, random: Random) -> bool:
    """The server starts on a failing disk: it rejects in one line, or serves; on a disk that is well, it serves."""
    await bench.stop(kill=random.random() < 0.5)
    with bench.disk.failing(_rules(random)):
        rejection = await asyncio.to_thread(bench.try_to_start)
        felt = bench.disk.failures > 0
    if rejection is not None:
        _expect_a_line(bench, "start", rejection)
    await bench.start()
    return felt


async def backup(bench: Bench, random: Random) -> bool:
    """A backup of the running service: whole, or not there."""
    target = bench.home / f"backup-{random.randrange(1 << 30)}"
    with bench.disk.failing(_rules(random)):
        done = await asyncio.to_thread(bench.command, "backup", "--location", str(bench.data), str(target))
        felt = bench.disk.failures > 0
    if done.returncode == 0:
        checked = await asyncio.to_thread(bench.command, "check", "--location", str(target))
        if checked.returncode != 0:
            bench.tally.problem(f"a backup that is none: {checked.stderr}")
    else:
        _expect_a_line(bench, "backup", done.stderr)
        if target.exists() and any(target.iterdir()):
            checked = await asyncio.to_thread(bench.command, "check", "--location", str(target))
            if checked.returncode != 0:
                bench.tally.problem(f"a backup that failed is half there: {done.stderr} {checked.stderr}")
    await asyncio.to_thread(subprocess.run, ["rm", "-rf", str(target)], check=True)
    if await bench.recovered() is None:
        bench.tally.problem("backup: the service is not back")
        raise TimeoutError
    # RocksDB may still try to get over a flush that failed, and need another opening amid the next fault.
    await bench.stop()
    await bench.start()
    return felt


async def account_add(bench: Bench, random: Random) -> bool:
    """An account is added: the file of accounts is as before or as after."""
    location = bench.home / "accounts"
    file = location / "accounts.json"
    before = _names(file.read_text()) if file.exists() else []
    name = f"account{len(before)}"
    with bench.disk.failing(_rules(random)):
        done = await asyncio.to_thread(bench.command, "account", "add", name, "--location", str(location))
        felt = bench.disk.failures > 0
    after = _names(file.read_text()) if file.exists() else []
    listed = await asyncio.to_thread(bench.command, "account", "list", "--location", str(location))
    if listed.returncode != 0 or listed.stdout.split() != after:
        bench.tally.problem(f"account list: {listed.stdout} {listed.stderr}")
    if after not in ([*before, name], before) or (done.returncode == 0 and name not in after):
        bench.tally.problem(f"account add: {before} became {after}, exit code {done.returncode}")
    if done.returncode != 0:
        _expect_a_line(bench, "account add", done.stderr)
    return felt


def _names(text: str) -> list[str]:
    return [entry["name"] for entry in json.loads(text)["accounts"]]


def _expect_a_line(bench: Bench, what: str, said: str) -> None:
    lines = said.strip().splitlines()
    if not lines or not lines[-1].startswith("lazulite: ") or any("Traceback" in line for line in lines):
        bench.tally.problem(f"{what}: not a rejection in a line: {said}")


COMMANDS: dict[str, Callable[[Bench, Random], Awaitable[bool]]] = {
    "during a start": start,
    "during a backup": backup,
    "during account add": account_add,
}
