import json

from hypothesis import given
from hypothesis import strategies as st

from lazulite.service.properties import (
    DEFAULTS,
    BlobProperties,
    BlobPropertiesUpdate,
    CorsRule,
    DeleteRetention,
    Logging,
    Metrics,
    PropertiesUpdate,
    RetentionPolicy,
    ServiceProperties,
    StaticWebsite,
)

NAMES = st.lists(st.from_regex(r"\A[a-z][a-z-]{0,8}\Z"), max_size=3).map(tuple)
METHODS = st.lists(st.sampled_from(["GET", "PUT", "MERGE"]), min_size=1, max_size=3, unique=True).map(tuple)
ORIGINS = st.lists(st.sampled_from(["*", "http://a.example", "https://*.b.example:8080"]), min_size=1).map(tuple)
RETENTIONS = st.just(RetentionPolicy()) | st.integers(1, 365).map(lambda days: RetentionPolicy(True, days))
LOGGINGS = st.builds(Logging, st.booleans(), st.booleans(), st.booleans(), RETENTIONS)
METRICS = st.builds(Metrics, st.just(True), st.booleans(), RETENTIONS) | st.builds(Metrics, retention=RETENTIONS)
RULES = st.builds(CorsRule, METHODS, ORIGINS, NAMES, NAMES, st.integers(0, 2**31 - 1))
DELETE_RETENTIONS = st.builds(DeleteRetention, st.just(True), st.integers(1, 365), st.booleans())
WEBSITES = st.builds(StaticWebsite, st.just(True), st.sampled_from(["", "index.html"]))
BLOBS = st.builds(BlobProperties, DELETE_RETENTIONS, WEBSITES, st.sampled_from(["", "2021-12-02"])) | st.just(DEFAULTS)
CORS = st.lists(RULES, max_size=2).map(tuple)
PROPERTIES = st.builds(ServiceProperties, LOGGINGS, METRICS, METRICS, CORS)
OF_BLOBS = st.builds(ServiceProperties, LOGGINGS, METRICS, METRICS, CORS, BLOBS)


@given(OF_BLOBS)
def test_json_survives(properties: ServiceProperties) -> None:
    assert ServiceProperties.from_json(json.loads(json.dumps(properties.to_json()))) == properties


def test_an_update_leaves_alone_what_it_does_not_name() -> None:
    rule = CorsRule(("GET",), ("*",))
    old = ServiceProperties(Logging(read=True), Metrics(True, False), Metrics(True, True), (rule,))
    assert old.merge(PropertiesUpdate()) == old
    assert old.merge(PropertiesUpdate(logging=Logging())) == ServiceProperties(
        Logging(), Metrics(True, False), Metrics(True, True), (rule,)
    )
    everything = PropertiesUpdate(Logging(), Metrics(), Metrics(), ())
    assert old.merge(everything) == ServiceProperties()


def test_an_update_of_the_parts_of_blobs_leaves_the_others_alone() -> None:
    website = StaticWebsite(True, "index.html")
    old = ServiceProperties(Logging(read=True), blob=BlobProperties(website=website, default_version="2021-12-02"))
    new = old.merge(PropertiesUpdate(blob=BlobPropertiesUpdate(DeleteRetention(True, 7), default_version="")))
    assert new == ServiceProperties(Logging(read=True), blob=BlobProperties(DeleteRetention(True, 7), website))


def test_the_rows_of_other_services_have_no_parts_of_blobs() -> None:
    assert "blob" not in ServiceProperties().to_json()
    assert list(ServiceProperties(blob=BlobProperties(default_version="2021-12-02")).to_json()["blob"]) == [
        "default_version"
    ]
