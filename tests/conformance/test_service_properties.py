"""Reference §12.1: Get and Set Table Service Properties."""

from collections.abc import Iterator

import pytest

from .answers import xml_text
from .client import Client
from .service_properties import (
    DAYS_BESIDE_OFF,
    DAYS_REASON,
    DEFAULTS,
    HOUR_OFF,
    LOGGING_OFF,
    MALFORMED,
    MINUTE_OFF,
    QUERY,
    cors,
    document,
    get,
    put,
    rule,
    shape,
)

CODES = {"InvalidXmlDocument", "InvalidXmlNodeValue", "InvalidInput"}


@pytest.fixture(autouse=True)
def _restored(client: Client) -> Iterator[None]:
    """Every test starts from the defaults and leaves them."""
    put(client, DEFAULTS).expect(202)
    yield
    put(client, DEFAULTS).expect(202)


def test_default_service_properties(client: Client) -> None:
    answer = client.send("GET", "/", QUERY).expect(200)
    assert answer.body.startswith(b"\xef\xbb\xbf<?xml")
    assert answer.header("Content-Type") == "application/xml"
    assert shape(xml_text(answer.body)) == shape(DEFAULTS)


@pytest.mark.parametrize("query", [QUERY, "comp=properties&restype=service"])
def test_addresses_of_service_properties(client: Client, query: str) -> None:
    client.send("GET", "/", query).expect(200)
    if client.endpoint.is_path_style:
        client.send("GET", "", query).expect(200)


def logging(read: str = "true", days: str = "7", version: str = "1.0") -> str:
    """A Logging element that is on."""
    return (
        f"<Logging><Version>{version}</Version><Read>{read}</Read><Write>true</Write><Delete>true</Delete>"
        f"<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy></Logging>"
    )


def metrics(name: str, apis: str = "<IncludeAPIs>true</IncludeAPIs>", days: str = "7", version: str = "1.0") -> str:
    """A metrics element that is on."""
    return (
        f"<{name}><Version>{version}</Version><Enabled>true</Enabled>{apis}"
        f"<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy></{name}>"
    )


RULE = rule("http://a.example,http://b.example", "GET,PUT", "Accept,x-ms-*", "x-ms-*", "500")
FIVE = cors(*(rule(f"http://h{number}.example") for number in range(5)))
SETTINGS = [
    ([logging()], [logging(), HOUR_OFF, MINUTE_OFF, "<Cors />"]),
    ([logging(days="365")], [logging(days="365"), HOUR_OFF, MINUTE_OFF, "<Cors />"]),
    ([logging(days="1")], [logging(days="1"), HOUR_OFF, MINUTE_OFF, "<Cors />"]),
    ([logging(read="True")], [logging(), HOUR_OFF, MINUTE_OFF, "<Cors />"]),
    ([metrics("HourMetrics")], [LOGGING_OFF, metrics("HourMetrics"), MINUTE_OFF, "<Cors />"]),
    ([metrics("MinuteMetrics")], [LOGGING_OFF, HOUR_OFF, metrics("MinuteMetrics"), "<Cors />"]),
    ([cors(RULE)], [LOGGING_OFF, HOUR_OFF, MINUTE_OFF, cors(RULE)]),
    ([FIVE], [LOGGING_OFF, HOUR_OFF, MINUTE_OFF, FIVE]),
    ([cors(rule("*", "DELETE,GET,HEAD,MERGE,PATCH,POST,OPTIONS,PUT", "*", "*"))], None),
    ([cors(RULE), logging()], [logging(), HOUR_OFF, MINUTE_OFF, cors(RULE)]),
    ([metrics("HourMetrics", "<IncludeAPIs>false</IncludeAPIs>")], None),
]


@pytest.mark.parametrize(("given", "kept"), SETTINGS)
def test_what_is_set_comes_back(client: Client, given: list[str], kept: list[str] | None) -> None:
    put(client, document(*given)).expect(202)
    came = get(client)
    if kept is not None:
        assert shape(came) == shape(document(*kept))
    else:
        assert all(element in came for element in given)


def test_a_root_that_is_left_out_stays(client: Client) -> None:
    put(client, document(logging(), cors(RULE))).expect(202)
    put(client, document(metrics("HourMetrics"))).expect(202)
    assert shape(get(client)) == shape(document(logging(), metrics("HourMetrics"), MINUTE_OFF, cors(RULE)))
    put(client, document("<Cors/>")).expect(202)
    assert shape(get(client)) == shape(document(logging(), metrics("HourMetrics"), MINUTE_OFF, "<Cors />"))


ORDERS = [
    ("data*,target*,xyz,foo", "xyz,foo,data*,target*"),
    ("zeta,data*,alpha,target*", "zeta,alpha,data*,target*"),
    ("*,b,a", "b,a,*"),
    ("b,a", "b,a"),
]


