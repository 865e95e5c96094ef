"""A new service gets everything from the kernel: each test is one thing that `notes.py` says nothing of."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lazulite.app.registry import SERVICES, SHARED_SPACES
from lazulite.cli import check, copy, main
from lazulite.records.spaces import Spaces

from .notes import NOTE_BYTES, NOTES
from .world import ACCOUNT, VERSION, World, account_sas, note_sas, serving

PROPERTIES = "restype=service&comp=properties"
STATS = "restype=service&comp=stats"
ORIGIN = {"origin": "http://a.example"}
CORS = (
    b"<StorageServiceProperties><Cors><CorsRule><AllowedMethods>GET</AllowedMethods>"
    b"<AllowedOrigins>http://a.example</AllowedOrigins><AllowedHeaders/><ExposedHeaders/>"
    b"<MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>"
)


@pytest.fixture(name="world", params=["native", "asgi"])
async def _world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with serving(request.param) as world:
        yield world


async def test_shared_key(world: World) -> None:
    assert (await world.ask("PUT", "a", content=b"text", key=True)).status_code == 201
    read = await world.ask("GET", "a", key=True)
    assert (read.status_code, read.content) == (200, b"text")
    assert (await world.ask("GET", "a", headers={"authorization": f"SharedKey {ACCOUNT}:AAAA"})).status_code == 403


async def test_account_sas(world: World) -> None:
    assert (await world.ask("PUT", "a", account_sas(), content=b"x")).status_code == 201
    assert (await world.ask("GET", "a", account_sas(permission="r"))).content == b"x"
    rejected = [await world.ask("PUT", "a", sas, content=b"y") for sas in (account_sas("r"), account_sas(services="t"))]
    assert [response.headers["x-ms-error-code"] for response in rejected] == [
        "AuthorizationPermissionMismatch",
        "AuthorizationServiceMismatch",
    ]


async def test_service_sas(world: World) -> None:
    assert (await world.ask("PUT", "a", note_sas("a", "w"), content=b"x")).status_code == 201
    assert (await world.ask("GET", "a", note_sas("a", "r"))).content == b"x"
    assert (await world.ask("GET", "b", note_sas("a", "r"))).headers["x-ms-error-code"] == "AuthenticationFailed"
    assert (await world.ask("GET", "a", note_sas("a", "w"))).status_code == 403


async def test_common_headers_and_errors_in_xml(world: World) -> None:
    missing = await world.ask("GET", "a", account_sas(), headers={"x-ms-client-request-id": "mine"})
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/xml")
    start = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?><Error><Code>ResourceNotFound</Code><Message>'
    assert missing.content.startswith(start)
    assert {name: missing.headers[name] for name in ("server", "x-ms-version", "x-ms-client-request-id")} == {
        "server": "Notes/1.0",
        "x-ms-version": VERSION,
        "x-ms-client-request-id": "mine",
    }
    assert missing.headers["x-ms-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "query", "version", "code"),
    [
        ("DELETE", "a", "", VERSION, "UnsupportedHttpVerb"),
        ("GET", "a", "comp=lock", VERSION, "UnsupportedHttpVerb"),
        ("GET", "a", "comp=acl", VERSION, "InvalidQueryParameterValue"),
        ("PUT", "a", "comp=lock", "2019-12-31", "InvalidQueryParameterValue"),
        ("PUT", "a", "comp=lock", "2020-01-01", "ResourceNotFound"),
        ("GET", "", "", VERSION, "InvalidUri"),
        ("GET", "a", "timeout=x", VERSION, "InvalidQueryParameterValue"),
        ("GET", "a", "", "x", "InvalidHeaderValue"),
    ],
)
async def test_routes_reject_all_but_their_requests(
    world: World, method: str, path: str, query: str, version: str, code: str
) -> None:
    query = "&".join(filter(None, (query, account_sas())))
    response = await world.ask(method, path, query, headers={"x-ms-version": version})
    assert response.headers["x-ms-error-code"] == code


async def test_the_bound_of_a_routes_body(world: World) -> None:
    assert (await world.ask("PUT", "a", account_sas(), content=bytes(NOTE_BYTES))).status_code == 201
    long = await world.ask("PUT", "a", account_sas(), content=b"x" * (NOTE_BYTES + 1))
    assert (long.status_code, long.headers["x-ms-error-code"]) == (413, "RequestBodyTooLarge")
    assert (await world.ask("GET", "a", account_sas())).content == bytes(NOTE_BYTES)


async def test_the_secondary_endpoint_reads(world: World) -> None:
    root = f"/{ACCOUNT}-secondary/"
    assert (await world.ask("PUT", "a", account_sas(), content=b"x", root=root)).status_code == 403
    assert (await world.ask("PUT", "a", account_sas(), content=b"x")).status_code == 201
    assert (await world.ask("GET", "a", account_sas(), root=root)).content == b"x"
    stats = await world.ask("GET", "", f"{STATS}&{account_sas()}", root=root)
    assert b"<Status>live</Status>" in stats.content


async def test_service_properties_and_cors(world: World) -> None:
    preflight = {**ORIGIN, "access-control-request-method": "GET"}
    assert (await world.ask("OPTIONS", "a", headers=preflight)).status_code == 403
    properties = f"{PROPERTIES}&{account_sas()}"
    assert (await world.ask("PUT", "", properties, content=CORS)).status_code == 202
    assert b"http://a.example" in (await world.ask("GET", "", properties)).content
    allowed = await world.ask("OPTIONS", "a", headers=preflight)
    assert (allowed.status_code, allowed.headers["access-control-max-age"]) == (200, "5")
    missing = await world.ask("GET", "a", account_sas(), headers=ORIGIN)
    assert (missing.status_code, missing.headers["access-control-allow-origin"]) == (404, "http://a.example")


async def test_log_metrics_and_health(world: World) -> None:
    await world.ask("PUT", "a", account_sas(), content=b"text")
    await world.ask("GET", "b", account_sas())
    health = await world.ask("GET", "health", root="/")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    names = ("account", "operation", "status", "error")
    facts = [tuple(line[name] for name in names) for line in await world.logged()]
    assert facts == [
        (ACCOUNT, "PutNote", 201, ""),
        (ACCOUNT, "GetNote", 404, "ResourceNotFound"),
        ("", "Health", 200, ""),
    ]
    page = (await world.metrics.render(dict)).decode()
    assert 'lazulite_requests_total{operation="PutNote",status="201"} 1.0' in page
    assert 'lazulite_errors_total{code="ResourceNotFound"} 1.0' in page


async def test_a_drain_ends_every_connection() -> None:
    async with serving("native") as world:
        assert world.server is not None
        assert (await world.ask("PUT", "a", account_sas(), content=b"x")).status_code == 201
        world.server.leave()
        assert (await world.ask("GET", "health", root="/")).json() == {"status": "Stopping"}
        assert (await world.ask("GET", "a", account_sas())).status_code == 200
        await world.server.stop()
        assert world.server.connection_count == 0


async def test_check_copy_and_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spaces = Spaces(*SHARED_SPACES, *(space for service in (*SERVICES, NOTES) for space in service.spaces))
    for command in (check, copy):
        monkeypatch.setattr(command, "SPACES", spaces)
    store, copied, backup, restored = (tmp_path / name for name in ("store", "copied", "backup", "restored"))

    async def run(*arguments: str | Path) -> str:
        code = await asyncio.to_thread(main, list(map(str, arguments)))
        printed = capsys.readouterr()
        assert code == 0, printed.err
        return printed.out

    async with serving("native", store) as world:
        assert (await world.ask("PUT", "a", account_sas(), content=b"text")).status_code == 201
        assert (await world.ask("PUT", "", f"{PROPERTIES}&{account_sas()}", content=CORS)).status_code == 202
        assert "no damage found" in await run("backup", "--location", store, backup, "--verify")
    await run("restore", backup, "--location", restored)
    assert "no difference found" in await run("copy", "--from", store, "--to", copied, "--silent")
    places = (store, copied, restored)
    checksums = {(await run("check", "--location", place)).rpartition("checksum")[2] for place in places}
    assert len(checksums) == 1
    for place in (copied, restored):
        async with serving("native", place) as world:
            assert (await world.ask("GET", "a", account_sas())).content == b"text"
            assert (await world.ask("GET", "a", account_sas(), headers=ORIGIN)).headers["vary"] == "Origin"


async def test_check_rejects_damage_that_only_the_service_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving("native", tmp_path) as world:
        assert (await world.ask("PUT", "a", account_sas(), content=b"\xff")).status_code == 201
    monkeypatch.setattr(check, "SPACES", Spaces(*SHARED_SPACES, *NOTES.spaces))
    assert await asyncio.to_thread(main, ["check", "--location", str(tmp_path)]) == 1
    assert "UnicodeDecodeError" in capsys.readouterr().err


def test_the_service_has_thirty_lines() -> None:
    source = Path(__file__).with_name("notes.py").read_text(encoding="utf-8").partition("\n\n\n")[2]
    assert len([line for line in source.splitlines() if line.strip()]) <= 30
