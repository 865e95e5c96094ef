"""The operations of the account: service properties, stats, CORS, by version and on the secondary endpoint."""

from collections.abc import Iterator

import pytest
from tests.conformance.answers import xml_text
from tests.conformance.service_properties import (
    DAYS_BESIDE_OFF,
    DAYS_REASON,
    DEFAULTS,
    HOUR_OFF,
    LOGGING_OFF,
    MALFORMED,
    METRICS_OFF,
    cors,
    document,
    rule,
)

from .queues import Queue, Queues

PROPERTIES = "restype=service&comp=properties"
STATS = "restype=service&comp=stats"
ORIGIN = "http://a.example"


@pytest.fixture
def defaults(queues: Queues) -> Iterator[Queues]:
    """The queues, whose service properties are the defaults before and after the test."""
    queues.send("PUT", "/", PROPERTIES, body=DEFAULTS).expect(202)
    yield queues
    queues.send("PUT", "/", PROPERTIES, body=DEFAULTS).expect(202)


def test_the_default_properties(defaults: Queues) -> None:
    answer = defaults.send("GET", "/", PROPERTIES).expect(200)
    assert xml_text(answer.body) == DEFAULTS
    assert answer.header("Content-Type") == "application/xml"


def test_reads_are_not_cached(defaults: Queues, queue: Queue, queue_secondary: Queues) -> None:
    queue.put("a")
    for answer in (
        defaults.send("GET", "/", PROPERTIES),
        defaults.send("GET", "/", "comp=list"),
        queue_secondary.send("GET", "/", STATS),
        queue.send("GET", query="comp=metadata"),
        queue.send("HEAD", query="comp=metadata"),
        queue.send("GET", query="comp=acl"),
        queue.send("HEAD", query="comp=acl"),
        queue.send("GET", "/messages", "peekonly=true"),
        queue.send("GET", "/messages"),
    ):
        assert (answer.status, answer.header("Cache-Control")) == (200, "no-cache")


def test_a_part_that_is_left_out_is_kept(defaults: Queues) -> None:
    logging = LOGGING_OFF.replace("<Read>false", "<Read>true").replace("1.0", "2.0")
    defaults.send("PUT", "/", PROPERTIES, body=document(logging)).expect(202)
    defaults.send("PUT", "/", PROPERTIES, body=document(cors(rule(ORIGIN)))).expect(202)
    text = xml_text(defaults.send("GET", "/", PROPERTIES).expect(200).body)
    assert "<Read>true</Read>" in text
    assert f"<AllowedOrigins>{ORIGIN}</AllowedOrigins>" in text


@pytest.mark.parametrize("days", ["0", "366"])
def test_days_of_retention_out_of_range(defaults: Queues, days: str) -> None:
    on = f"<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy>"
    off = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
    answer = defaults.send("PUT", "/", PROPERTIES, body=document(HOUR_OFF.replace(off, on)))
    assert answer.code == (400, "InvalidXmlDocument")
    reason = "Retention days must be greater than 0 and less than or equal to 365 days."
    assert f"<Reason>{reason}</Reason>" in xml_text(answer.body)
    assert "<LineNumber>1</LineNumber><LinePosition>" in xml_text(answer.body)


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_documents_with_other_elements(defaults: Queues, text: str) -> None:
    assert defaults.send("PUT", "/", PROPERTIES, body=text).code == (400, "InvalidXmlDocument")


@pytest.mark.parametrize("text", DAYS_BESIDE_OFF.values(), ids=DAYS_BESIDE_OFF)
def test_days_belong_to_what_is_enabled(defaults: Queues, text: str) -> None:
    answer = defaults.send("PUT", "/", PROPERTIES, body=text)
    assert answer.code == (400, "InvalidXmlDocument")
    assert f"<Reason>{DAYS_REASON}</Reason>" in xml_text(answer.body)


