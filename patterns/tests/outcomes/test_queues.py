"""A lost answer of a queue is an unknown result: the driver does not send the request again by itself."""

import pytest
from azure.storage.queue import QueueClient

from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.queues import Send

from .transport import Loss, LossyTransport


def test_a_lost_answer_is_an_unknown_result_at_once(connection_string: str, queue_client: QueueClient) -> None:
    name = queue_client.queue_name
    lossy = QueueClient.from_connection_string(connection_string, name, transport=LossyTransport([Loss.ANSWER_LOST]))
    with lossy as client, pytest.raises(ResultUnknown):
        Driver({}, queues={"q": client}).run(perform(Send("q", "once")))
    assert [each.content for each in queue_client.peek_messages(max_messages=32)] == ["once"], "it was sent again"
