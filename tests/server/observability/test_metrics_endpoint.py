"""`/metrics`: the page, and nothing else."""

import asyncio

import pytest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, response_of
from lazulite.server.observability.metrics_endpoint import CONTENT_TYPE, PAGE_LIMITS, MetricsPage


class Renderer:
    def __init__(self) -> None:
        self.runs = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None

    async def __call__(self) -> bytes:
        self.runs += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return b"page %d" % self.runs


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("query", ["", "name[]=x"])
async def test_the_page(method: str, query: str) -> None:
    response = await response_of(MetricsPage(Renderer()), Request(method, "/metrics", query))
    assert (response.status, response.body) == (200, b"page 1")
    assert ("Content-Type", CONTENT_TYPE) in response.headers
    assert CONTENT_TYPE == CONTENT_TYPE_PLAIN_0_0_4


@pytest.mark.parametrize(
    "path", ["/", "", "/metrics/", "/Metrics", "/health", "/devstoreaccount1/Tables", "/../metrics"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_other_paths_are_rejected(method: str, path: str) -> None:
    renderer = Renderer()
    response = await response_of(MetricsPage(renderer), Request(method, path))
    assert (response.status, response.body, renderer.runs) == (404, b"ResourceNotFound\n", 0)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "MERGE"])
async def test_other_methods_are_rejected(method: str) -> None:
    renderer = Renderer()
    response = await response_of(MetricsPage(renderer), Request(method, "/metrics"))
    assert (response.status, response.body, renderer.runs) == (405, b"MethodNotAllowed\n", 0)
    assert ("Allow", "GET, HEAD") in response.headers


def test_rejections_of_the_server_are_plain() -> None:
    response = MetricsPage(Renderer()).reject(Request("", "SECRET"), ServiceError("InvalidUri", status=414))
    assert (response.status, response.body, response.error_code) == (414, b"InvalidUri\n", "InvalidUri")


async def test_many_askers_share_one_rendering() -> None:
    renderer = Renderer()
    renderer.gate.clear()
    page = MetricsPage(renderer)
    askers = [asyncio.ensure_future(response_of(page, Request("GET", "/metrics"))) for _ in range(50)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    askers[0].cancel()
    await asyncio.sleep(0)
    renderer.gate.set()
    assert {response.body for response in await asyncio.gather(*askers[1:])} == {b"page 1"}
    assert (await response_of(page, Request("GET", "/metrics"))).body == b"page 2"


async def test_a_rendering_that_fails_fails_its_askers_only() -> None:
    renderer = Renderer()
    page = MetricsPage(renderer)
    renderer.failure = OSError("x")
    with pytest.raises(OSError, match="x"):
        await response_of(page, Request("GET", "/metrics"))
    renderer.gate.clear()
    gone = asyncio.ensure_future(response_of(page, Request("GET", "/metrics")))
    await asyncio.sleep(0)
    gone.cancel()
    renderer.gate.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    renderer.failure = None
    assert (await response_of(page, Request("GET", "/metrics"))).status == 200


def test_the_port_is_for_few() -> None:
    assert PAGE_LIMITS.connections < 100
    assert PAGE_LIMITS.body_bytes <= 64 * 1024
