"""`lazulite serve` under other names than its own, and behind a proxy."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from lazulite.settings.config import DEVELOPMENT_OFF
from tests.server_process import SECONDS_MAX

from .test_serve import get, lazulite, serving


def ask(url: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Return the status, and the base that an answer's links have or an error's code."""
    try:
        with urlopen(Request(url, headers=dict(headers)), timeout=SECONDS_MAX) as answer:
            return answer.status, str(json.load(answer)["odata.metadata"]).partition("$")[0]
    except HTTPError as error:
        with error:
            return error.code, error.headers["x-ms-error-code"]


def token(location: Path, *terms: str) -> str:
    arguments = ["sas", "account", "--permissions", "l", "--expiry", "1h", "-l", str(location), *terms]
    return lazulite(*arguments).stdout.strip()


def test_suffixes_are_added_to_the_one_that_is_known(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with serving(location, "-s", "--host-suffix", ".Table.Example.org", "--host-suffix", "tables.test") as server:
        url = f"{server.url}Tables?{token(location)}"
        for suffix in ("table.localhost", "table.example.org:80", "tables.test"):
            host = f"devstoreaccount1.{suffix}"
            assert ask(url, {"Host": host}) == (200, f"http://{host}/")
        assert server.stop() == (0, "")


def test_while_the_key_is_public_a_host_must_be_known(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with serving(location, "-s", "--allowed-host", "lazulite") as server:
        url = f"{server.url}devstoreaccount1/Tables?{token(location)}"
        assert ask(url, {"Host": "lazulite:10002"}) == (200, "http://lazulite:10002/devstoreaccount1/")
        assert ask(url, {"Host": "rebound.example"}) == (400, "InvalidHeaderValue")
        assert get(Request(f"{server.url}health", headers={"Host": "rebound.example"})) == 200
        # With keys of one's own there is nothing to guard; the account is noticed although its host was rejected.
        lazulite("account", "add", "orders", "-l", str(location))
        url = f"{server.url}orders/Tables?{token(location)}"
        assert ask(url, {"Host": "rebound.example"}) == (200, "http://rebound.example/orders/")
        code, said = server.stop()
        assert code == 0
        assert said.count("--allowed-host rebound.example") == 1
        assert said.splitlines()[1:] == [f"lazulite: {DEVELOPMENT_OFF}"]


def test_path_style_only(tmp_path: Path) -> None:
    location = tmp_path / "data"
    with serving(location, "-s", "--disableProductStyleUrl", "--host-suffix", "tables.test") as server:
        for host in ("table.localhost", "other.table.localhost", "other.tables.test"):
            base = f"http://{host}/devstoreaccount1/"
            assert ask(f"{server.url}devstoreaccount1/Tables?{token(location)}", {"Host": host}) == (200, base)
        assert server.stop() == (0, "")


def test_a_proxy_speaks_for_its_clients(tmp_path: Path) -> None:
    location = tmp_path / "data"
    terms = token(location, "--protocol", "https", "--ip", "198.51.100.7")
    forwarded = {
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "devstoreaccount1.table.localhost",
        "X-Forwarded-For": "198.51.100.7",
    }
    with serving(location, "--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "127.0.0.1") as server:
        url = f"{server.url}Tables?{terms}"
        assert ask(url, forwarded) == (200, "https://devstoreaccount1.table.localhost/")
        assert ask(url, forwarded | {"X-Forwarded-Proto": "http"}) == (403, "AuthorizationProtocolMismatch")
        assert ask(url, forwarded | {"X-Forwarded-For": "198.51.100.8"}) == (403, "AuthorizationSourceIPMismatch")
        code, log = server.stop()
        assert code == 0
        assert re.findall(r'"client":"([^"]*)"', log) == ["198.51.100.7", "198.51.100.7", "198.51.100.8"]
    with serving(location, "-s", "--trusted-proxy", "10.0.0.0/8") as server:
        assert ask(f"{server.url}devstoreaccount1/Tables?{terms}", forwarded) == (403, "AuthorizationProtocolMismatch")
        assert server.stop() == (0, "")
