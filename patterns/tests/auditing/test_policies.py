"""An audit of a pattern has the deadline and the marks that the pattern was opened with."""

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient
from azure.storage.blob import ContainerClient
from azure.storage.queue import QueueClient

from lazulite_patterns import Bag, Column, Policy, entity, partition, row
from lazulite_patterns.auditing.run import Audited
from lazulite_patterns.encryption import Cipher, EncryptedTable, KeyRing
from lazulite_patterns.shapes import Copies, Fat, Large, Series, Tail, Wide
from lazulite_patterns.streams import Stream
from lazulite_patterns.table.table import Table
from lazulite_patterns.transactions.tasks import Tasks

POLICY = Policy(deadline_seconds=3, marks=2)
ENDPOINT = "http://127.0.0.1:9/a"
"""Nothing is sent."""


@entity(type="PolicyBadge")
class Badge:
    owner: Column[str] = partition()
    door: Column[str] = row()
    code: Column[str]


def test_every_pattern_keeps_its_policy_for_audits() -> None:
    client = TableClient(ENDPOINT, "t", credential=AzureNamedKeyCredential("a", "a2V5"))
    container, queue = ContainerClient(ENDPOINT, "c"), QueueClient(ENDPOINT, "q", credential="a2V5")
    cipher = Cipher(KeyRing({"k": bytes(32)}, current="k"), ["code"])
    badges = Table(client, Badge, policy=POLICY)
    audited: list[Audited] = [
        badges,
        EncryptedTable(client, Badge, cipher=cipher, policy=POLICY),
        Stream(client, "s", policy=POLICY),
        Copies(client, Badge, [], policy=POLICY),
        Fat(client, policy=POLICY),
        Wide(client, policy=POLICY),
        Series(client, 24, int, policy=POLICY),
        Tail(client, policy=POLICY),
        Large(badges, container, "photo"),
        Large(Table(client, Bag), container, "photo", policy=POLICY),
        Tasks(queue, policy=POLICY),
    ]
    assert [each.policy for each in audited] == [POLICY for _ in audited]
