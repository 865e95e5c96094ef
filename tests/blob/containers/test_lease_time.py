"""Processes on one database agree on a lease, however wrong their own clocks are."""

import pytest

from lazulite.protocol.clock import system_clock
from tests.blob.world import CONTAINER, World

LEASED = {"": f"{CONTAINER}/blob", "restype=container&": CONTAINER}


@pytest.fixture(params=LEASED)
async def leased(request: pytest.FixtureRequest) -> tuple[World, str, str]:
    """A lease of a minute, on a database. Another process begins, whose clock is a day ahead."""
    world, kind = World(), request.param
    world.present = system_clock
    world.restart()
    await world.ask("PUT", CONTAINER, "restype=container")
    await world.ask("PUT", body=b"1", x_ms_blob_type="BlockBlob")
    query = f"{kind}comp=lease"
    answer = await world.ask("PUT", LEASED[kind], query, x_ms_lease_action="acquire", x_ms_lease_duration="60")
    assert answer.status == 201
    world.days = 1
    world.restart()
    return world, LEASED[kind], kind


async def test_a_lease_is_held_for_its_time(leased: tuple[World, str, str]) -> None:
    world, path, kind = leased
    assert (await world.ask("HEAD", path, kind.rstrip("&"))).headers["x-ms-lease-state"] == "leased"
    assert (await world.ask("DELETE", path, kind.rstrip("&"))).code == "LeaseIdMissing"
    answer = await world.ask("PUT", path, f"{kind}comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration="60")
    assert answer.code == "LeaseAlreadyPresent"


async def test_a_lease_that_is_broken_at_once_is_broken_everywhere(leased: tuple[World, str, str]) -> None:
    world, path, kind = leased
    await world.ask("PUT", path, f"{kind}comp=lease", x_ms_lease_action="break", x_ms_lease_break_period="0")
    world.days = -1
    world.restart()
    assert (await world.ask("HEAD", path, kind.rstrip("&"))).headers["x-ms-lease-state"] == "broken"
