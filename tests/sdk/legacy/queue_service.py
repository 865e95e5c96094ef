"""`QueueService` of the SDKs between 2016 and 2019: azure-storage 0.36 and azure-storage-queue 2.1."""

import sys
from datetime import UTC, datetime, timedelta

from azure.storage.queue import QueueMessageFormat, QueuePermissions, QueueService
from cases import CONNECTION_STRING, fields, run, unique_name
from rejections import rejected, without_retries

try:
    from azure.storage.common import models

    LONGEST = -1
except ImportError:
    from azure.storage import models

    LONGEST = 7 * 24 * 60 * 60
    """Its version of the protocol knows no message that never expires."""

SOON = datetime.now(UTC).replace(tzinfo=None, microsecond=0) + timedelta(hours=1)
ENDPOINT = fields()["QueueEndpoint"].rstrip("/")


def connect(connection_string=CONNECTION_STRING):
    """A service that never retries."""
    return without_retries(QueueService(connection_string=connection_string))


def grant(sas):
    """A service that holds nothing but a SAS."""
    return connect(f"QueueEndpoint={ENDPOINT};SharedAccessSignature={sas}")


SERVICE = connect()


class Queue:
    """A queue of its own for one case."""

    def __enter__(self):
        self.name = unique_name()
        assert SERVICE.create_queue(self.name, fail_on_exist=True) is True
        return self.name

    def __exit__(self, *failure):
        assert SERVICE.delete_queue(self.name, fail_not_exist=True) is True


def contents(messages):
    return [message.content for message in messages]


def test_queues_are_created_listed_and_deleted():
    prefix = unique_name()[:20]
    names = [f"{prefix}-{letter}" for letter in "abc"]
    for name in names:
        assert SERVICE.create_queue(name, metadata={"key": name}) is True
    assert SERVICE.create_queue(names[0], metadata={"key": names[0]}) is False
    rejected(409, "", SERVICE.create_queue, names[0], {"key": "b"}, fail_on_exist=True)
    listed = list(SERVICE.list_queues(prefix, include_metadata=True))
    assert [(each.name, each.metadata) for each in listed] == [(name, {"key": name}) for name in names]
    first = SERVICE.list_queues(prefix, num_results=2)
    assert [each.name for each in first] == names[:2]
    assert [each.name for each in SERVICE.list_queues(prefix, marker=first.next_marker)] == names[2:]
    for name in names:
        assert SERVICE.exists(name) is True
        assert SERVICE.delete_queue(name) is True
    assert SERVICE.exists(names[0]) is False
    assert SERVICE.delete_queue(names[0]) is False
    rejected(404, "", SERVICE.delete_queue, names[0], fail_not_exist=True)


def test_metadata_and_the_number_of_messages():
    with Queue() as queue:
        SERVICE.set_queue_metadata(queue, {"DocType": "a b"})
        SERVICE.put_message(queue, "a")
        metadata = SERVICE.get_queue_metadata(queue)
        assert {name.lower(): text for name, text in metadata.items()} == {"doctype": "a b"}
        assert metadata.approximate_message_count == 1


def test_a_message_from_put_to_delete():
    with Queue() as queue:
        sent = SERVICE.put_message(queue, "hello <&> \u00fc", time_to_live=LONGEST)
        assert contents(SERVICE.peek_messages(queue)) == ["hello <&> \u00fc"]
        [got] = SERVICE.get_messages(queue, visibility_timeout=600)
        assert (got.id, got.content, got.dequeue_count) == (sent.id, "hello <&> \u00fc", 1)
        assert SERVICE.get_messages(queue) == []
        updated = SERVICE.update_message(queue, got.id, got.pop_receipt, 0, content="new")
        [again] = SERVICE.get_messages(queue)
        assert (again.content, again.dequeue_count) == ("new", 2)
        stale = updated.pop_receipt
        rejected(404, "", SERVICE.delete_message, queue, got.id, stale)
        SERVICE.delete_message(queue, again.id, again.pop_receipt)
        assert SERVICE.get_queue_metadata(queue).approximate_message_count == 0


def test_a_message_that_was_just_put_can_be_deleted():
    with Queue() as queue:
        sent = SERVICE.put_message(queue, "a")
        SERVICE.delete_message(queue, sent.id, sent.pop_receipt)
        assert SERVICE.peek_messages(queue) == []


def test_base64():
    with Queue() as queue:
        encoding = connect()
        encoding.encode_function = QueueMessageFormat.text_base64encode
        encoding.decode_function = QueueMessageFormat.text_base64decode
        encoding.put_message(queue, "\u00fc")
        plain = connect()
        plain.decode_function = QueueMessageFormat.noencode
        assert contents(plain.peek_messages(queue)) == ["w7w="]
        assert contents(encoding.get_messages(queue)) == ["\u00fc"]


def test_many_messages_in_their_order_and_clear():
    with Queue() as queue:
        for number in range(40):
            SERVICE.put_message(queue, str(number))
        found = contents(SERVICE.get_messages(queue, num_messages=32)) + contents(SERVICE.get_messages(queue, 32))
        assert found == list(map(str, range(40)))
        SERVICE.clear_messages(queue)
        assert SERVICE.get_queue_metadata(queue).approximate_message_count == 0


def test_messages_out_of_bounds():
    with Queue() as queue:
        rejected(413, "", SERVICE.put_message, queue, "a" * 65_537)
        rejected(400, "", SERVICE.get_messages, queue, num_messages=33)
        rejected(400, "", SERVICE.put_message, queue, "a", visibility_timeout=60, time_to_live=60)


def test_service_sas_and_stored_access_policies():
    with Queue() as queue:
        adder = grant(SERVICE.generate_queue_shared_access_signature(queue, QueuePermissions.ADD, SOON))
        adder.put_message(queue, "a")
        rejected(403, "", adder.peek_messages, queue)
        everything = QueuePermissions(read=True, add=True, update=True, process=True)
        SERVICE.set_queue_acl(queue, {"all": models.AccessPolicy(everything, SOON)})
        assert SERVICE.get_queue_acl(queue)["all"].permission == "raup"
        processor = grant(SERVICE.generate_queue_shared_access_signature(queue, id="all"))
        assert contents(processor.get_messages(queue)) == ["a"]
        SERVICE.set_queue_acl(queue)
        rejected(403, "", processor.get_messages, queue)


def test_account_sas():
    with Queue() as queue:
        kinds, allowed = models.ResourceTypes(object=True), models.AccountPermissions(add=True)
        adder = grant(SERVICE.generate_account_shared_access_signature(kinds, allowed, SOON))
        adder.put_message(queue, "a")
        rejected(403, "", adder.get_messages, queue)


def test_service_properties():
    before = SERVICE.get_queue_service_properties()
    try:
        metrics = models.Metrics(enabled=True, include_apis=True, retention_policy=models.RetentionPolicy(True, 5))
        SERVICE.set_queue_service_properties(hour_metrics=metrics, cors=[models.CorsRule(["*"], ["GET"])])
        found = SERVICE.get_queue_service_properties()
        assert (found.hour_metrics.retention_policy.days, found.cors[0].allowed_origins) == (5, ["*"])
    finally:
        SERVICE.set_queue_service_properties(before.logging, before.hour_metrics, before.minute_metrics, before.cors)


def test_statistics_of_the_secondary():
    both = connect()
    both.secondary_endpoint = f"{both.primary_endpoint}-secondary"
    assert both.get_queue_service_stats().geo_replication.status == "live"


if __name__ == "__main__":
    run(sys.modules["__main__"])