@pytest.mark.parametrize(("given", "kept"), ORDERS)
def test_lists_of_headers_begin_with_the_literal_ones(client: Client, given: str, kept: str) -> None:
    origins, methods = "http://b.example,http://*.a.example,http://a.example", "PUT,GET"
    put(client, document(cors(rule(origins, methods, given, "one")))).expect(202)
    assert cors(rule(origins, methods, kept, "one")) in get(client)
    put(client, document(cors(rule(origins, methods, "one", given)))).expect(202)
    assert cors(rule(origins, methods, "one", kept)) in get(client)


def test_children_have_any_order(client: Client) -> None:
    shuffled = (
        "<Logging><RetentionPolicy><Days>7</Days><Enabled>true</Enabled></RetentionPolicy><Delete>true</Delete>"
        "<Write>true</Write><Read>true</Read><Version>1.0</Version></Logging>"
    )
    put(client, document(shuffled)).expect(202)
    assert shape(get(client)) == shape(document(logging(), HOUR_OFF, MINUTE_OFF, "<Cors />"))


SYNTAX = [
    "",
    "nonsense",
    "<StorageServiceProperties>",
    "<Other/>",
    document(FIVE[:-7] + rule("http://six.example") + "</Cors>"),
]
SYNTAX += [document(logging(days="366")), document(metrics("HourMetrics", days="366")), document(logging(days="0"))]


@pytest.mark.parametrize("text", SYNTAX, ids=lambda text: text[-60:])
def test_invalid_documents(client: Client, text: str) -> None:
    assert put(client, text).rejection == (400, "InvalidXmlDocument", "XML specified is not syntactically valid.")
    assert shape(get(client)) == shape(DEFAULTS)


def test_the_reason_is_reported(client: Client) -> None:
    body = xml_text(put(client, document(logging(days="366"))).body)
    assert "Retention days must be greater than 0 and less than or equal to 365 days." in body
    assert "LineNumber>" in body
    assert "LinePosition>" in body


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_documents_with_other_elements(client: Client, text: str) -> None:
    """§25: live bodies that many reported."""
    assert put(client, text).code == (400, "InvalidXmlDocument")
    assert shape(get(client)) == shape(DEFAULTS)


@pytest.mark.parametrize("text", DAYS_BESIDE_OFF.values(), ids=DAYS_BESIDE_OFF)
def test_days_belong_to_what_is_enabled(client: Client, text: str) -> None:
    answer = put(client, text)
    assert answer.code == (400, "InvalidXmlDocument")
    assert DAYS_REASON in xml_text(answer.body)


CONTENTS = {
    "version 2.0": document(logging(version="2.0")),
    "days not a number": document(logging(days="x")),
    "not a boolean": document(logging(read="maybe")),
    "unknown child": document(logging().replace("<Read>", "<Surprise/><Read>")),
    "unknown method": document(cors(rule("*", "GET,FETCH"))),
    "empty methods": document(cors(rule("*", ""))),
    "empty origins": document(cors(rule(""))),
    "negative age": document(cors(rule("*", seconds="-1"))),
    "age not a number": document(cors(rule("*", seconds="x"))),
    "long origin": document(cors(rule("http://" + "a" * 250))),
    "65 origins": document(cors(rule(",".join(f"http://h{number}" for number in range(65))))),
    "long header": document(cors(rule("*", allowed="x" * 257))),
    "65 headers": document(cors(rule("*", allowed=",".join(f"h{number}" for number in range(65))))),
    "3 prefixed headers": document(cors(rule("*", allowed="a*,b*,c*"))),
    "more than 2 KiB": document(cors(*(rule(f"http://{'a' * 240}{n}", allowed="x" * 250) for n in range(5)))),
}


@pytest.mark.parametrize("text", CONTENTS.values(), ids=CONTENTS)
def test_invalid_contents(client: Client, text: str) -> None:
    answer = put(client, text)
    assert answer.status == 400
    assert answer.rejection.code in CODES
    assert "xml" in answer.required("Content-Type")
    assert shape(get(client)) == shape(DEFAULTS)


@pytest.mark.unverified
@pytest.mark.parametrize("name", ["DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite"])
def test_what_belongs_to_blobs_is_rejected(client: Client, name: str) -> None:
    assert put(client, document(f"<{name}>2019-02-02</{name}>")).status == 400


@pytest.mark.parametrize(
    "query", ["restype=service", "comp=properties", "restype=service&comp=nonsense", "restype=x&comp=properties"]
)
def test_other_addresses_are_rejected(client: Client, query: str) -> None:
    for method in ("GET", "PUT"):
        answer = client.send(method, "/", query, body=DEFAULTS if method == "PUT" else None)
        assert 400 <= answer.status < 500
        assert answer.rejection.code != ""
