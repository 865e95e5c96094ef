"""What each effect does to requests, over HTTP: to their results, and to what is stored."""

import http.client
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import lazulite.testing
from lazulite.app.servers import open_servers
from lazulite.control.command import ControlError
from lazulite.faults.rule import Rule, Subject
from lazulite.protocol.fault import Effect, Fault
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from tests.conformance.answers import Answer
from tests.conformance.batches import PLAIN, operation
from tests.conformance.batches import body as batch_body
from tests.conformance.blob.blobs import Blobs, Container
from tests.conformance.blob.test_batches import _STATUS as STATUS_OF_PART
from tests.conformance.blob.test_batches import Part
from tests.conformance.blob.test_batches import send as send_batch
from tests.conformance.client import Client
from tests.conformance.signing import Endpoint, full_shared_key, shared_key

Keys = Mapping[str, Any]
BLOB = {"x-ms-blob-type": "BlockBlob", "x-ms-version": "2021-12-02"}
SIGNERS = {"table": shared_key, "queue": full_shared_key, "blob": full_shared_key}
QUEUE = {"x-ms-version": "2021-12-02", "Accept": None}


class Marks:
    """A log that knows which requests are marked as suffering, and what rules have decided. An `ExchangeLog`."""

    reads_heads = False

    def __init__(self) -> None:
        self.marked: Counter[Effect] = Counter()
        self.decided: Counter[Effect] = Counter()

    def record(self, exchange: Exchange) -> None:
        """See `ExchangeLog`."""
        if exchange.request.record.fault is not None:
            self.marked[exchange.request.record.fault.effect] += 1

    def repeat(self, exchange: RepeatedExchange) -> None:
        """See `ExchangeLog`: templates know no rules."""

    def failed(self, request_id: str, failure: BaseException) -> None:
        """See `ExchangeLog`: nothing does."""
        raise AssertionError(request_id) from failure


_FAULT = Rule.fault


@pytest.fixture(scope="module")
def marks() -> Marks:
    return Marks()


@pytest.fixture(scope="module")
def storage(marks: Marks) -> Iterator[lazulite.testing.Storage]:
    def fault(rule: Rule, subject: Subject) -> Fault:
        marks.decided[rule.effect] += 1
        return _FAULT(rule, subject)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lazulite.testing.storage.open_servers", partial(open_servers, logs=[marks]))
        patch.setattr(Rule, "fault", fault)
        with lazulite.testing.server() as running:
            yield running


@pytest.fixture
def faults(storage: lazulite.testing.Storage, marks: Marks) -> Iterator[lazulite.testing.Faults]:
    """The rules of the server. Whatever they do in a test, the log has a mark for it."""
    yield storage.faults
    storage.faults.clear()
    marks.decided[Effect.CLOCK] = marks.marked[Effect.CLOCK]  # No rule hits for it; the test of clocks looks.
    deadline = time.monotonic() + 60
    while marks.marked != marks.decided and time.monotonic() < deadline:
        time.sleep(0.01)
    assert marks.marked == marks.decided


class Asker:
    """Sends each request on a connection of its own, so that none is repeated."""

    def __init__(self, account: lazulite.testing.Account) -> None:
        self._account = account

    def send(self, service: str, method: str, path: str, query: str = "", **options: Any) -> Answer:
        return self._send(service, "", method, path, query, **options)

    def secondary(self, method: str, path: str, query: str = "", **options: Any) -> Answer:
        return self._send("table", "-secondary", method, path, query, **options)

    def _send(self, service: str, suffix: str, method: str, path: str, query: str, **options: Any) -> Answer:
        account = self._account
        url = {"table": account.endpoint, "queue": account.queue_endpoint, "blob": account.blob_endpoint}[service]
        client = Client(Endpoint.parse(url + suffix, account.name, account.key))
        try:
            return client.send(method, path, query, **{"signer": SIGNERS[service], **options})
        finally:
            client.close()

    def insert(self, row: str, **headers: str) -> Answer:
        body = json.dumps({"PartitionKey": "p", "RowKey": row, "A": 1})
        return self.send("table", "POST", "/Orders", body=body, headers={"Prefer": "return-content", **headers})

    def stored(self, row: str) -> bool:
        return self.send("table", "GET", at(row)).status == 200


