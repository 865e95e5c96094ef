"""`/health`."""

import asyncio
import json

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, response_of
from lazulite.server.middleware.health import Health
from tests.server.wire import Clock, Echo


class Check:
    def __init__(self) -> None:
        self.runs = 0
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> None:
        self.runs += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure


async def test_healthy() -> None:
    response = await response_of(Health(Echo(), Check()), Request("GET", "/health"))
    assert (response.status, json.loads(response.body)) == (200, {"status": "ok"})
    assert ("Content-Type", "application/json") in response.headers


async def test_healthy_without_a_part() -> None:
    health = Health(Echo(), Check(), away=lambda: ("db2:5432",))
    response = await response_of(health, Request("GET", "/health"))
    assert (response.status, response.body) == (200, b'{"status":"ok","away":["db2:5432"]}')


@pytest.mark.parametrize(
    ("failure", "reason"), [(ServiceError("ServerBusy"), "ServerBusy"), (OSError("secret"), "OSError")]
)
async def test_unhealthy(failure: Exception, reason: str) -> None:
    check = Check()
    check.failure = failure
    response = await response_of(Health(Echo(), check), Request("HEAD", "/health"))
    assert (response.status, json.loads(response.body)) == (503, {"status": reason})
    assert response.error_code == reason


async def test_a_service_that_stops_soon_is_not_well() -> None:
    check, inner = Check(), Echo()
    health = Health(inner, check)
    health.leave()
    response = await response_of(health, Request("GET", "/health"))
    assert (response.status, json.loads(response.body), check.runs) == (503, {"status": "Stopping"}, 0)
    assert (await response_of(health, Request("GET", "/t"))).status == 200


async def test_many_askers_share_one_check() -> None:
    check = Check()
    check.gate.clear()
    health = Health(Echo(), check)
    askers = [asyncio.ensure_future(response_of(health, Request("GET", "/health"))) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    check.gate.set()
    assert {response.status for response in await asyncio.gather(*askers)} == {200}
    assert check.runs == 1


@pytest.mark.parametrize(("failure", "status"), [(None, 200), (OSError(), 503)])
async def test_a_result_stands_for_a_second(failure: Exception | None, status: int) -> None:
    check, clock = Check(), Clock()
    check.failure = failure
    check.gate.clear()
    health = Health(Echo(), check, clock=clock)
    asker = asyncio.ensure_future(response_of(health, Request("GET", "/health")))
    await asyncio.sleep(0)
    clock.now_s += 3  # The second begins when the result is there.
    check.gate.set()
    assert (await asker).status == status
    check.failure = None if failure else OSError()
    clock.now_s += 0.99
    assert {(await response_of(health, Request("GET", "/health"))).status for _ in range(9)} == {status}
    assert check.runs == 1
    clock.now_s += 0.01
    assert (await response_of(health, Request("GET", "/health"))).status == (200 if failure else 503)
    assert check.runs == 2


async def test_an_asker_who_leaves_does_not_end_the_check() -> None:
    check = Check()
    check.gate.clear()
    health = Health(Echo(), check)
    leaver, stayer = (asyncio.ensure_future(response_of(health, Request("GET", "/health"))) for _ in range(2))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.wait([leaver])
    check.gate.set()
    assert (await stayer).status == 200
    assert check.runs == 1


async def test_a_check_that_hangs_is_not_waited_for_and_not_piled_up() -> None:
    check = Check()
    check.gate.clear()
    health = Health(Echo(), check, seconds=0)
    async with asyncio.timeout(2):
        for _ in range(3):
            response = await response_of(health, Request("GET", "/health"))
            assert json.loads(response.body) == {"status": "Timeout"}
    assert check.runs == 1
    check.failure = OSError("not reported")
    check.gate.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    check.failure = None
    assert (await response_of(Health(Echo(), check), Request("GET", "/health"))).status == 200


async def test_a_cancelled_check_is_not_health() -> None:
    async def check() -> None:
        raise asyncio.CancelledError

    response = await response_of(Health(Echo(), check), Request("GET", "/health"))
    assert json.loads(response.body) == {"status": "Cancelled"}


@pytest.mark.parametrize(
    "request_", [Request("GET", "/health", "x"), Request("POST", "/health"), Request("GET", "/health/")]
)
async def test_everything_else_is_handed_on(request_: Request) -> None:
    inner = Echo()
    assert (await response_of(Health(inner, Check()), request_)).status == 200
    assert inner.requests == [request_]


def test_rejections_are_the_inner_services() -> None:
    assert Health(Echo(), Check()).reject(Request("", ""), ServiceError("InvalidInput")).body == b"InvalidInput"
