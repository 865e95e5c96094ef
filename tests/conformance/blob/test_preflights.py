"""Cross-origin requests to blobs. Source: REST reference, Preflight Blob Request."""

from collections.abc import Iterator

import pytest
from tests.conformance.signing import anonymous

from .resources import Resource

SERVICE = "restype=service&comp=properties"
RULE = (
    "<CorsRule><AllowedOrigins>http://a.example</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>"
    "<AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders>x-ms-*</ExposedHeaders>"
    "<MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
)


@pytest.fixture(autouse=True)
def _rule(own: Resource) -> Iterator[None]:
    set_rules = "<StorageServiceProperties><Cors>{}</Cors></StorageServiceProperties>"
    own.container.blobs.send("PUT", "/", SERVICE, body=set_rules.format(RULE)).expect(202)
    yield
    own.container.blobs.send("PUT", "/", SERVICE, body=set_rules.format("")).expect(202)


@pytest.mark.parametrize(
    ("origin", "method", "headers", "status"),
    [
        ("http://a.example", "PUT", "x-ms-blob-type,x-ms-version", 200),
        ("http://a.example", "DELETE", "", 403),
        ("http://b.example", "GET", "", 403),
        ("http://a.example", "GET", "authorization", 403),
    ],
)
def test_a_preflight(blob: Resource, origin: str, method: str, headers: str, status: int) -> None:
    asked = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers}
    answer = blob.send("OPTIONS", headers={"Origin": origin, **asked}, signer=anonymous)
    assert answer.status == status
    if status == 200:
        assert answer.header("access-control-allow-methods") == method
        assert answer.header("access-control-allow-headers") == headers
    else:
        assert answer.code == (403, "CorsPreflightFailure")


def test_a_read_of_another_origin(blob: Resource) -> None:
    answer = blob.send("GET", headers={"Origin": "http://a.example"}).expect(200)
    assert answer.header("access-control-allow-origin") == "http://a.example"
    assert "x-ms-blob-type" in answer.required("access-control-expose-headers")
    other = blob.send("GET", headers={"Origin": "http://b.example"}).expect(200)
    assert other.header("access-control-allow-origin") is None
    assert other.header("vary") == "Origin"