def at(row: str) -> str:
    return f"/Orders(PartitionKey='p',RowKey='{row}')"


@pytest.fixture
def ask(storage: lazulite.testing.Storage) -> Asker:
    asker = Asker(storage.account())
    assert asker.send("table", "POST", "/Tables", body='{"TableName": "Orders"}').status == 201
    return asker


CUT = (ConnectionError, http.client.IncompleteRead, http.client.BadStatusLine)


def cut(ask: Asker, row: str) -> tuple[int, int] | None:
    """Insert an entity; return the bytes that came of a body that was cut, and its length; None of a whole one."""
    try:
        ask.insert(row)
    except http.client.IncompleteRead as error:
        return len(error.partial), len(error.partial) + (error.expected or 0)
    except CUT:
        return 0, 0
    return None


def test_an_error_before_a_write(ask: Asker, faults: lazulite.testing.Faults) -> None:
    with faults.rule(operation="InsertEntity", error="ServerBusy"):
        answer = ask.insert("r")
    assert (answer.status, answer.json()["odata.error"]["code"]) == (503, "ServerBusy")
    assert not ask.stored("r")


def test_an_error_after_a_write(ask: Asker, faults: lazulite.testing.Faults) -> None:
    with faults.rule(operation="InsertEntity", error="OperationTimedOut", when="after"):
        assert ask.insert("r").status == 500
    assert ask.stored("r")


def test_an_error_after_a_write_that_was_rejected_is_that_rejection(
    ask: Asker, faults: lazulite.testing.Faults
) -> None:
    ask.insert("r")
    with faults.rule(error="OperationTimedOut", when="after"):
        assert ask.insert("r").status == 409


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_delay_changes_nothing_else(ask: Asker, faults: lazulite.testing.Faults, when: str) -> None:
    with faults.rule(operation="InsertEntity", delay_seconds=0.001, when=when):
        assert ask.insert("r").status == 201
        assert faults.hits() == {"rule": 1}
    assert ask.stored("r")


def test_an_insert_is_overtaken(ask: Asker, faults: lazulite.testing.Faults) -> None:
    with faults.rule(overtaken=True):
        answer = ask.insert("r")
    assert (answer.status, answer.json()["odata.error"]["code"]) == (409, "EntityAlreadyExists")
    assert not ask.stored("r")


def test_a_conditional_write_is_overtaken(ask: Asker, faults: lazulite.testing.Faults) -> None:
    tag = ask.insert("r").etag
    with faults.rule(overtaken=True):
        for condition, status in [(tag, 412), ("*", 204)]:
            answer = ask.send("table", "MERGE", at("r"), body="{}", headers={"If-Match": condition})
            assert answer.status == status


@pytest.mark.parametrize(
    ("keys", "is_stored", "is_whole"),
    [
        ({"reset": "request"}, False, False),
        ({"reset": "answer"}, True, False),
        ({"reset": "head"}, True, False),
        ({"reset": "middle"}, True, False),
        ({"reset": "end"}, True, True),
        ({"truncate": 0}, True, False),
        ({"truncate": 0.5}, True, False),
        ({"truncate": 1}, True, False),
        ({"bytes_per_second": 1e6}, True, True),
    ],
)
def test_what_happens_to_the_connection(
    ask: Asker, faults: lazulite.testing.Faults, keys: Keys, is_stored: bool, is_whole: bool
) -> None:
    with faults.rule(operation="InsertEntity", **keys):
        found = cut(ask, "r")
        assert faults.hits() == {"rule": 1}
    assert ask.stored("r") is is_stored
    assert (found is None) is is_whole
    if found is not None and "truncate" in keys:  # An orderly end tells the client how much is missing.
        came, whole = found
        assert came == min(whole - 1, int(whole * keys["truncate"]))


