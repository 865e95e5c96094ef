"""Encrypted writes and migrations on a service end right, whatever fails at each of their requests."""

from contextlib import suppress

import pytest
from azure.data.tables import TableClient

from lazulite_patterns.effects.failpoints import NoFailpoints
from lazulite_patterns.effects.sdk import stored
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation
from lazulite_patterns.encryption import Cipher, KeyRing, LegacyCipher
from lazulite_patterns.encryption.session import EncryptedSession, reencrypted
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.table.session import kinds_of
from lazulite_patterns_simulation import Crash, Fault, FaultAt, every_fault

from ..faults import FAST, Run, aside, clear
from .test_table import CIPHER, LEGACY, OLD, RING

NOTHING = NoFailpoints()
KEY = EntityKey("p", "1")


def test_every_fault_of_an_encrypted_update(on_service: Run, table_client: TableClient) -> None:
    session: EncryptedSession[Bag] = EncryptedSession(table_client.table_name, kinds_of(None), FAST, cipher=CIPHER)

    def added(bag: Bag) -> Bag:
        return Bag({**bag, "salary": int(str(bag["salary"])) + 1})

    def rival() -> None:
        aside(table_client, session.update(KEY, added, 8, "rebase"))

    def attempt(fault: FaultAt) -> None:
        clear(table_client)
        on_service(session.insert(Bag(PartitionKey="p", RowKey="1", email="a@b", salary=10)), NOTHING)
        crashed = False
        try:
            on_service(session.update(KEY, added, 8, "rebase"), fault)
        except Crash:
            crashed = True
        found = on_service(session.get(KEY), NOTHING)
        expected = 12 if fault.fault is Fault.RIVAL and fault.hit else 11
        assert found["salary"] in ({10, 11} if crashed else {expected}), "the increment is lost or doubled"
        assert isinstance(table_client.get_entity(*KEY)["salary"], bytes), "it is sent as plain text"

    assert sum(1 for _ in every_fault(attempt, rival)) >= 2 * 7


@pytest.mark.parametrize("old", [LEGACY, Cipher(KeyRing({"old": OLD}, "old"), ["email"])])
def test_every_fault_of_a_migration(on_service: Run, table_client: TableClient, old: LegacyCipher | Cipher) -> None:
    name = table_client.table_name
    cipher, old = Cipher(RING, ["email"]).of(name), old.of(name)

    def put(key: EntityKey, email: str) -> None:
        encrypted = old.encrypt(key, {"email": email}, Kind.PUT)
        aside(table_client, write(name, [Planned(Operation(Kind.PUT, key, encrypted))], FAST))

    def attempt(fault: FaultAt) -> None:
        clear(table_client)
        for number in range(3):
            put(EntityKey("p", str(number)), str(number))
        with suppress(Crash):
            assert on_service(reencrypted(name, old, cipher, FAST, None), fault).failures == ()
        # The next run finds what a crash left, and what a rival wrote with the old key after its row was read.
        assert on_service(reencrypted(name, old, cipher, FAST, None), NOTHING).failures == ()
        rows = [stored(each) for each in table_client.list_entities()]
        plain = [cipher.decrypt(each.key, each.properties)["email"] for each in rows]
        rival_wrote = fault.fault is Fault.RIVAL and fault.hit
        assert plain == ["0", "new" if rival_wrote else "1", "2"], "what a rival wrote stays"

    assert sum(1 for _ in every_fault(attempt, rival=lambda: put(KEY, "new"))) >= 7 * 3
