"""The command for the traffic of a resource: by one process, or by a primary that adds what its workers counted."""

from collections.abc import AsyncGenerator, Callable

from lazulite.app.channel import WORKER_SECONDS_MAX, Workers
from lazulite.app.commands import TRAFFIC, TrafficArguments
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.control.client import ask_each
from lazulite.control.command import ControlError, Handler, Json
from lazulite.traffic.codec import decode, encode, join
from lazulite.traffic.meter import Meter, Resource, ResourceTraffic


def traffic_of(
    meter: Meter | None,
    directory: AccountDirectory,
    seconds: Callable[[], float],
    workers: Workers | None = None,
) -> Handler[TrafficArguments]:
    """Return the handler of `TRAFFIC`.

    Args:
        meter: of this process, if it counts.
        directory: the accounts.
        seconds: returns the Unix time now.
        workers: the processes that count instead; None: this is the only process.
    """

    async def traffic(asked: TrafficArguments) -> AsyncGenerator[Json, None]:
        account = _account(directory, asked.account)
        if workers is not None:
            found = await _of_workers(workers, TrafficArguments(asked.name, account, asked.service))
            weight = 1.0
        elif meter is None:
            raise ControlError("no-meter", "the server counts no traffic: start it with --meter")
        else:
            found = meter.traffic(Resource(account, asked.service, asked.name.lower()))
            weight = meter.weight()
        if found is None:
            raise ControlError("no-traffic", f"{asked.service} {asked.name} of account {account} has had no traffic")
        for item in encode(found, weight, seconds()):
            yield item

    return traffic


async def _of_workers(workers: Workers, asked: TrafficArguments) -> ResourceTraffic | None:
    """Return the sum of what the workers counted; None if none of them has had traffic.

    Raises:
        ControlError: a worker has no answer.
    """
    total: ResourceTraffic | None = None
    for result in await ask_each(workers(), TRAFFIC, asked, WORKER_SECONDS_MAX):
        if result.error is not None:
            if result.error.code == "no-traffic":
                continue
            raise ControlError(result.error.code, f"{result.process}: {result.error}")
        found = decode(result.items)
        if total is None:
            total = found
        else:
            join(total, found)
    return total


def _account(directory: AccountDirectory, name: str) -> str:
    """Return the account that is asked about.

    Raises:
        ControlError: there are several, or it does not exist.
    """
    names = directory.names()
    if name and name not in names:
        raise ControlError("no-account", f"there is no account {name}")
    if not name and len(names) != 1:
        raise ControlError(
            "no-account", "there are several accounts; pass --account" if names else "there is no account"
        )
    return name or names[0]