@pytest.mark.parametrize("at", ["request", "answer", "head", "middle"])
def test_a_reset_is_no_orderly_end(ask: Asker, faults: lazulite.testing.Faults, at: str) -> None:
    with faults.rule(operation="InsertEntity", reset=at), pytest.raises(ConnectionResetError) as raised:
        ask.insert("r")
    assert type(raised.value) is ConnectionResetError


@pytest.mark.parametrize("keys", [{"reset": "middle"}, {"reset": "end"}, {"truncate": 0.5}, {"bytes_per_second": 1e9}])
def test_what_happens_to_the_body_of_a_large_blob(ask: Asker, faults: lazulite.testing.Faults, keys: Keys) -> None:
    ask.send("blob", "PUT", "/con", "restype=container", headers=BLOB)
    content = bytes(range(256)) * 8192
    assert ask.send("blob", "PUT", "/con/b", body=content, headers=BLOB).status == 201
    with faults.rule(operation="GetBlob", **keys):
        try:
            came = ask.send("blob", "GET", "/con/b", headers=BLOB).body
        except http.client.IncompleteRead as error:
            came = error.partial
        except ConnectionError:
            came = b""
    if "truncate" in keys:
        assert came == content[: len(content) // 2]
    elif keys.get("reset") == "middle":
        assert len(came) < len(content)
    else:
        assert came == content


def test_a_head_has_no_body_to_break(ask: Asker, faults: lazulite.testing.Faults) -> None:
    ask.send("blob", "PUT", "/con", "restype=container", headers=BLOB)
    ask.send("blob", "PUT", "/con/b", body=b"abc", headers=BLOB)
    for keys in ({"reset": "middle"}, {"truncate": 0.5}, {"bytes_per_second": 10.0}):
        with faults.rule(operation="GetBlobProperties", **keys):
            answer = ask.send("blob", "HEAD", "/con/b", headers=BLOB)
            assert (answer.status, answer.header("Content-Length")) == (200, "3")


def test_other_requests_of_a_connection_go_on(
    storage: lazulite.testing.Storage, ask: Asker, faults: lazulite.testing.Faults
) -> None:
    account = ask._account
    client = Client(Endpoint.parse(account.endpoint, account.name, account.key))
    with faults.rule(bytes_per_second=1e6, first=1):
        assert [client.send("GET", "/Tables").status for _ in range(3)] == [200] * 3
    client.close()


def rows(answer: Answer) -> list[str]:
    return [row["RowKey"] for row in answer.json()["value"]]


@pytest.mark.parametrize(("entries", "sizes"), [(0, [0, 5]), (1, [1, 4]), (2, [2, 3]), (9, [5])])
def test_a_page_ends_early_and_nothing_is_lost(
    ask: Asker, faults: lazulite.testing.Faults, entries: int, sizes: list[int]
) -> None:
    for row in "abcde":
        ask.insert(row)
    found, query = [], ""
    with faults.rule(page_entries=entries, first=1):
        while True:
            answer = ask.send("table", "GET", "/Orders()", query)
            found.append(rows(answer))
            partition, following = (answer.header(f"x-ms-continuation-Next{key}Key") for key in ("Partition", "Row"))
            if partition is None:
                break
            query = f"NextPartitionKey={partition}&NextRowKey={following}"
    assert list(map(len, found)) == sizes
    assert list(chain(*found)) == list("abcde")


def test_an_empty_page_of_a_filter_leads_on(ask: Asker, faults: lazulite.testing.Faults) -> None:
    for row in "abc":
        ask.insert(row)
    with faults.rule(page_entries=0, first=1):
        answer = ask.send("table", "GET", "/Orders()", "$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20gt%20'a'")
        assert rows(answer) == []
        token = answer.required("x-ms-continuation-NextRowKey")
        partition = answer.required("x-ms-continuation-NextPartitionKey")
        query = (
            f"NextPartitionKey={partition}&NextRowKey={token}&$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20gt%20'a'"
        )
        assert rows(ask.send("table", "GET", "/Orders()", query)) == ["b", "c"]


def listed(ask: Asker, service: str, query: str, name: str) -> list[list[str]]:
    """Return the names of each page of a list in XML."""
    pages, marker = [], ""
    path = "/con" if "container" in query else "/"
    while True:
        headers = BLOB if service == "blob" else QUEUE
        answer = ask.send(service, "GET", path, f"{query}{marker}", headers=headers)
        assert answer.status == 200
        root = ET.fromstring(answer.body)
        pages.append([found.text or "" for found in root.iterfind(f".//{name}/Name")])
        following = root.findtext("NextMarker")
        if not following:
            return pages
        marker = f"&marker={following}"


@pytest.mark.parametrize(
    ("service", "query", "name"),
    [
        ("queue", "comp=list", "Queue"),
        ("blob", "comp=list", "Container"),
        ("blob", "restype=container&comp=list", "Blob"),
        ("blob", "restype=container&comp=list&include=metadata,snapshots", "Blob"),
    ],
)
def test_pages_of_lists_end_early(
    ask: Asker, faults: lazulite.testing.Faults, service: str, query: str, name: str
) -> None:
    for each in ("con", "con2", "con3"):
        ask.send("queue", "PUT", f"/{each}", headers=QUEUE)
        ask.send("blob", "PUT", f"/{each}", "restype=container", headers=BLOB)
        ask.send("blob", "PUT", f"/con/{each}", body=b"x", headers=BLOB)
    names = ["con", "con2", "con3"]
    assert listed(ask, service, query, name) == [names]
    with faults.rule(page_entries=0, first=1):
        assert listed(ask, service, query, name) == [[], names]
    with faults.rule(page_entries=1):
        assert listed(ask, service, query, name) == [[each] for each in names]


def test_pages_of_tables_end_early(ask: Asker, faults: lazulite.testing.Faults) -> None:
    ask.send("table", "POST", "/Tables", body='{"TableName": "Second"}')
    with faults.rule(page_entries=0, first=1):
        answer = ask.send("table", "GET", "/Tables")
        assert answer.json()["value"] == []
        query = f"NextTableName={answer.required('x-ms-continuation-NextTableName')}"
        assert len(ask.send("table", "GET", "/Tables", query).json()["value"]) == 2


def messages(ask: Asker) -> list[ET.Element]:
    return ET.fromstring(ask.send("queue", "GET", "/que/messages", headers=QUEUE).body).findall("QueueMessage")


def test_a_message_is_delivered_twice(ask: Asker, faults: lazulite.testing.Faults) -> None:
    ask.send("queue", "PUT", "/que", headers=QUEUE)
    body = "<QueueMessage><MessageText>m</MessageText></QueueMessage>"
    ask.send("queue", "POST", "/que/messages", body=body, headers=QUEUE)
    with faults.rule(duplicate=True, first=1):
        (one,), (again,), none = messages(ask), messages(ask), messages(ask)
    assert none == []
    assert one.findtext("MessageId") == again.findtext("MessageId")
    assert (one.findtext("DequeueCount"), again.findtext("DequeueCount")) == ("1", "2")
    statuses = []
    for each in (one, again):
        receipt = (each.findtext("PopReceipt") or "").replace("+", "%2B").replace("=", "%3D").replace("/", "%2F")
        path, query = f"/que/messages/{each.findtext('MessageId')}", f"popreceipt={receipt}"
        statuses.append(ask.send("queue", "DELETE", path, query, headers=QUEUE).status)
    assert statuses == [404, 204]


def test_a_secondary_that_has_not_heard(ask: Asker, faults: lazulite.testing.Faults) -> None:
    ask.insert("r")
    with faults.rule(secondary=True, error="ResourceNotFound"):
        assert ask.secondary("GET", at("r")).status == 404
        assert ask.stored("r")


def test_a_secondary_with_the_rows_from_before_the_rule(ask: Asker, faults: lazulite.testing.Faults) -> None:
    for row in "ab":
        ask.insert(row)
    with faults.rule(stale=True):
        ask.send("table", "MERGE", at("a"), body='{"A": 2}', headers={"If-Match": "*"})
        ask.send("table", "DELETE", at("b"), headers={"If-Match": "*"})
        ask.insert("c")
        assert [ask.secondary("GET", at("a")).json()["A"], ask.send("table", "GET", at("a")).json()["A"]] == [1, 2]
        assert [ask.secondary("GET", at(row)).status for row in "bc"] == [200, 404]
        assert rows(ask.secondary("GET", "/Orders()")) == ["a", "b"]
        assert rows(ask.send("table", "GET", "/Orders()")) == ["a", "c"]
    assert ask.secondary("GET", at("a")).json()["A"] == 2


def test_a_clock_that_is_off_rejects_dates(ask: Asker, faults: lazulite.testing.Faults, marks: Marks) -> None:
    with faults.rule(service="table", clock_seconds=3600, show=True):
        answer = ask.send("table", "GET", "/Tables")
        assert (answer.status, answer.header("x-lazulite-fault")) == (403, "rule")
        assert ask.send("blob", "GET", "/", "comp=list", headers=BLOB).status == 200
        assert faults.hits() == {"rule": marks.marked[Effect.CLOCK]} == {"rule": 1}
    assert ask.send("table", "GET", "/Tables").status == 200


def test_a_response_names_the_rule_only_if_asked_to(ask: Asker, faults: lazulite.testing.Faults) -> None:
    for show, name in ((False, None), (True, "rule")):
        with faults.rule(operation="QueryTables", delay_seconds=0, show=show):
            assert ask.send("table", "GET", "/Tables").header("x-lazulite-fault") == name


def test_conditions_know_the_resource_and_the_key(ask: Asker, faults: lazulite.testing.Faults) -> None:
    ask.send("queue", "PUT", "/que", headers=QUEUE)
    ask.send("blob", "PUT", "/con", "restype=container", headers=BLOB)
    with faults.rule(resource="orders", key="p/x*", error="ServerBusy"):
        assert [ask.insert(row).status for row in ("x1", "y1")] == [503, 201]
        assert [ask.send("table", "GET", at(row)).status for row in ("x1", "y1")] == [503, 200]
    with faults.rule(resource="con", key="a/*", error="ServerBusy"):
        names = ("a/b", "b/a")
        assert [ask.send("blob", "PUT", f"/con/{name}", body=b"", headers=BLOB).status for name in names] == [503, 201]
    with faults.rule(resource="que", operation="GetMessages", error="ServerBusy"):
        assert ask.send("queue", "GET", "/que/messages", headers=QUEUE).status == 503
    with faults.rule(resource="Second", error="ServerBusy"):
        assert ask.send("table", "POST", "/Tables", body='{"TableName": "Second"}').status == 503


def test_a_batch_is_an_operation_and_its_parts_are_operations(ask: Asker, faults: lazulite.testing.Faults) -> None:
    def run(*names: str) -> str:
        changes = [
            operation("POST", f"{ask._account.endpoint}/Orders", {"PartitionKey": "p", "RowKey": name})
            for name in names
        ]
        headers = {"Content-Type": PLAIN.content_type}
        answer = ask.send("table", "POST", "/$batch", body=batch_body(changes), headers=headers)
        return f"{answer.status} {answer.body.decode()}"

    with faults.rule(operation="EntityGroupTransaction", resource="orders", changes=True, error="ServerBusy"):
        assert run("a", "b").startswith("503")
    with faults.rule(key="p/b", overtaken=True, show=True):
        found = run("a", "b")
        assert found.startswith("202")
        assert "409" in found
        assert "1:The specified entity already exists" in found
        assert faults.hits() == {"rule": 1}
    assert not ask.stored("a")
    with faults.rule(operation="EntityGroupTransaction", reset="answer"), pytest.raises(CUT):
        run("a", "b")
    assert ask.stored("b")


def test_parts_of_a_batch_that_suffers_itself_do_not_suffer(ask: Asker, faults: lazulite.testing.Faults) -> None:
    changes = [operation("POST", f"{ask._account.endpoint}/Orders", {"PartitionKey": "p", "RowKey": "a"})]
    faults.add_rule("whole", operation="EntityGroupTransaction", delay_seconds=0)
    faults.add_rule("part", operation="InsertEntity", overtaken=True)
    headers = {"Content-Type": PLAIN.content_type}
    answer = ask.send("table", "POST", "/$batch", body=batch_body(changes), headers=headers)
    assert answer.status == 202
    assert faults.hits() == {"whole": 1, "part": 0}
    assert ask.stored("a")


def test_a_part_of_a_blob_batch_fails_alone(ask: Asker, faults: lazulite.testing.Faults) -> None:
    ask.send("blob", "PUT", "/con", "restype=container", headers=BLOB)
    account = ask._account
    container = Container(Blobs(Client(Endpoint.parse(account.blob_endpoint, account.name, account.key))), "con")
    for name in "ab":
        container.put(name).expect(201)
    with faults.rule(operation="DeleteBlob", key="b", error="ServerBusy", show=True):
        answer = send_batch(container, [Part("con/a"), Part("con/b")]).expect(202)
    assert [int(status) for _, status in STATUS_OF_PART.findall(answer.body)] == [202, 503]
    assert answer.header("x-lazulite-fault") == "rule"
    assert [container.send("HEAD", name).status for name in "ab"] == [404, 200]
    container.blobs.client.close()


def test_a_page_of_found_blobs_ends_early(ask: Asker, faults: lazulite.testing.Faults) -> None:
    ask.send("blob", "PUT", "/con", "restype=container", headers=BLOB)
    for name in "ab":
        ask.send("blob", "PUT", f"/con/{name}", body=b"", headers={**BLOB, "x-ms-tags": "t=v"})
    query = "comp=blobs&where=t%3D%27v%27"
    with faults.rule(page_entries=1):
        root = ET.fromstring(ask.send("blob", "GET", "/", query, headers=BLOB).body)
        assert [each.text for each in root.iterfind(".//Blob/Name")] == ["a"]
        following = f"{query}&marker={root.findtext('NextMarker')}"
        root = ET.fromstring(ask.send("blob", "GET", "/", following, headers=BLOB).body)
        assert [each.text for each in root.iterfind(".//Blob/Name")] == ["b"]


def test_nobody_without_credentials_meets_a_rule(ask: Asker, faults: lazulite.testing.Faults) -> None:
    with faults.rule(reset="request"):
        answer = ask.send("table", "GET", "/Tables", headers={"x-ms-date": "Mon, 01 Jan 2018 00:00:00 GMT"})
        assert answer.status == 403
        assert faults.hits() == {"rule": 0}


def test_templates_do_not_pass_rules_by(ask: Asker, faults: lazulite.testing.Faults) -> None:
    """A client that repeats itself is answered by templates, but not while there are rules."""
    account = ask._account
    client = Client(Endpoint.parse(account.endpoint, account.name, account.key))
    ask.insert("r")
    assert [client.send("GET", at("r")).status for _ in range(5)] == [200] * 5
    with faults.rule(error="ServerBusy", every=2):
        assert [client.send("GET", at("r")).status for _ in range(4)] == [200, 503, 200, 503]
    assert [client.send("GET", at("r")).status for _ in range(3)] == [200] * 3
    client.close()


def test_a_seed_replays(ask: Asker, faults: lazulite.testing.Faults) -> None:
    def run(seed: int) -> list[int]:
        faults.clear()
        with faults.rule(probability=0.5, operation="QueryEntity", error="ServerBusy", seed=seed):
            return [ask.send("table", "GET", at("r")).status for _ in range(40)]

    first = run(1)
    assert set(first) == {404, 503}
    assert run(1) == first
    assert run(2) != first


def test_rules_that_are_none_are_rejected(faults: lazulite.testing.Faults) -> None:
    with pytest.raises(ControlError, match="rules:5: eror is unknown"):
        faults.add_rule(eror="ServerBusy")
    with pytest.raises(ControlError, match="there is no rule 'rule'"):
        faults.remove("rule")
    faults.add("flaky-network")
    with pytest.raises(ControlError, match="there is a rule"):
        faults.add("flaky-network")


def test_each_effect_has_a_test() -> None:
    text = Path(__file__).read_text("utf-8")
    for effect in Effect:
        assert f"{effect.value}=" in text or f'"{effect.value}":' in text