def test_a_sixth_rule_of_cors(defaults: Queues) -> None:
    rules = [rule(f"http://{number}.example") for number in range(6)]
    defaults.send("PUT", "/", PROPERTIES, body=document(cors(*rules[:5]))).expect(202)
    answer = defaults.send("PUT", "/", PROPERTIES, body=document(cors(*rules)))
    assert answer.code == (400, "InvalidXmlDocument")
    text = xml_text(answer.body)
    assert "<LineNumber>0</LineNumber><LinePosition>0</LinePosition><Reason /></Error>" in text


def test_properties_before_2013_08_15(defaults: Queues) -> None:
    old = "2012-02-12"
    body = document(LOGGING_OFF, f"<Metrics>{METRICS_OFF}</Metrics>")
    defaults.send("PUT", "/", PROPERTIES, body=body, version=old).expect(202)
    assert xml_text(defaults.send("GET", "/", PROPERTIES, version=old).expect(200).body) == body
    answer = defaults.send("PUT", "/", PROPERTIES, body=document(LOGGING_OFF), version=old)
    assert answer.code == (400, "InvalidXmlDocument")


def test_stats_are_on_the_secondary_endpoint(queues: Queues, queue_secondary: Queues) -> None:
    text = xml_text(queue_secondary.send("GET", "/", STATS).expect(200).body)
    assert "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>" in text
    assert queues.send("GET", "/", STATS).code == (400, "InvalidQueryParameterValue")
    answer = queue_secondary.send("GET", "/", STATS, version="2012-02-12")
    assert answer.code == (400, "InvalidQueryParameterValue")


def test_cors_headers_of_messages(defaults: Queues, queue: Queue) -> None:
    exposed = "x-ms-*,Content-Length"
    rules = cors(rule(ORIGIN, "GET,PUT,POST,DELETE", "x-ms-*", exposed))
    defaults.send("PUT", "/", PROPERTIES, body=document(rules)).expect(202)
    answer = queue.put("a", headers={"Origin": ORIGIN}).expect(201)
    assert answer.header("Access-Control-Allow-Origin") == ORIGIN
    assert answer.header("Access-Control-Allow-Credentials") == "true"
    assert "x-ms-request-id" in answer.required("Access-Control-Expose-Headers").split(",")
    read = queue.send("GET", "/messages", "peekonly=true", headers={"Origin": "http://b.example"}).expect(200)
    assert read.header("Access-Control-Allow-Origin") is None
    assert read.header("Vary") == "Origin"
    missing = defaults.send("GET", f"{queue.path}x/messages", headers={"Origin": ORIGIN})
    assert (missing.code, missing.header("Access-Control-Allow-Origin")) == ((404, "QueueNotFound"), ORIGIN)
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "DELETE"}
    allowed = queue.send("OPTIONS", "/messages", headers=asked | {"Access-Control-Request-Headers": "x-ms-meta-a"})
    assert allowed.expect(200).header("Access-Control-Allow-Methods") == "DELETE"
    rejected = queue.send("OPTIONS", "/messages", headers=asked | {"Access-Control-Request-Headers": "other"})
    assert rejected.code == (403, "CorsPreflightFailure")
    old = queue.put("a", headers={"Origin": ORIGIN}, version="2012-02-12").expect(201)
    assert old.header("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize("method", ["POST", "DELETE", "HEAD"])
def test_methods_that_the_account_does_not_have(queues: Queues, method: str) -> None:
    assert queues.send(method, "/", PROPERTIES).status == 405


def test_a_key_for_delegation_needs_a_bearer(queues: Queues) -> None:
    body = "<KeyInfo><Expiry>2100-01-01T00:00:00Z</Expiry></KeyInfo>"
    query = "restype=service&comp=userdelegationkey"
    answer = queues.send("POST", "/", query, body=body, version="2026-02-06")
    assert answer.code == (403, "AuthenticationFailed")
    answer = queues.send("POST", "/", query, body=body, version="2021-02-12")
    assert answer.code == (400, "InvalidQueryParameterValue")
