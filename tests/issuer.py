"""A small OpenID Connect issuer on loopback: its configuration and its keys, both for the test to change."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.tokens import SigningKey, jwks

DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/keys"
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"


class Issuer:
    """What the issuer answers. `answers` holds a status and a body by path, and whatever else a test puts there."""

    def __init__(self, port: int, *keys: SigningKey) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.url = f"{self.origin}/{TENANT}/v2.0"
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.configure(issuer=self.url, jwks_uri=self.origin + KEYS)
        self.publish(*keys)

    def configure(self, **document: Any) -> None:
        """Give another configuration."""
        self.answers[f"/{TENANT}/v2.0{DISCOVERY}"] = (200, json.dumps(document).encode())

    def publish(self, *keys: SigningKey) -> None:
        """Give these keys from now on."""
        self.answers[KEYS] = (200, jwks(*keys))

    def token(self, key: SigningKey, now: float, **claims: Any) -> str:
        """Return a token of this issuer."""
        return key.token(now=now, **{"iss": self.url, **claims})


@contextmanager
def issuing(*keys: SigningKey) -> Iterator[Issuer]:
    """Run an issuer in threads until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append(self.path)
            status, body = issuer.answers.get(self.path, (404, b"not found"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status // 100 == 3:
                self.send_header("Location", issuer.origin + KEYS)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = Issuer(server.server_address[1], *keys)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
