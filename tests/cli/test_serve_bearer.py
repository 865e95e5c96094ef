"""`lazulite serve` with an issuer, as a process of its own: what it says and how it ends."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from lazulite.protocol.version import BEARER_SINCE
from tests.issuer import KEYS, issuing
from tests.server_process import FREE_PORTS, SECONDS_MAX
from tests.tokens import jwks, signing_key

from .test_serve import lazulite, serving

KEY = signing_key("key", "ES256")
ISSUER = "https://issuer.example"


def ask(url: str, token: str | None, version: str = BEARER_SINCE, **more: str) -> tuple[int, str | None]:
    """Return the status of an answer and its challenge."""
    headers = {"x-ms-version": version, "Accept": "application/json", **more}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        with urlopen(Request(f"{url}devstoreaccount1/Tables", headers=headers), timeout=SECONDS_MAX) as answer:
            return answer.status, None
    except HTTPError as error:
        with error:
            return error.code, error.headers["WWW-Authenticate"]


def token(**claims: Any) -> str:
    return KEY.token(now=time.time(), **{"iss": ISSUER, **claims})


@pytest.fixture(name="keys")
def _keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    path.write_bytes(jwks(KEY))
    return path


def test_keys_of_a_file(tmp_path: Path, keys: Path) -> None:
    debug = tmp_path / "debug.log"
    flags = ("--oidc-issuer", ISSUER, "--oidc-jwks", str(keys), "--allow-bearer-over-http", "--debug", str(debug))
    with serving(tmp_path / "data", *flags) as server:
        good, bad = token(), token(aud="other")
        challenge = f"Bearer authorization_uri={ISSUER}/oauth2/authorize resource_id=https://storage.azure.com"
        assert ask(server.url, good) == (200, None)
        assert ask(server.url, bad) == (401, challenge)
        assert ask(server.url, None) == (401, challenge)
        assert ask(server.url, None, "2019-02-02") == (401, "SharedKey")
        assert ask(server.url, bad, "2019-02-02") == (403, None)

        def replace(content: bytes) -> None:
            keys.write_bytes(content)
            stranger = signing_key("stranger", "ES256")  # A token of an unknown key has the file looked at for sure.
            assert ask(server.url, stranger.token(now=time.time(), iss=ISSUER)) == (401, challenge)

        replace(jwks(signing_key("another", "ES256")))
        assert ask(server.url, good) == (401, challenge)
        replace(b"rubbish")
        assert ask(server.url, good) == (401, challenge)
        replace(jwks(KEY))
        assert ask(server.url, good) == (200, None)
        code, log = server.stop()
    assert code == 0
    assert f"lazulite: {keys}: the key set is not JSON; the signing keys stay as they were\n" in log
    for secret in (good, bad, good.rsplit(".", maxsplit=1)[1]):
        assert secret not in log + debug.read_text()


def test_over_http_tokens_are_not_asked_for(tmp_path: Path, keys: Path) -> None:
    with serving(tmp_path / "data", "-s", "--oidc-issuer", ISSUER, "--oidc-jwks", str(keys)) as server:
        assert ask(server.url, token()) == (403, None)
        assert ask(server.url, None) == (401, "SharedKey")
        assert server.stop() == (0, "")


def test_a_trusted_proxy_that_says_https_is_believed(tmp_path: Path, keys: Path) -> None:
    flags = ("-s", "--oidc-issuer", ISSUER, "--oidc-jwks", str(keys), "--trusted-proxy", "127.0.0.1")
    with serving(tmp_path / "data", *flags) as server:
        assert ask(server.url, token(), **{"X-Forwarded-Proto": "https"}) == (200, None)
        assert ask(server.url, token(), **{"X-Forwarded-Proto": "http"}) == (403, None)
        assert server.stop() == (0, "")


def test_without_an_issuer_tokens_are_rejected(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "-s") as server:
        assert ask(server.url, token()) == (401, "SharedKey")
        assert server.stop() == (0, "")


def test_an_issuer_that_comes_up_later(tmp_path: Path) -> None:
    with issuing(KEY) as issuer:
        good_keys = issuer.answers.pop(KEYS)
        services = ("--services", "table,queue", "--queue-port", "0")  # They ask the issuer together.
        flags = ("--oidc-issuer", issuer.url, "--allow-bearer-over-http", "-s", *services)
        with serving(tmp_path / "data", *flags) as server:
            assert ask(server.url, issuer.token(KEY, time.time())) == (503, None)
            issuer.answers[KEYS] = good_keys
            code, log = server.stop()
        assert code == 0
        why = f"{issuer.origin}{KEYS} answered 404"
        assert log == f"lazulite: no signing keys for bearer tokens: {why}; retried until there are\n"


@pytest.fixture(name="silent")
def _silent() -> Iterator[int]:
    """The port of an issuer that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_an_issuer_that_hangs_holds_up_neither_start_nor_stop(tmp_path: Path, silent: int) -> None:
    with serving(tmp_path / "data", "-s", "--oidc-issuer", f"http://127.0.0.1:{silent}") as server:
        assert server.stop() == (0, "")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--oidc-issuer", "issuer"], "--oidc-issuer: 'issuer' is not a usable http or https URL"),
        (
            ["--oidc-issuer", ISSUER, "--oidc-jwks", "/nowhere/keys"],
            "cannot read /nowhere/keys: No such file or directory",
        ),
        (["--oidc-reader", "x"], "the other flags of bearer tokens need --oidc-issuer"),
    ],
)
def test_what_cannot_work_is_rejected_from_the_start(tmp_path: Path, flags: list[str], said: str) -> None:
    done = lazulite(
        "serve",
        "--location",
        str(tmp_path / "data"),
        *FREE_PORTS,
        *flags,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"lazulite: {said}\n")
