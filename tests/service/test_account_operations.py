from lazulite.protocol.message import Request, response_of
from tests.table.client import ACCOUNT, Client, header

QUERY = "restype=service&comp=properties"
METRICS = (
    "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
    "<RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></HourMetrics>"
)


async def test_properties_are_changed_root_by_root(client: Client) -> None:
    before = (await client("GET", "", QUERY)).body
    body = f"<StorageServiceProperties>{METRICS}</StorageServiceProperties>".encode()
    assert (await client("PUT", "", QUERY, body)).status == 202
    after = (await client("GET", "", QUERY)).body
    assert METRICS.encode() in after
    assert after != before
    assert b"<Cors />" in after


async def test_a_damaged_document_changes_nothing(client: Client) -> None:
    before = (await client("GET", "", QUERY)).body
    response = await client("PUT", "", QUERY, b"<StorageServiceProperties><HourMetrics/></StorageServiceProperties>")
    assert response.status == 400
    assert header(response, "Content-Type") == "application/xml"
    assert (await client("GET", "", QUERY)).body == before


async def test_stats_come_from_the_secondary(client: Client) -> None:
    query = "restype=service&comp=stats"
    assert (await client("GET", "", query)).error_code == "InvalidQueryParameterValue"
    request = Request("GET", f"/{ACCOUNT}-secondary/", f"{query}&{client.sas}", {"host": "h"}, id="id")
    response = await response_of(client.service, request)
    assert b"<Status>live</Status>" in response.body


async def test_old_versions_have_two_roots_and_both_are_needed(client: Client) -> None:
    old = {"x-ms-version": "2012-02-12"}
    before = (await client("GET", "", QUERY, headers=old)).body
    assert b"<Metrics>" in before
    assert b"Cors" not in before
    assert b"HourMetrics" not in before
    metrics = METRICS.replace("HourMetrics", "Metrics")
    alone = f"<StorageServiceProperties>{metrics}</StorageServiceProperties>".encode()
    assert (await client("PUT", "", QUERY, alone, old)).error_code == "InvalidXmlDocument"
    start, _, rest = before.partition(b"<Metrics>")
    changed = start + metrics.encode() + rest.partition(b"</Metrics>")[2]
    assert (await client("PUT", "", QUERY, changed, old)).status == 202
    assert METRICS.encode() in (await client("GET", "", QUERY)).body
    assert (await client("GET", "", QUERY, headers=old)).body == changed
